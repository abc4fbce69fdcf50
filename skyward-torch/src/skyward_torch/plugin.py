"""
The plugin: what it refuses, what nodes get, and what is around processes and tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from attrs import field, frozen

from skyward import ConfigError, Image, InstanceInfo, is_nvidia
from skyward.collective import check_collective
from skyward.hookspecs import Cluster, LaunchCommand, LaunchContext, Topology, hookimpl
from skyward.model.fields.requirement import check_named_once, companion, cuda_of, version_of
from skyward.model.fields.setting import positive
from skyward.node.task.hang import checked_hang_timeout
from skyward.packages import importing, with_packages
from skyward.plugin import during
from skyward.processors import sharing
from skyward_torch import wheels

__all__ = ["BACKENDS", "Torch"]

BACKENDS = ("gloo", "mpi", "nccl", "ucc")
"""Backends of torch.distributed that can be asked for."""

OF_GPUS = frozenset({"nccl"})
"""Backends that need NVIDIA's GPUs."""


def _backend(instance: object, attribute: Any, value: str | None) -> None:
    """Refuse a backend that torch does not have."""
    parts = [] if value is None else [part.rpartition(":")[2] for part in str(value).split(",")]
    if unknown := [part for part in parts if part not in BACKENDS]:
        known = ", ".join(map(repr, BACKENDS))
        raise ConfigError(f"backend={value!r} names {unknown[0]!r}, which torch does not have; it has {known}.")


def _cuda(value: object) -> str | None:
    """Return a release of CUDA as torch's indexes have it, checked."""
    if value is None:
        return None
    release = cuda_of(value)
    if release is None or release.minor is None:
        raise ConfigError(f'cuda must be a version of CUDA such as "12.8" or "cu128", not {value!r}.')
    return str(release)


def _version(value: Any) -> str | None:
    """Return the version to install, checked."""
    return version_of(value, example="2.13.0")


def _vision(value: Any) -> bool | str:
    """Return whether torchvision is wanted, checked."""
    return companion(value, "vision", example="0.28.0")


def _audio(value: Any) -> bool | str:
    """Return whether torchaudio is wanted, checked."""
    return companion(value, "audio", example="2.11.0")


def _seconds(instance: object, attribute: Any, value: Any) -> None:
    """Refuse what is no time limit."""
    if value is not None:
        positive(value, attribute.name)


@frozen
class Torch:
    """
    Have PyTorch on the nodes, and `torch.distributed` initialised in every broadcast.

    A broadcast is one world of all its ranks; any other call is a world of one.
    As a decorator of one function it does only the latter part, on nodes that have torch.

    Args:
        backend: Backend of the process group, such as `"gloo"`, `"nccl"` or `"cpu:gloo,cuda:nccl"`; None takes NCCL
            for what is on GPUs and gloo for the rest.
        cuda: Which CUDA the packages are to be built for, such as `"12.8"` or `"cu128"`; None for what torch itself
            prefers.
        version: Version of torch, such as `"2.13.0"`; None or `"latest"` for the newest.
        vision: Whether torchvision is wanted too, or its version.
        audio: Whether torchaudio is wanted too, or its version.
        collective_timeout: Seconds that a collective has before it raises; None for torch's own limit, of 30 minutes
            with gloo and 10 with NCCL.
        hang_timeout: Seconds after which a broadcast ends with `HangError` in which no rank entered a collective, of
            whichever group; None for no limit.

    Raises:
        ConfigError: If a value is none of what its field takes.

    >>> Torch(backend="gloo", cuda="cu128").cuda
    '12.8'
    """

    backend: str | None = field(default=None, validator=_backend)
    cuda: str | None = field(default=None, converter=_cuda)
    version: str | None = field(default=None, converter=_version)
    vision: bool | str = field(default=False, converter=_vision)
    audio: bool | str = field(default=False, converter=_audio)
    collective_timeout: float | None = field(default=None, validator=_seconds, kw_only=True)
    hang_timeout: float | None = field(default=None, validator=checked_hang_timeout, kw_only=True)
    name = "torch"

    @hookimpl
    def skyward_validate(self, cluster: Cluster) -> None:
        """Refuse what cannot work, before anything is rented for it."""
        check_collective(cluster, "torch", "process group")
        self._check_accelerator(cluster)
        check_named_once(["torch"], self.version, cluster.spec.image.pip)

    @hookimpl
    def skyward_topology(self) -> Topology:
        """Declare that the ranks of a broadcast form one job."""
        return Topology(collective=True, meeting="torch")

    @hookimpl
    def skyward_transform(self, image: Image, cluster: Cluster) -> Image:
        """Add the packages, unless nodes on this machine have them as it is."""
        wanted = wheels.requirements(self.version, vision=self.vision, audio=self.audio)
        return with_packages(image, wanted, cluster, wheels.index_of(cluster.offer, self.cuda))

    @hookimpl
    def skyward_launcher(self, command: LaunchCommand, context: LaunchContext) -> LaunchCommand:
        """Share the processors among the ranks of a machine."""
        return sharing(command, context.cluster)

    @hookimpl
    @contextmanager
    def skyward_around_process(self, info: InstanceInfo) -> Iterator[None]:
        """Load torch before the first task, and leave no group behind."""
        with importing(self.name, info):
            from skyward_torch.groups import GROUPS
        with GROUPS.prepared(info, self.backend):
            yield

    @hookimpl
    def skyward_decorate(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap the call in its process group."""
        from skyward_torch.groups import GROUPS

        return during(lambda: GROUPS.around(self.backend, self.hang_timeout, self.collective_timeout))(fn)

    def _check_accelerator(self, cluster: Cluster) -> None:
        """Refuse what no accelerator of the nodes can do; what this machine has, only its processes find out."""
        offer = cluster.offer
        if offer.accelerator_count:
            name = offer.accelerator_name or ""
            if not is_nvidia(name) and "torch" not in wheels.named(cluster.spec.image):
                raise ConfigError(
                    f"Which wheels of torch suit {name} is not known here.",
                    hint="Name them: Image(pip=['torch==...'], pip_indexes=[sky.PipIndex(url, ['torch'])]).",
                )
        elif cluster.provider != "local":
            wish = f"cuda={self.cuda!r}" if self.cuda else f"backend={self.backend!r}" if self._needs_gpu else ""
            if wish:
                raise ConfigError(
                    f"{wish} needs NVIDIA's GPUs, and the nodes have none.", hint="Ask for: accelerator=."
                )

    @property
    def _needs_gpu(self) -> bool:
        """Return whether the backend works with GPUs only."""
        return self.backend in OF_GPUS
