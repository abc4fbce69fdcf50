"""
The plugin: what it refuses, what nodes get, and what is around processes and tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from attrs import field, frozen

from skyward import ConfigError, Image, InstanceInfo, is_nvidia
from skyward.collective import check_collective
from skyward.hookspecs import Cluster, Topology, hookimpl
from skyward.model.fields.requirement import check_named_once, version_of
from skyward.node.task.hang import checked_hang_timeout, watched
from skyward.packages import importing, installed
from skyward.plugin import during
from skyward_tensorflow import wheels
from skyward_tensorflow.calls import CALLS

__all__ = ["TensorFlow"]


STEP = "called a tf.function or a strategy, or came back from one,"
"""What a rank is seen to do, if it gets any further."""


def _version(value: Any) -> str | None:
    """Return the version to install, checked."""
    return version_of(value, example="2.21.0")


@frozen
class TensorFlow:
    """
    Have TensorFlow on the nodes, and in every broadcast the TF_CONFIG that MultiWorkerMirroredStrategy reads.

    A broadcast is one cluster of all its ranks; any other call has no TF_CONFIG.
    As a decorator of one function it does only the latter part, on nodes that have TensorFlow.

    Args:
        version: Version of TensorFlow, such as `"2.21.0"`; None or `"latest"` for the newest.
        hang_timeout: Seconds after which a broadcast ends with `HangError` in which no rank called a `tf.function` or a
            strategy, or came back from one; None for no limit.

    Raises:
        ConfigError: If a value is none of what its field takes.

    >>> TensorFlow(version="2.21.0").version
    '2.21.0'
    """

    version: str | None = field(default=None, converter=_version)
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
        check_named_once(wheels.FAMILY, self.version, cluster.spec.image.pip)

    @hookimpl
    def skyward_topology(self) -> Topology:
        """Declare that the ranks of a broadcast form one job."""
        return Topology(collective=True, meeting="tensorflow")

    @hookimpl
    def skyward_transform(self, image: Image, cluster: Cluster) -> Image:
        """Add the package, unless nodes on this machine have it as it is."""
        if cluster.provider == "local" and not image.needs_environment and wheels.is_here(self.version, installed):
            return image
        return wheels.with_wheel(image, wheels.requirement(cluster.offer, self.version))

    @hookimpl
    @contextmanager
    def skyward_around_process(self, info: InstanceInfo) -> Iterator[None]:
        """Load TensorFlow before the first task."""
        with importing(self.name, info):
            import_module("tensorflow")
        yield

    @hookimpl
    def skyward_decorate(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap the call in a TF_CONFIG with its cluster."""
        from skyward_tensorflow.member import MEMBER

        return during(MEMBER.around)(self._watched(fn))

    def _watched(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        """Watch the call, if it has a limit."""
        limit = self.hang_timeout
        if limit is None:
            return fn
        CALLS.prepare()
        return during(lambda: watched(limit, CALLS.count, STEP))(fn)
