"""Machine images: what one holds, which one is booted, which are meant."""

from __future__ import annotations

from typing import Any

import pytest

from skyward.errors import UsageError
from skyward.model.instances.machine_image import MachineImage
from skyward.model.spec.image import Image
from skyward.model.spec.op import AptInstall, PipInstall, Shell
from skyward.plan.instances.machine_image_rules import HEADER, age, bootable, chosen, content_hash, row


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


def test_a_row_has_a_column_for_each_name() -> None:
    """Whatever is known."""
    known = image("a", region="here", architecture="arm64", size_gb=30.0, monthly_cost=1.5)
    expected = ("4f1e", "a", "cloud", "here", "arm64", "ready", "30 GB", "$1.50/month", "1 h")
    assert expected == row(known, now=3700.0)
    assert len(HEADER) == len(row(image("a", made_at=None), now=0.0))


@pytest.mark.parametrize(
    ("words", "seconds"), [("30d", 2592000), ("2w", 1209600), ("90min", 5400), ("0.5h", 1800), ("7 s", 7)]
)
def test_an_age_is_a_number_with_a_unit(words: str, seconds: float) -> None:
    """In the units that ages are shown in."""
    assert seconds == age(words)


@pytest.mark.parametrize("words", ["", "30", "d", "-1d", "1y", "1d 2h"])
def test_what_is_no_age_is_refused(words: str) -> None:
    """The error says how one is written."""
    with pytest.raises(UsageError, match="Write 30d"):
        age(words)
