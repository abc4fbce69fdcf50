"""
The plugin: what it refuses, what nodes get, and what is around processes and tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version as version_of
from typing import Any

from attrs import field, frozen

from skyward import ConfigError, Image, InstanceInfo, PluginError, is_nvidia
from skyward.collective import check_collective
from skyward.hookspecs import Cluster, Topology, hookimpl
from skyward.model.requirement import checked_version
from skyward.node.hang import checked_hang_timeout, watched
from skyward.plugin import during
from skyward_tensorflow import wheels
from skyward_tensorflow.calls import CALLS

__all__ = ["TensorFlow"]


STEP = "called a tf.function or a strategy, or came back from one,"
"""What a rank is seen to do, if it gets any further."""


def _version(instance: object, attribute: Any, value: object) -> None:
    """Refuse what is no version of a package."""
    if value is not None:
        checked_version(value, attribute.name, example="2.21.0")


@frozen
class TensorFlow:
    """
    Have TensorFlow on the nodes, and in every broadcast the TF_CONFIG that MultiWorkerMirroredStrategy reads.

    A broadcast is one cluster of all its ranks; any other call has no TF_CONFIG.
    As a decorator of one function it does only the latter part, on nodes that have TensorFlow.

    Args:
        version: Version of TensorFlow, such as `"2.21.0"`; None for the newest.
        hang_timeout: Seconds after which a broadcast ends with `HangError` in which no rank called a `tf.function` or a
            strategy, or came back from one; None for no limit.

    Raises:
        ConfigError: If a value is none of what its field takes.

    >>> TensorFlow(version="2.21.0").version
    '2.21.0'
    """

    version: str | None = field(default=None, validator=_version)
    hang_timeout: float | None = field(default=None, validator=checked_hang_timeout, kw_only=True)
    name = "tensorflow"

    @hookimpl
    def skyward_validate(self, cluster: Cluster) -> None:
        """Refuse what cannot work, before anything is rented for it."""
        check_collective(cluster, "TensorFlow", "cluster")
        named = wheels.named(cluster.spec.image)
        accelerator = cluster.offer.accelerator_name or ""
        if cluster.offer.accelerator_count and not is_nvidia(accelerator) and not named:
            raise ConfigError(
                f"Which build of TensorFlow suits {accelerator} is not known here.",
                hint="Name it: Image(pip=['tensorflow...==...']).",
            )
        if self.version is not None and named:
            raise ConfigError(
                "Image(pip=[...]) says which TensorFlow there is to be, and so does version=. Leave one out."
            )

    @hookimpl
    def skyward_topology(self) -> Topology:
        """Say that the ranks of a broadcast form one job."""
        return Topology(collective=True, meeting="tensorflow")

    @hookimpl
    def skyward_transform(self, image: Image, cluster: Cluster) -> Image:
        """Add the package, unless nodes on this machine have it as it is."""
        if cluster.provider == "local" and not image.needs_environment and wheels.is_here(self.version, _installed):
            return image
        return wheels.with_wheel(image, wheels.requirement(cluster.offer, self.version))

    @hookimpl
    @contextmanager
    def skyward_around_process(self, info: InstanceInfo) -> Iterator[None]:
        """Load TensorFlow before the first task."""
        try:
            import_module("tensorflow")
        except ModuleNotFoundError as error:
            raise PluginError(
                f"sky.plugins.tensorflow needs {error.name}, which is not installed on node {info.node}.",
                plugin=self.name,
                hook="around_process",
                hint='Put it last in plugins=[...], or name a version: sky.plugins.tensorflow(version="...").',
            ) from error
        yield

    @hookimpl
    def skyward_decorate(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        """Have the cluster of the call in TF_CONFIG around it."""
        from skyward_tensorflow.member import MEMBER

        return during(MEMBER.around)(self._watched(fn))

    def _watched(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        """Have the call watched, if it has a limit."""
        limit = self.hang_timeout
        if limit is None:
            return fn
        CALLS.prepare()
        return during(lambda: watched(limit, CALLS.count, STEP))(fn)


def _installed(package: str) -> str | None:
    """Return the version of a package that this interpreter has."""
    try:
        return version_of(package)
    except PackageNotFoundError:
        return None
