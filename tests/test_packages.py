"""Packages that plugins add to an image, and from where."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from skyward import Image, PipIndex, Spec
from skyward.hookspecs import Cluster, Offer
from skyward.packages import with_packages

INDEX = "https://example.org/whl/cpu"


def added(image: Image, wanted: Sequence[str], provider: str = "cloud") -> Image:
    """Add packages for nodes of a provider."""
    offer = Offer(provider=provider, instance_type="small")
    cluster = Cluster(pool_id="a1", pool_name="train", spec=Spec(), offer=offer, provider=provider, nodes=2)
    return with_packages(image, wanted, cluster, INDEX)


def test_only_what_is_added_comes_from_the_index() -> None:
    """The index is scoped, so that it serves nothing else."""
    image = added(Image(pip=["numpy"]), ["torch", "torchvision"])
    assert ("numpy", "torch", "torchvision") == image.pip
    assert (PipIndex(INDEX, ["torch", "torchvision"]),) == image.pip_indexes


@pytest.mark.parametrize("own", ["torch==2.9.1", "Torch>=2", "torch @ file:///torch.whl", "torch[opt-einsum]"])
def test_a_package_that_the_user_names_is_left_alone(own: str) -> None:
    """Neither a second requirement nor an index is put beside it."""
    image = Image(pip=[own])
    assert image == added(image, ["torch"])


def test_an_index_that_the_user_names_is_left_alone() -> None:
    """A mirror goes on serving what it was said to serve."""
    image = added(Image(pip_indexes=[PipIndex("https://mirror.example/whl", ["torch"])]), ["torch", "torchaudio"])
    assert [("torch",), ("torchaudio",)] == [index.packages for index in image.pip_indexes]


@pytest.mark.parametrize(("wanted", "needed"), [("attrs", False), ("attrs==0.1", True), ("nobody-has-this", True)])
def test_nodes_on_this_machine_get_what_it_lacks(wanted: str, needed: bool) -> None:
    """An environment is made only if something is missing, and has all that is wanted then."""
    assert (needed, False) == (bool(added(Image(), [wanted], "local").pip), not added(Image(), [wanted]).pip)
    assert {wanted, "six"} == set(added(Image(pip=["six"]), [wanted], "local").pip)
