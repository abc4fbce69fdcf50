"""
Sources and pages use the words that an engineer would search for, and functions say what they do by a plain verb.
"""

from __future__ import annotations

import re

import pytest

from checks.tree import ROOT, files, relative, sources

PERSONS = re.compile(r"\b(?:whoever|nobody|somebody|anybody|(?:is|are) told)\b", re.IGNORECASE)

TERMS = {
    r"strays?": "orphan",
    r"vault": "result store",
    r"(?:seen|sees|sent) (?:off|home)": "disconnected, drained, stopped",
    r"tells? whether": "return whether, report whether",
    r"left as (?:it was|they were)": "cleaned up on exit",
    r"costs what it costs": "billing continues",
}
"""Private words, as patterns, and what the field says instead."""

PAGES = (
    ROOT / "README.md",
    # What tests wrote.
    *(path for path in files(".md") if ROOT / "docs" in path.parents and path.name != "faults.md"),
)


def test_the_subject_is_a_thing() -> None:
    """Sources and pages say which program, login, key or thread does it."""
    assert [] == _lines_with(PERSONS)


@pytest.mark.parametrize(("private", "usual"), TERMS.items())
def test_words_are_those_of_the_field(private: str, usual: str) -> None:
    """Sources and pages use the words that an engineer would search for."""
    assert [] == [f"{place}: {usual}" for place in _lines_with(re.compile(rf"\b{private}\b", re.IGNORECASE))]


def _lines_with(pattern: re.Pattern[str]) -> list[str]:
    """List the lines of sources and pages in which a pattern occurs."""
    return [
        f"{relative(path)}:{number}"
        for path in (*sources(), *PAGES)
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if pattern.search(line)
    ]
