"""Tags within the limits of a cloud's names and labels."""

from __future__ import annotations

import string

import pytest
from hypothesis import given, strategies as st

from skyward.providers.labels import escaped, fitting, node_number, unescaped


@given(st.text())
def test_what_is_written_is_read_again(text: str) -> None:
    """Whatever it holds, and in characters that every cloud allows."""
    assert set(escaped(text)) <= set(string.ascii_lowercase + string.digits + "-_")
    assert text == unescaped(escaped(text))


@given(st.text(max_size=20), st.integers(0, 30))
def test_what_does_not_fit_is_cut_between_characters(text: str, room: int) -> None:
    """What is left is the beginning of the text."""
    found = fitting(text, room, escaped)
    assert len(found) <= room
    assert text.startswith(unescaped(found))


@pytest.mark.parametrize(("text", "node"), [("0", 0), ("12", 12), ("", None), ("-1", None), ("²", None), ("a", None)])
def test_only_digits_name_a_node(text: str, node: int | None) -> None:
    """Other programs may have written a name of the kind."""
    assert node == node_number(text)
