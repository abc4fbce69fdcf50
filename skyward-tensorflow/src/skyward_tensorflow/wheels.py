"""
Which package a node needs for TensorFlow.
"""

from __future__ import annotations

from collections.abc import Callable

from attrs import evolve

from skyward import Image
from skyward.hookspecs import Offer
from skyward.model.fields.requirement import package_names

__all__ = ["FAMILY", "is_here", "named", "requirement", "with_wheel"]

FAMILY = (
    "tensorflow", "tensorflow-cpu", "tensorflow-gpu", "tensorflow-intel", "tensorflow-macos", "tensorflow-rocm",
    "tf-nightly", "tf-nightly-cpu",
)  # fmt: skip
"""The packages that bring TensorFlow, each another build of it."""


def requirement(offer: Offer, version: str | None) -> str:
    """
    Choose the package for a machine, as pip takes it.

    `tensorflow-cpu` is made for x86 only; elsewhere `tensorflow` alone brings nothing for GPUs.

    Args:
        offer: The machine.
        version: Of TensorFlow; None for whichever pip finds.

    >>> requirement(Offer(provider="a", instance_type="b"), "2.21.0")
    'tensorflow-cpu==2.21.0'
    >>> requirement(Offer(provider="a", instance_type="b", accelerator_name="H100", accelerator_count=8), None)
    'tensorflow[and-cuda]'
    """
    if offer.accelerator_count:
        name = "tensorflow[and-cuda]"
    else:
        name = "tensorflow" if offer.architecture == "arm64" else "tensorflow-cpu"
    return name if version is None else f"{name}=={version}"


def named(image: Image) -> frozenset[str]:
    """
    Return which of the packages an image names itself.

    >>> sorted(named(Image(pip=["tf-nightly", "numpy"])))
    ['tf-nightly']
    """
    return package_names(image.pip) & frozenset(FAMILY)


def with_wheel(image: Image, wanted: str) -> Image:
    """
    Add a package to an image, unless the image says itself which TensorFlow there is to be.

    Args:
        image: The image.
        wanted: The package, as pip takes it.

    >>> with_wheel(Image(pip=["numpy"]), "tensorflow-cpu").pip, with_wheel(Image(pip=["tf-nightly"]), "tensorflow").pip
    (('numpy', 'tensorflow-cpu'), ('tf-nightly',))
    """
    return image if named(image) else evolve(image, pip=(*image.pip, wanted))


def is_here(version: str | None, installed: Callable[[str], str | None]) -> bool:
    """
    Return whether any build of TensorFlow is installed, in the version that is asked for.

    Args:
        version: Which; None for any.
        installed: Returns the version of a package that is installed; None for one that is not.

    >>> is_here("2.21.0", {"tensorflow-cpu": "2.21.0"}.get), is_here(None, {}.get)
    (True, False)
    """
    there = {installed(name) for name in FAMILY} - {None}
    return version in there if version is not None else bool(there)
