"""The reference has every public name once, each with the object that it is."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import skyward as sky

PAGES = sorted((Path(__file__).parents[2] / "docs").glob("reference-*.md"))
ENTRY = re.compile(
    r"^## sky\.(\w+)\n\n::: (\S+)$|^::: (\S+)\n    options:\n      show_root_heading: true\n      heading: sky\.(\w+)$",
    re.MULTILINE,
)
ELSEWHERE = {"Pool": "Compute", "Callback": "", "DEFAULT_IMAGE": "", "sky": ""}
"""Names that have no entry of their own, and under which one they are; what is no class or function has none."""


def entries() -> dict[str, str]:
    """Return the names that have an entry, and where each is."""
    found = [match for page in PAGES for match in ENTRY.finditer(page.read_text(encoding="utf-8"))]
    return {name or other: place or somewhere for name, place, somewhere, other in (each.groups() for each in found)}


def is_documented(name: str) -> bool:
    """Return whether a name is a class or a function with a text of its own, and not a type's alias or a module."""
    thing: Any = getattr(sky, name)
    own = getattr(thing, "__module__", "").partition(".")[0].startswith("skyward")
    return own and not isinstance(thing, ModuleType) and name not in ELSEWHERE


def test_every_public_name_has_an_entry() -> None:
    """A name that is new is added to the page of its kind."""
    public = {name for name in dir(sky) if not name.startswith("_") and is_documented(name)}
    assert public == set(entries())
    assert set(ELSEWHERE) <= set(dir(sky))


@pytest.mark.parametrize(("name", "place"), entries().items(), ids=str)
def test_an_entry_shows_what_its_name_is(name: str, place: str) -> None:
    """The place that the builder of the site reads is where the object is."""
    module, _, own = place.rpartition(".")
    assert getattr(import_module(module), own) is getattr(sky, name)
