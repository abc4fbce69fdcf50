"""
Docker images that providers of containers start from, and what `sky.containers` is.

    sky.containers.cuda("12.9", variant="devel", ubuntu="24.04")
    sky.containers.pytorch("2.8", cuda="12.8")
    sky.containers.DockerImage.of("registry.example/team/train:1", cuda="12.8", ubuntu="22.04")
"""

from __future__ import annotations

import re
from typing import Literal, get_args

from attrs import frozen

from skyward.errors import ConfigError

__all__ = ["CudaVariant", "DockerImage", "cuda", "docker_image", "pytorch", "runpod_base", "runpod_pytorch", "ubuntu"]

CudaVariant = Literal["base", "runtime", "devel", "cudnn-runtime", "cudnn-devel"]

# The last patch of each CUDA release that has images; releases not listed are asked for as ".0".
_CUDA_PATCHES = {
    "11.8": "11.8.0",
    "12.0": "12.0.1",
    "12.1": "12.1.1",
    "12.2": "12.2.2",
    "12.3": "12.3.2",
    "12.4": "12.4.1",
    "12.5": "12.5.1",
    "12.6": "12.6.3",
    "12.8": "12.8.1",
    "12.9": "12.9.1",
}

# Older releases have no image on a newer Ubuntu.
_FIRST_CUDA_ON_24_04 = (12, 6)

# RunPod releases all its images together, each CUDA with the patch listed here, or its first.
_RUNPOD_RELEASE = "1.0.3"
_RUNPOD_CUDA_PATCHES = {"12.4": "12.4.1", "12.8": "12.8.1"}

_IMAGE = re.compile(
    r"(?:[a-z0-9.-]+(?::\d+)?/)?[a-z0-9]+(?:[._/-]+[a-z0-9]+)*(?::[\w][\w.-]{0,127})?(?:@sha256:[0-9a-f]{64})?"
)


@frozen
class DockerImage:
    """
    Name a Docker image, and what is known to be in it.

    Args:
        tag: The image as `docker pull` takes it.
        cuda: Version of CUDA in it; None where there is none or it is not known.
        ubuntu: Version of Ubuntu it is made from; None where it is not known.

    Raises:
        ConfigError: If the tag is no name of an image.

    >>> DockerImage.of("pytorch/pytorch:2.8.0-cuda12.8-cudnn9-devel", cuda="12.8").cuda
    '12.8'
    """

    tag: str
    cuda: str | None = None
    ubuntu: str | None = None

    def __attrs_post_init__(self) -> None:
        if not _names_image(self.tag):
            raise ConfigError(f"tag={self.tag!r} is no name of a Docker image.", hint='Write "repository/name:tag".')
        if self.cuda is not None:
            _version(self.cuda, "cuda", parts=(2, 3))
        if self.ubuntu is not None:
            _version(self.ubuntu, "ubuntu", parts=(2,))

    @classmethod
    def of(cls, tag: str, *, cuda: str | None = None, ubuntu: str | None = None) -> DockerImage:
        """
        Name any Docker image.

        Args:
            tag: The image as `docker pull` takes it.
            cuda: Version of CUDA in it, such as `"12.8"`.
            ubuntu: Version of Ubuntu it is made from, such as `"22.04"`.

        Raises:
            ConfigError: If the tag is no name of an image, or a version is none.

        >>> str(DockerImage.of("ubuntu:24.04", ubuntu="24.04"))
        'ubuntu:24.04'
        """
        return cls(tag, cuda, ubuntu)

    def __str__(self) -> str:
        return self.tag


def cuda(version: str, *, variant: CudaVariant = "devel", ubuntu: str | None = None) -> DockerImage:
    """
    Name one of NVIDIA's CUDA images.

    Args:
        version: Version of CUDA, such as `"12.9"` or `"12.9.1"`.
        variant: `"base"`, `"runtime"`, `"devel"`, `"cudnn-runtime"` or `"cudnn-devel"`.
        ubuntu: Version of Ubuntu; the newest that this CUDA has an image on, where it is not given.

    Raises:
        ConfigError: If a version is none, or there is no such variant.

    >>> cuda("12.9", variant="devel", ubuntu="24.04").tag
    'nvidia/cuda:12.9.1-devel-ubuntu24.04'
    """
    numbers = _version(version, "version", parts=(2, 3))
    if variant not in get_args(CudaVariant):
        raise ConfigError(
            f"variant={variant!r} is none of the CUDA images.", hint=f"Accepted: {', '.join(get_args(CudaVariant))}."
        )
    full = version if len(numbers) == 3 else _CUDA_PATCHES.get(version, f"{version}.0")
    system = ubuntu if ubuntu is not None else ("24.04" if numbers[:2] >= _FIRST_CUDA_ON_24_04 else "22.04")
    _version(system, "ubuntu", parts=(2,))
    return DockerImage(f"nvidia/cuda:{full}-{variant}-ubuntu{system}", _minor(numbers), system)


def ubuntu(version: str = "24.04") -> DockerImage:
    """
    Name one of the plain Ubuntu images.

    Args:
        version: Version of Ubuntu.

    Raises:
        ConfigError: If the version is none.

    >>> ubuntu("24.04").tag
    'ubuntu:24.04'
    """
    _version(version, "version", parts=(2,))
    return DockerImage(f"ubuntu:{version}", None, version)


def pytorch(
    version: str = "2.8", *, cuda: str | None = None, variant: Literal["runtime", "devel"] = "devel"
) -> DockerImage:
    """
    Name one of the PyTorch images.

    A version of PyTorch gives the PyTorch project's image; a month, such as `"25.05"`, gives the one that NVIDIA
    released then, which has a CUDA of its own.

    Args:
        version: Version of PyTorch, or year and month of NVIDIA's release.
        cuda: Version of CUDA; `"12.8"` where it is not given. Not with a month.
        variant: `"runtime"` or `"devel"`. Not with a month.

    Raises:
        ConfigError: If a version is none, or CUDA is given with a month.

    >>> pytorch("2.8", cuda="12.8").tag
    'pytorch/pytorch:2.8.0-cuda12.8-cudnn9-devel'
    >>> pytorch("25.05").tag
    'nvcr.io/nvidia/pytorch:25.05-py3'
    """
    numbers = _version(version, "version", parts=(2, 3))
    if numbers[0] >= 17:
        if cuda is not None:
            raise ConfigError(f"cuda={cuda!r} can't be chosen with NVIDIA's release {version}, which has its own.")
        return DockerImage(f"nvcr.io/nvidia/pytorch:{version}-py3")
    if variant not in ("runtime", "devel"):
        raise ConfigError(f"variant={variant!r} is none of the PyTorch images.", hint="Accepted: runtime, devel.")
    release = _minor(_version("12.8" if cuda is None else cuda, "cuda", parts=(2, 3)))
    cudnn = 9 if numbers >= (2, 4) else 8
    return DockerImage(f"pytorch/pytorch:{_full(numbers)}-cuda{release}-cudnn{cudnn}-{variant}", release)


def runpod_base(*, cuda: str | None = None, ubuntu: str = "24.04") -> DockerImage:
    """
    Name one of RunPod's base images, which have its SSH server and tools.

    Args:
        cuda: Version of CUDA, such as `"12.8"`; without CUDA where it is not given.
        ubuntu: Version of Ubuntu.

    Raises:
        ConfigError: If a version is none.

    >>> runpod_base(cuda="12.8").tag
    'runpod/base:1.0.3-cuda1281-ubuntu2404'
    """
    system = "".join(str(part).zfill(2) for part in _version(ubuntu, "ubuntu", parts=(2,)))
    if cuda is None:
        return DockerImage(f"runpod/base:{_RUNPOD_RELEASE}-ubuntu{system}", None, ubuntu)
    numbers = _version(cuda, "cuda", parts=(2, 3))
    return DockerImage(f"runpod/base:{_RUNPOD_RELEASE}-cuda{_digits(numbers)}-ubuntu{system}", _minor(numbers), ubuntu)


def runpod_pytorch(version: str = "2.8", *, cuda: str = "12.8", ubuntu: str = "24.04") -> DockerImage:
    """
    Name one of RunPod's PyTorch images, which have its SSH server and tools.

    Args:
        version: Version of PyTorch.
        cuda: Version of CUDA.
        ubuntu: Version of Ubuntu.

    Raises:
        ConfigError: If a version is none.

    >>> runpod_pytorch("2.8").tag
    'runpod/pytorch:1.0.3-cu1281-torch280-ubuntu2404'
    """
    torch = _full(_version(version, "version", parts=(2, 3))).replace(".", "")
    numbers = _version(cuda, "cuda", parts=(2, 3))
    system = "".join(str(part).zfill(2) for part in _version(ubuntu, "ubuntu", parts=(2,)))
    tag = f"runpod/pytorch:{_RUNPOD_RELEASE}-cu{_digits(numbers)}-torch{torch}-ubuntu{system}"
    return DockerImage(tag, _minor(numbers), ubuntu)


def docker_image(value: str | DockerImage, parameter: str) -> DockerImage:
    """
    Return the image that a user chose for a provider's containers.

    Args:
        value: The image, or its name.
        parameter: What the provider calls the choice.

    Raises:
        ConfigError: If it is neither.

    >>> docker_image("ubuntu:24.04", "docker_image").tag
    'ubuntu:24.04'
    """
    if isinstance(value, DockerImage):
        return value
    if not _names_image(value):
        raise ConfigError(
            f"{parameter}={value!r} is no name of a Docker image.",
            hint='Write sky.containers.ubuntu("24.04"), another of sky.containers, or "repository/name:tag".',
        )
    return DockerImage(value)


def _names_image(tag: object) -> bool:
    """Return whether something is the name of a Docker image."""
    return isinstance(tag, str) and _IMAGE.fullmatch(tag) is not None


def _version(given: object, parameter: str, *, parts: tuple[int, ...]) -> tuple[int, ...]:
    """Return the numbers of a version of so many parts."""
    if not isinstance(given, str):
        hint = f'Write {parameter}="{given}".' if isinstance(given, (int, float)) else None
        raise ConfigError(f"{parameter} must be a version as text, not {given!r}.", hint=hint)
    numbers = given.split(".")
    if len(numbers) not in parts or not all(number.isascii() and number.isdigit() for number in numbers):
        raise ConfigError(f"{parameter}={given!r} is no version.", hint=f"Write {' or '.join(_shapes(parts))}.")
    return tuple(int(number) for number in numbers)


def _shapes(parts: tuple[int, ...]) -> list[str]:
    """Return examples of versions of so many parts."""
    return ['"24.04"' if parts == (2,) else '"12.8"', '"12.8.1"'][: len(parts)]


def _minor(numbers: tuple[int, ...]) -> str:
    """Return the first two parts of a version."""
    return f"{numbers[0]}.{numbers[1]}"


def _full(numbers: tuple[int, ...]) -> str:
    """Return a version with three parts."""
    return ".".join(str(part) for part in (*numbers, 0)[:3])


def _digits(numbers: tuple[int, ...]) -> str:
    """Return a version of CUDA as RunPod writes it, with its patch and without points."""
    full = _RUNPOD_CUDA_PATCHES.get(_minor(numbers), _full(numbers)) if len(numbers) == 2 else _full(numbers)
    return full.replace(".", "")
