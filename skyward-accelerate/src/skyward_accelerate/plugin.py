"""
The plugin: what it refuses, what nodes get, and what is around processes and tasks.
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
from skyward.plugin import during
from skyward_accelerate.config import Config, config
from skyward_torch.plugin import Torch
from skyward_torch.stacking import beneath

__all__ = ["Accelerate"]


def _version(instance: object, attribute: Any, value: Any) -> None:
    """Refuse what is no version of a package."""
    if value is not None:
        checked_version(value, attribute.name, example="1.15.0")


@frozen
class Accelerate:
    """
    Have Accelerate on the nodes, told in every broadcast what `accelerate launch` would have told it.

    It brings PyTorch and its process group, as `sky.plugins.torch()` does; where the pool has that plugin too, it
    stands before this one, and what it says holds.
    As a decorator of one function it does what concerns a call, on nodes that have Accelerate.

    Args:
        config: How to train: a `skyward_accelerate.config.Config`, or a mapping with its names; None for what
            Accelerate does by itself.
        version: Version of Accelerate, such as `"1.15.0"`; None for the newest.

    Raises:
        ConfigError: If a value is none of what its field takes.

    >>> Accelerate({"mixed_precision": "bf16"}).config.mixed_precision
    'bf16'
    """

    config: Config = field(default=None, converter=config)
    version: str | None = field(default=None, validator=_version, kw_only=True)
    name = "accelerate"

    @hookimpl
    def skyward_validate(self, cluster: Cluster) -> None:
        """Refuse what cannot work, before anything is rented for it."""
        if beneath(self, Torch, cluster) is None:
            Torch().skyward_validate(cluster)
        if self.config.needs_gpu and not cluster.offer.accelerator_count and cluster.provider != "local":
            raise ConfigError(
                f"{self.config.needs_gpu} needs GPUs, and the nodes have none.", hint="Ask for: accelerator=."
            )
        if self.version is not None and package_names(cluster.spec.image.pip) & {"accelerate"}:
            raise ConfigError(
                "Image(pip=[...]) says which accelerate there is to be, and so does version=. Leave one out."
            )

    @hookimpl
    def skyward_topology(self) -> Topology:
        """Say that the ranks of a broadcast form one job."""
        return Topology(collective=True, meeting="torch")

    @hookimpl
    def skyward_transform(self, image: Image, cluster: Cluster) -> Image:
        """Add the packages, unless nodes on this machine have them as it is."""
        wanted = [f"accelerate=={self.version}" if self.version else "accelerate"]
        if self.config.deepspeed:
            wanted.append("deepspeed")
        image = with_packages(image, wanted, cluster)
        # Again, because an environment that is made for these packages needs torch from its own index too.
        return (beneath(self, Torch, cluster) or Torch()).skyward_transform(image, cluster)

    @hookimpl
    def skyward_launcher(self, command: LaunchCommand, context: LaunchContext) -> LaunchCommand:
        """Share the processors among the ranks of a machine."""
        return Torch().skyward_launcher(command, context)

    @hookimpl
    @contextmanager
    def skyward_around_process(self, info: InstanceInfo) -> Iterator[None]:
        """Load torch and Accelerate before the first task."""
        with Torch().skyward_around_process(info):
            try:
                from skyward_accelerate import state
            except ModuleNotFoundError as error:
                raise PluginError(
                    f"sky.plugins.accelerate needs {error.name}, which is not installed on node {info.node}.",
                    plugin=self.name,
                    hook="around_process",
                    hint='Put it last in plugins=[...], or name a version: sky.plugins.accelerate(version="...").',
                ) from error
            with state.CALLS.prepared(self.config):
                yield

    @hookimpl
    def skyward_decorate(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        """Have the process group of the call around it, and within that what Accelerate is told."""
        from skyward_accelerate.state import CALLS

        return Torch().skyward_decorate(during(lambda: CALLS.around(self.config))(fn))
