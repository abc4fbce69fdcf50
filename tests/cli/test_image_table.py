"""The table of machine images has a word for whatever is known."""

from __future__ import annotations

from typing import Any

import pytest

from skyward.cli.image_table import HEADER, age, row
from skyward.errors import UsageError
from skyward.model.instances.machine_image import MachineImage


def image(name: str, **facts: Any) -> MachineImage:
    """Make an image of a cloud."""
    return MachineImage(**{"id": name, "provider": "cloud", "content_hash": "4f1e", "made_at": 100.0, **facts})


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
