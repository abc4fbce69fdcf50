"""The provider of docs/write-a-provider.md is complete, short, and passes the checks of all providers."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from skyward.testing.conformance import ProviderConformance

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
