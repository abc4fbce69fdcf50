"""
The plugin: what it refuses, what nodes get, and what is around processes and tasks.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from attrs import evolve, field, frozen

from skyward import ConfigError, Image, InstanceInfo, is_nvidia
from skyward.collective import check_collective
from skyward.hookspecs import Cluster, LaunchCommand, LaunchContext, Topology, hookimpl
from skyward.model.fields.requirement import check_named_once, cuda_of, package_names, version_of
from skyward.node.task.hang import checked_hang_timeout, watched
from skyward.packages import importing, with_packages
from skyward.plugin import during

__all__ = ["CUDA", "Jax"]

CUDA = ("12", "13")
"""Releases of CUDA that JAX has wheels for; the first one asks for no newer driver than need be."""

PLATFORMS = "JAX_PLATFORMS"
"""The variable that says where JAX computes; left out, on the GPUs that there are."""

STEP = "executed anything on the devices of several ranks"
"""What a rank is seen to do, if it gets any further."""


def _cuda(value: object) -> str | None:
    """Return a release of CUDA, checked."""
    if value is None:
        return None
    release = cuda_of(value)
    if release is None or str(release.major) not in CUDA:
        has = " and ".join(CUDA)
        raise ConfigError(f"cuda={value!r} names no release of CUDA that JAX has wheels for; it has them for {has}.")
    return str(release.major)


def _version(value: Any) -> str | None:
    """Return the version to install, checked."""
    return version_of(value, example="0.10.2")


@frozen
class Jax:
    """
    Have JAX on the nodes, and `jax.distributed` initialised in every broadcast.

    A broadcast is one world of all its ranks, whose devices `jax.devices()` has; any other call is a world of one.
    As a decorator of one function it does only the latter part, on nodes that have JAX.

    Args:
        cuda: Which release of CUDA the packages are to be built for, `"12"` or `"13"`, also as `"12.8"` or `"cu128"`;
            None for 12 on NVIDIA's GPUs.
        version: Version of jax, such as `"0.10.2"`; None or `"latest"` for the newest.
        hang_timeout: Seconds after which a broadcast ends with `HangError` in which no rank executed anything on the
            devices of several ranks; None for no limit.

    Raises:
        ConfigError: If a value is none of what its field takes.

    >>> Jax(cuda="12.8").cuda
    '12'
    """

    cuda: str | None = field(default=None, converter=_cuda)
    version: str | None = field(default=None, converter=_version)
    hang_timeout: float | None = field(default=None, validator=checked_hang_timeout, kw_only=True)
    name = "jax"

    @hookimpl
    def skyward_validate(self, cluster: Cluster) -> None:
        """Refuse what cannot work, before anything is rented for it."""
        check_collective(cluster, "JAX", "world")
        self._check_accelerator(cluster)
        check_named_once(["jax"], self.version, cluster.spec.image.pip)

    @hookimpl
    def skyward_topology(self) -> Topology:
        """Declare that the ranks of a broadcast form one job."""
        return Topology(collective=True, meeting="jax")

    @hookimpl
    def skyward_transform(self, image: Image, cluster: Cluster) -> Image:
        """Add the package, unless nodes on this machine have it as it is."""
        gpus = self.cuda or (CUDA[0] if cluster.offer.accelerator_count else None)
        wheels = "jax" if gpus is None else f"jax[cuda{gpus}]"
        return with_packages(image, [wheels if self.version is None else f"{wheels}=={self.version}"], cluster)

    @hookimpl
    def skyward_launcher(self, command: LaunchCommand, context: LaunchContext) -> LaunchCommand:
        """Keep several ranks of this machine off its GPUs, unless the user says where they compute."""
        cluster = context.cluster
        if cluster.provider != "local" or cluster.nodes * cluster.ranks_per_node == 1 or PLATFORMS in os.environ:
            return command
        return evolve(command, env={PLATFORMS: "cpu", **command.env})

    @hookimpl
    @contextmanager
    def skyward_around_process(self, info: InstanceInfo) -> Iterator[None]:
        """Load JAX before the first task, and leave no connection behind."""
        with importing(self.name, info):
            from skyward_jax.worlds import WORLDS
        if self.hang_timeout is not None:
            from skyward_jax.executed import EXECUTED

            EXECUTED.prepare()
        with WORLDS.prepared(info):
            yield

    @hookimpl
    def skyward_decorate(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap the call in its world."""
        from skyward_jax.worlds import WORLDS

        return during(WORLDS.around)(self._watched(fn))

    def _watched(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        """Watch the call, if it has a limit."""
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
