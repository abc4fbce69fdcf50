"""A fact that cannot be read hides no machine, and one offer that cannot be read no other."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

from skyward.errors import OfferError
from skyward.providers.facts import facts, identified, sold


def fails(error: Exception) -> Callable[[], Any]:
    """Return what cannot be read."""

    def read() -> Any:
        raise error

    return read


@pytest.mark.parametrize(
    "error",
    [
        ValueError("a lot"),
        TypeError("x"),
        KeyError("price"),
        IndexError("0"),
        AttributeError("get"),
        OverflowError("1"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_fact_that_cannot_be_read_is_not_known(error: Exception, caplog: pytest.LogCaptureFixture) -> None:
    """With one warning that names provider, machine and field."""
    fact = facts("x", f"i-{type(error).__name__}")
    assert 3 == fact("price", lambda: 3)
    assert [None, None] == [fact("price", fails(error)) for _ in range(2)]
    [line] = caplog.messages
    assert f"provider=x instance='i-{type(error).__name__}' field=price reason={type(error).__name__}: " in line


def test_a_mistake_of_ours_is_none_of_the_clouds() -> None:
    """It is not swallowed."""
    with pytest.raises(ZeroDivisionError):
        facts("x", "i-1")("price", lambda: 1 // 0)


def test_rows_that_say_which_machine_they_are_stay(caplog: pytest.LogCaptureFixture) -> None:
    """The others are left out with a warning; where none says it, that is an error."""
    rows = [{"id": "a"}, {"name": "b"}, 3, None]
    assert [{"id": "a"}] == identified(rows, lambda row: row["id"], provider="y")
    assert 3 == len(caplog.messages)
    assert [] == identified([], lambda row: row["id"], provider="y")
    with pytest.raises(ValueError, match="id"):
        identified(rows[1:], lambda row: row["id"], provider="y")


def test_one_offer_that_cannot_be_read_leaves_the_others(caplog: pytest.LogCaptureFixture) -> None:
    """What is no offer is none; where nothing can be read, that is an error."""
    with caplog.at_level(logging.WARNING):
        assert [2.0] == sold(["2", "a lot", "0"], lambda text: float(text) or None, provider="z")
    assert "offer.unreadable provider=z reason=ValueError: could not convert" in caplog.text
    assert [] == sold(["0"], lambda text: float(text) or None, provider="z")
    with pytest.raises(OfferError, match="Nothing of what z lists can be read: ValueError: could not"):
        sold(["a lot"], float, provider="z")
