"""What a setting accepts is read from its class."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from skyward.model.fields.log_config import LogConfig
from skyward.model.spec.image import Image
from skyward.model.spec.volumes import Disk
from skyward.plan.config.field_types import accepted, parsed_as, required


def test_a_field_accepts_what_its_converter_does() -> None:
    """Which is more than it holds."""
    assert (str, bool) == (accepted(LogConfig)["level"], accepted(LogConfig)["console"])
    assert {"pip", "env"} <= accepted(Image).keys()


def test_a_function_says_what_it_accepts() -> None:
    """By its annotations; what says nothing accepts anything."""

    def make(size: int, *rest: int, name: str = "", other=None, **more: int) -> None: ...  # type: ignore[no-untyped-def]

    assert {"size": int, "name": str, "other": Any} == accepted(make)
    assert ("size",) == required(make)
    assert ("name",) == required(Disk)


@pytest.mark.parametrize(
    ("text", "hint", "value"),
    [
        ("4", int, 4),
        ("0.5", float | None, 0.5),
        ("true", bool, True),
        ("4", int | str, "4"),
        ("four", int, "four"),
        ("true", bool | Literal["rich"], "true"),
        ("[2, 8]", int | tuple[int, int], [2, 8]),
        ("4", Any, "4"),
    ],
)
def test_text_is_read_as_what_a_setting_takes(text: str, hint: Any, value: object) -> None:
    """It stays text where that is taken, and where it is nothing else."""
    assert value == parsed_as(text, hint)
