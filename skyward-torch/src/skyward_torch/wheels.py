"""
Which packages a node needs for torch, and from which index they come.
"""

from __future__ import annotations

from skyward import Image
from skyward.hookspecs import Offer
from skyward.model.fields.requirement import package_names

__all__ = ["FAMILY", "INDEX", "index_of", "named", "requirements"]

FAMILY = ("torch", "torchvision", "torchaudio")
"""The packages that have to be of one build."""

INDEX = "https://download.pytorch.org/whl"
"""Where the builds for one kind of processor are; the usual index has those for NVIDIA's, of one CUDA."""


def requirements(version: str | None, *, vision: bool | str, audio: bool | str) -> tuple[str, ...]:
    """
    List the packages, as pip takes them.

    Args:
        version: Of torch; None for whichever pip finds.
        vision: Whether torchvision is wanted, or its version.
        audio: Whether torchaudio is wanted, or its version.

    >>> requirements("2.13.0", vision=True, audio=False)
    ('torch==2.13.0', 'torchvision')
    """
    wanted = zip(FAMILY, (version or True, vision, audio), strict=True)
    return tuple(name if of is True else f"{name}=={of}" for name, of in wanted if of)


def index_of(offer: Offer, cuda: str | None) -> str | None:
    """
    Choose the index that has the build for a machine; None for the usual one.

    Args:
        offer: The machine.
        cuda: Which CUDA the build is to be for, such as `"12.8"`; None for the one that the usual index has.

    >>> index_of(Offer(provider="local", instance_type="here"), None)
    'https://download.pytorch.org/whl/cpu'
    >>> index_of(Offer(provider="a", instance_type="b", accelerator_name="H100", accelerator_count=8), "12.8")
    'https://download.pytorch.org/whl/cu128'
    """
    if cuda:
        return f"{INDEX}/cu{cuda.replace('.', '')}"
    return None if offer.accelerator_count else f"{INDEX}/cpu"


def named(image: Image) -> frozenset[str]:
    """
    Return which of the packages an image names itself.

    >>> sorted(named(Image(pip=["torch==2.13.0", "numpy"])))
    ['torch']
    """
    return package_names(image.pip) & frozenset(FAMILY)
