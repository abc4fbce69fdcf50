"""Answers that are not what they should be."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from typing import Any

import pytest

from skyward.rest import Misread, checked_answer as answer

ROW: dict[str, Any] = {
    "name": "n1",
    "price": 0.5,
    "written": "0.89",
    "none": None,
    "nan": float("nan"),
    "minus": -1,
    "yes": True,
    "half": 1.5,
    "big": 2**60 + 1,
    "empty": "",
    "list": [1],
    "in": {"deep": "x"},
    "state": "frozen",
}


@pytest.mark.parametrize(
    ("read", "name", "expected"),
    [
        (answer.text, "name", "n1"),
        (answer.text, "in.deep", "x"),
        (answer.number, "price", 0.5),
        (answer.whole, "big", 2**60 + 1),
        (answer.flag, "yes", True),
        (answer.listed, "list", [1]),
    ],
)
def test_what_is_there_is_read(read: Callable[[Any, str], Any], name: str, expected: object) -> None:
    """A field of the right kind comes back as it is."""
    assert expected == read(ROW, name)


@pytest.mark.parametrize(
    ("read", "name", "reason"),
    [
        (answer.text, "gone", "the field 'gone' is missing"),
        (answer.text, "in.gone", "the field 'in.gone' is missing"),
        (answer.text, "name.deep", "no object with a field 'name.deep' but 'n1'"),
        (answer.text, "none", "'none' is not text but None"),
        (answer.text, "empty", "'empty' is not text but ''"),
        (answer.number, "none", "'none' is not a number of at least 0 but None"),
        (answer.number, "written", "'written' is not a number of at least 0 but '0.89'"),
        (answer.number, "nan", "'nan' is not a number of at least 0 but nan"),
        (answer.number, "minus", "'minus' is not a number of at least 0 but -1"),
        (answer.number, "yes", "'yes' is not a number of at least 0 but True"),
        (answer.whole, "half", "'half' is not a whole number but 1.5"),
        (answer.flag, "price", "'price' is not true or false but 0.5"),
        (answer.listed, "in", "'in' is not a list but an object"),
        (answer.listed, "none", "'none' is not a list but None"),
    ],
)
def test_what_is_not_as_it_should_be_is_said(read: Callable[[Any, str], Any], name: str, reason: str) -> None:
    """No value is guessed where one is missing or of another kind."""
    with pytest.raises(Misread, match=re.escape(reason)):
        read(ROW, name)


def test_a_number_may_be_written_where_the_api_does_so() -> None:
    """A price as text is a number only where the API's documents say so, and if it is one."""
    assert 0.89 == answer.number(ROW, "written", written=True)
    with pytest.raises(Misread, match="'name' is not a number but 'n1'"):
        answer.number(ROW, "name", written=True)


def test_an_unknown_word_is_no_state() -> None:
    """A new word is reported, with those that are known."""
    with pytest.raises(Misread, match="'state' is not one of active, new but 'frozen'"):
        answer.word(ROW, "state", {"new": 1, "active": 2})


@pytest.mark.parametrize("name", ["none", "gone", "in.gone", "name.deep"])
def test_what_may_be_missing_is_none(name: str) -> None:
    """A field that is optional is None where it is missing or null."""
    assert answer.optional(ROW, name, answer.text) is None
    with pytest.raises(Misread, match="'price' is not text"):
        answer.optional(ROW, "price", answer.text)


def test_one_row_that_cannot_be_read_leaves_the_others_for_sale(caplog: pytest.LogCaptureFixture) -> None:
    """It stands in the log; only if none can be read there is an error."""
    with caplog.at_level(logging.WARNING):
        rows = [{"p": 0.5}, {"p": None}]
        assert [0.5] == answer.readable(rows, lambda row: answer.number(row, "p"), provider="shed")
    reason = "Misread: 'p' is not a number of at least 0 but None"
    assert [f"offer.unreadable provider=shed reason={reason} row={{'p': None}}"] == caplog.messages
    assert [] == answer.readable([], lambda row: answer.number(row, "p"))
    with pytest.raises(Misread, match="'p' is missing"):
        answer.readable([{}], lambda row: answer.number(row, "p"))
