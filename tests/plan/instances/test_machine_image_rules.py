"""Machine images: what one holds, which one is booted, which are meant."""

from __future__ import annotations

from typing import Any

import pytest

from skyward.model.instances.machine_image import MachineImage
from skyward.model.spec.image import Image
from skyward.model.spec.op import AptInstall, PipInstall, Shell
from skyward.plan.instances.machine_image_rules import bootable, chosen, content_hash


def image(name: str, **facts: Any) -> MachineImage:
    """Make an image of a cloud."""
    return MachineImage(**{"id": name, "provider": "cloud", "content_hash": "4f1e", "made_at": 100.0, **facts})


def test_what_is_installed_names_an_image() -> None:
    """Whatever changes what is on a machine's disk counts, and nothing else does."""
    torch = Image(pip=["torch"])
    steps = [
        (),
        (Shell("true"),),
        (Shell("true", scope="environment"),),
        (AptInstall(["git"]),),
        (PipInstall(["git"]),),
    ]
    hashes = [content_hash(torch, ops) for ops in steps]
    assert len(steps) == len(set(hashes))
    assert {torch.content_hash()} == {each.partition("-")[0] for each in hashes}
    assert hashes == [content_hash(Image(pip=["torch"], env={"DEBUG": "1"}), ops) for ops in steps]


@pytest.mark.parametrize(
    ("images", "booted"),
    [
        ([], None),
        ([image("a")], "a"),
        ([image("a", content_hash="5e")], None),
        ([image("a", content_hash="4f1e-0a")], None),
        ([image("a", state="pending"), image("b", state="failed")], None),
        ([image("old", made_at=1.0), image("new", made_at=2.0), image("newer", made_at=3.0, state="pending")], "new"),
        ([image("unknown", made_at=None), image("a")], "a"),
    ],
)
def test_the_newest_that_is_ready_is_booted(images: list[MachineImage], booted: str | None) -> None:
    """Of those that hold exactly what is wanted."""
    found = bootable(images, "4f1e")
    assert booted == (found and found.id)


@pytest.mark.parametrize(
    ("wishes", "meant"),
    [
        ({}, "abcd"),
        ({"hashes": ["4f1e"]}, "ab"),
        ({"hashes": ["4f1e-0a"]}, "b"),
        ({"hashes": ["4f"]}, ""),
        ({"older_than": 50.0}, "ac"),
        ({"older_than": 50.0, "hashes": ["4f1e", "5e"]}, "ac"),
    ],
)
def test_images_are_meant_by_hash_and_age(wishes: dict[str, Any], meant: str) -> None:
    """A hash means also what plugins add to it; what does not say when it was made is never too old."""
    there = [
        image("a"),
        image("b", content_hash="4f1e-0a", made_at=190.0),
        image("c", content_hash="5e"),
        image("d", content_hash="6d", made_at=None),
    ]
    assert meant == "".join(each.id for each in chosen(there, now=200.0, **wishes))
