"""Which package nodes get for TensorFlow."""

from __future__ import annotations

import pytest

from skyward import Image
from skyward.hookspecs import Offer
from skyward_tensorflow.wheels import is_here, named, requirement, with_wheel

GPU = Offer(provider="cloud", instance_type="p5", accelerator_name="H100", accelerator_count=8)
CPU = Offer(provider="cloud", instance_type="m7", architecture="x86_64")
ARM = Offer(provider="cloud", instance_type="m7g", architecture="arm64")


@pytest.mark.parametrize(
    ("offer", "version", "expected"),
    [
        (CPU, None, "tensorflow-cpu"),
        (CPU, "2.21.0", "tensorflow-cpu==2.21.0"),
        (ARM, "2.21.0", "tensorflow==2.21.0"),
        (GPU, None, "tensorflow[and-cuda]"),
        (GPU, "2.21.0", "tensorflow[and-cuda]==2.21.0"),
    ],
)
def test_the_package_follows_the_machine(offer: Offer, version: str | None, expected: str) -> None:
    """The one for CPUs only is made for x86 only."""
    assert expected == requirement(offer, version)


@pytest.mark.parametrize("own", ["tensorflow==2.20.0", "TensorFlow-CPU>=2", "tensorflow[and-cuda]", "tf-nightly"])
def test_a_package_that_the_user_names_is_left_alone(own: str) -> None:
    """Whichever build of TensorFlow it is."""
    image = Image(pip=["numpy", own])
    assert 1 == len(named(image))
    assert image == with_wheel(image, "tensorflow-cpu")


def test_others_are_no_tensorflow() -> None:
    """Such as those that are made for it."""
    theirs = ("tensorflow-datasets", "tensorflow_probability")
    assert (*theirs, "tensorflow-cpu") == with_wheel(Image(pip=theirs), "tensorflow-cpu").pip


@pytest.mark.parametrize(
    ("version", "there", "expected"),
    [
        (None, {"tensorflow-cpu": "2.21.0"}, True),
        ("2.21.0", {"tensorflow": "2.21.0"}, True),
        ("2.20.0", {"tensorflow": "2.21.0"}, False),
        (None, {}, False),
    ],
)
def test_any_build_that_is_installed_will_do(version: str | None, there: dict[str, str], expected: bool) -> None:
    """On this machine, if it is of the version that is asked for."""
    assert expected == is_here(version, there.get)
