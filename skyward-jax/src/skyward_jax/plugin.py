"""
The plugin: what it refuses, what nodes get, and what is around processes and tasks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from attrs import field, frozen

from skyward import ConfigError, Image, InstanceInfo, PluginError, is_nvidia
from skyward.collective import check_collective
from skyward.hookspecs import Cluster, Topology, hookimpl
from skyward.model.requirement import checked_version, package_names
from skyward.node.hang import checked_hang_timeout, watched
from skyward.packages import with_packages
from skyward.plugin import during

__all__ = ["CUDA", "Jax"]

CUDA = ("12", "13")
"""Releases of CUDA that JAX has wheels for; the first one asks for no newer driver than need be."""


STEP = "executed anything on the devices of several ranks"
"""What a rank is seen to do, if it gets any further."""


def _cuda(value: object) -> str | None:
    """Return a release of CUDA, checked; JAX's own name for it, such as cuda12, is one too."""
    if value is None:
        return None
    given = re.fullmatch(r"(?:cuda)?(\d+)(?:\.\d+)?", str(value))
    if isinstance(value, bool) or given is None or given[1] not in CUDA:
        has = " and ".join(CUDA)
        raise ConfigError(f"cuda={value!r} names no release of CUDA that JAX has wheels for; it has them for {has}.")
    return given[1]


def _version(instance: object, attribute: Any, value: object) -> None:
    """Refuse what is no version of a package."""
    if value is not None:
        checked_version(value, attribute.name, example="0.10.2")


@frozen
class Jax:
    """
    Have JAX on the nodes, and `jax.distributed` initialised in every broadcast.

    A broadcast is one world of all its ranks, whose devices `jax.devices()` has; any other call is a world of one.
    As a decorator of one function it does only the latter part, on nodes that have JAX.

    Args:
        cuda: Which release of CUDA the packages are to be built for, `"12"` or `"13"`; None for 12 on NVIDIA's GPUs.
        version: Version of jax, such as `"0.10.2"`; None for the newest.
        hang_timeout: Seconds after which a broadcast ends with `HangError` in which no rank executed anything on the
            devices of several ranks; None for no limit.

    Raises:
        ConfigError: If a value is none of what its field takes.

    >>> Jax(cuda="12.8").cuda
    '12'
    """

    cuda: str | None = field(default=None, converter=_cuda)
    version: str | None = field(default=None, validator=_version)
    hang_timeout: float | None = field(default=None, validator=checked_hang_timeout, kw_only=True)
    name = "jax"

    @hookimpl
    def skyward_validate(self, cluster: Cluster) -> None:
        """Refuse what cannot work, before anything is rented for it."""
        check_collective(cluster, "JAX", "world")
        self._check_accelerator(cluster)
        if self.version is not None and "jax" in package_names(cluster.spec.image.pip):
            raise ConfigError("Image(pip=[...]) says which jax there is to be, and so does version=. Leave one out.")

    @hookimpl
    def skyward_topology(self) -> Topology:
        """Say that the ranks of a broadcast form one job."""
        return Topology(collective=True, meeting="jax")

    @hookimpl
    def skyward_transform(self, image: Image, cluster: Cluster) -> Image:
        """Add the package, unless nodes on this machine have it as it is."""
        gpus = self.cuda or (CUDA[0] if cluster.offer.accelerator_count else None)
        wheels = "jax" if gpus is None else f"jax[cuda{gpus}]"
        return with_packages(image, [wheels if self.version is None else f"{wheels}=={self.version}"], cluster)

    @hookimpl
    @contextmanager
    def skyward_around_process(self, info: InstanceInfo) -> Iterator[None]:
        """Load JAX before the first task, and leave no connection behind."""
        try:
            from skyward_jax.worlds import WORLDS
        except ModuleNotFoundError as error:
            raise PluginError(
                f"sky.plugins.jax needs {error.name}, which is not installed on node {info.node}.",
                plugin=self.name,
                hook="around_process",
                hint='Put it last in plugins=[...], or name a version: sky.plugins.jax(version="...").',
            ) from error
        if self.hang_timeout is not None:
            from skyward_jax.executed import EXECUTED

            EXECUTED.prepare()
        with WORLDS.prepared(info):
            yield

    @hookimpl
    def skyward_decorate(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        """Have the world of the call around it."""
        from skyward_jax.worlds import WORLDS

        return during(WORLDS.around)(self._watched(fn))

    def _watched(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        """Have the call watched, if it has a limit."""
        limit = self.hang_timeout
        if limit is None:
            return fn
        from skyward_jax.executed import EXECUTED

        EXECUTED.prepare()
        return during(lambda: watched(limit, EXECUTED.count, STEP))(fn)

    def _check_accelerator(self, cluster: Cluster) -> None:
        """Refuse what no accelerator of the nodes can do; what this machine has, only its processes find out."""
        offer, ranks = cluster.offer, cluster.ranks_per_node
        if offer.accelerator_count:
            name = offer.accelerator_name or ""
            if not is_nvidia(name) and not {"jax", "jaxlib"} & package_names(cluster.spec.image.pip):
                raise ConfigError(
                    f"Which wheels of JAX suit {name} is not known here.",
                    hint="Name them: Image(pip=['jax[...]']).",
                )
            if int(offer.accelerator_count) % ranks:
                raise ConfigError(
                    f"{ranks} ranks on a node cannot share its {offer.accelerator_count:g} accelerators evenly.",
                    hint='Give each its own: per_node="accelerator".',
                )
        elif cluster.provider != "local" and self.cuda:
            raise ConfigError(
                f"cuda={self.cuda!r} needs NVIDIA's GPUs, and the nodes have none.", hint="Ask for: accelerator=."
            )
