"""
The plugin: what it refuses, what nodes get, and what is around processes and tasks.

All but the package itself is Accelerate's, which `Trainer` trains with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from attrs import field, frozen

from skyward import ConfigError, Image, InstanceInfo, PluginError
from skyward.hookspecs import Cluster, LaunchCommand, LaunchContext, Topology, hookimpl
from skyward.model.requirement import checked_version, package_names
from skyward.packages import with_packages
from skyward_accelerate.plugin import Accelerate
from skyward_torch.plugin import Torch
from skyward_torch.stacking import beneath

__all__ = ["Transformers"]


def _version(instance: object, attribute: Any, value: Any) -> None:
    """Refuse what is no version of a package."""
    if value is not None:
        checked_version(value, attribute.name, example="5.23.0")


@frozen
class Transformers:
    """
    Have Transformers on the nodes, and its `Trainer` train on all ranks of a broadcast.

    It brings Accelerate and PyTorch, as `sky.plugins.accelerate()` does; where the pool has that plugin too, or that of
    PyTorch, they stand before this one, and what they say holds.
    As a decorator of one function it does what concerns a call, on nodes that have Transformers.

    Args:
        version: Version of Transformers, such as `"5.23.0"`; None for the newest.

    Raises:
        ConfigError: If it is no version.

    >>> Transformers("5.23.0").version
    '5.23.0'
    """

    version: str | None = field(default=None, validator=_version)
    name = "transformers"

    @hookimpl
    def skyward_validate(self, cluster: Cluster) -> None:
        """Refuse what cannot work, before anything is rented for it."""
        beneath(self, Torch, cluster)
        if beneath(self, Accelerate, cluster) is None:
            Accelerate().skyward_validate(cluster)
        if self.version is not None and package_names(cluster.spec.image.pip) & {"transformers"}:
            raise ConfigError(
                "Image(pip=[...]) says which transformers there are to be, and so does version=. Leave one out."
            )

    @hookimpl
    def skyward_topology(self) -> Topology:
        """Say that the ranks of a broadcast form one job."""
        return Topology(collective=True, meeting="torch")

    @hookimpl
    def skyward_transform(self, image: Image, cluster: Cluster) -> Image:
        """Add the packages, unless nodes on this machine have them as it is."""
        wanted = f"transformers=={self.version}" if self.version else "transformers"
        image = with_packages(image, [wanted], cluster)
        # Again, because an environment that is made for this package needs the others too.
        return (beneath(self, Accelerate, cluster) or Accelerate()).skyward_transform(image, cluster)

    @hookimpl
    def skyward_launcher(self, command: LaunchCommand, context: LaunchContext) -> LaunchCommand:
        """Share the processors among the ranks of a machine."""
        return Accelerate().skyward_launcher(command, context)

    @hookimpl
    @contextmanager
    def skyward_around_process(self, info: InstanceInfo) -> Iterator[None]:
        """Load what a call needs before the first task."""
        with Accelerate().skyward_around_process(info):
            try:
                import transformers  # noqa: F401
            except ModuleNotFoundError as error:
                raise PluginError(
                    f"sky.plugins.transformers needs {error.name}, which is not installed on node {info.node}.",
                    plugin=self.name,
                    hook="around_process",
                    hint='Put it last in plugins=[...], or name a version: sky.plugins.transformers(version="...").',
                ) from error
            yield

    @hookimpl
    def skyward_decorate(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        """Have around the call what Accelerate has; settings that are around it already stay as they are."""
        import transformers  # noqa: F401

        return Accelerate().skyward_decorate(fn)
