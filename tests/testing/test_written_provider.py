"""The provider of docs/write-a-provider.md is complete, short, and passes the checks of all providers."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import Any

import attrs
import pytest

import skyward as sky
from skyward.testing.conformance import ProviderConformance, Switches

PAGE = (Path(__file__).parents[2] / "docs" / "write-a-provider.md").read_text(encoding="utf-8")
CODE, *_ = re.findall(r"^```python\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)


class TestShed(ProviderConformance):
    """As a reader would paste it."""

    @pytest.fixture
    def provider(self, books: str) -> Any:
        """Run the page, and give its provider."""
        names: dict[str, Any] = {"__name__": "page"}
        exec(CODE, names)
        return names["Shed"](books)


def page(name: str) -> str:
    """Read a page of the docs."""
    return (Path(__file__).parents[2] / "docs" / name).read_text(encoding="utf-8")


def test_both_pages_promise_the_same_names() -> None:
    """What is public is one sentence, and each of its modules exists."""
    found = [re.findall(r"^Public, and promised to stay.*?; no others\.$", text, re.DOTALL | re.MULTILINE) for text in
             (PAGE, page("plugins.md"))]  # fmt: skip
    assert 1 == len(found[0])
    assert found[0] == found[1]
    modules = re.findall(r"`([a-z_.]+)`", found[0][0])
    assert "skyward.provider" in modules
    assert all(import_module(name).__name__ == name for name in modules)


def test_each_builder_of_a_plugin_stands_beside_its_hook() -> None:
    """In the table of plugins.md, and none is missing."""
    rows = dict(re.findall(r"^\| `(with_\w+)` \| `(skyward_\w+)` \|", page("plugins.md"), re.MULTILINE))
    assert {name for name in dir(sky.Plugin) if name.startswith("with_")} == set(rows)
    for builder, hook in rows.items():
        made = getattr(sky.Plugin.create("sample"), builder)(print)
        assert print is getattr(made, hook.removeprefix("skyward_")), builder


def test_the_page_counts_the_checks_and_the_defects() -> None:
    """As many as there are."""
    checks = [name for name in dir(ProviderConformance) if name.startswith("test_")]
    assert f"The {len(checks)} checks launch" in PAGE
    defects = (Path(__file__).parents[1] / "clouds" / "heron" / "test_defects.py").read_text(encoding="utf-8")
    assert f"plants {len(re.findall(r'^    Defect[(]', defects, re.MULTILINE))} defects" in PAGE


def test_each_switch_is_on_the_page() -> None:
    """And has a row that says what is checked."""
    told = set(re.findall(r"`(\w+)`", PAGE[PAGE.index("| switch | what is checked |") :].partition("\n\n")[0]))
    assert {each.name for each in attrs.fields(Switches)} - {"calm", "shows_stock"} <= told


def test_it_is_short() -> None:
    """So that it is read."""
    assert len(CODE.splitlines()) <= 100


def test_every_field_and_fault_of_the_rehearsal_page_exists() -> None:
    """The table of faults has all of them, and no others."""
    from skyward import testing

    page = (Path(__file__).parents[2] / "docs" / "rehearsal.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| `") and "(" in line.split("|")[1]]
    written = {row.split("`")[1].partition("(")[0] for row in rows}
    assert set(testing.__all__) - {"Fault", "Rehearsal"} == written
