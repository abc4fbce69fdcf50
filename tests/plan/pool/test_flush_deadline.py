"""The end of a pool waits for handlers while they get on, warns of it, and gives up one that stands still."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from skyward.plan.pool.flush_deadline import STUCK_S, WARN_AFTER_S, WARN_EVERY_S, FlushDeadline, Left


@pytest.mark.parametrize(
    ("lines", "others", "expected"),
    [
        (0, 0, "nothing"),
        (1, 0, "1 log line"),
        (2, 0, "2 log lines"),
        (0, 1, "1 event"),
        (35945, 12, "35,945 log lines and 12 other events"),
        (1, 1, "1 log line and 1 other event"),
    ],
)
def test_what_is_left_reads_well(lines: int, others: int, expected: str) -> None:
    """What is left is counted, singular and plural."""
    assert expected == str(Left(lines=lines, others=others, handler="save"))


def test_a_warning_comes_soon_and_then_seldom() -> None:
    """The first one comes after two seconds, the next ones five seconds apart."""
    patience = FlushDeadline.at(100.0, handled=0)
    assert not patience.warns(100.0 + WARN_AFTER_S - 0.01)
    assert patience.warns(100.0 + WARN_AFTER_S)
    again = patience.warned(100.0 + WARN_AFTER_S)
    assert not again.warns(100.0 + WARN_AFTER_S + WARN_EVERY_S - 0.01)
    assert again.warns(100.0 + WARN_AFTER_S + WARN_EVERY_S)


def test_a_handler_that_is_in_a_hurry_has_no_more_than_that() -> None:
    """A pool that was left by an interrupt waits for a time in all, whatever handlers do."""
    patience = FlushDeadline.at(0.0, handled=0, within=5.0).seen(4.9, handled=1)
    assert not patience.ended(4.99)
    assert patience.ended(5.0)


@given(st.lists(st.floats(min_value=0.0, max_value=STUCK_S * 0.99), min_size=1, max_size=50))
def test_handlers_that_get_on_are_never_given_up(calls_s: list[float]) -> None:
    """However many calls there are: the wait ends only when one of them takes too long."""
    now, patience = 0.0, FlushDeadline.at(0.0, handled=0)
    for number, took in enumerate(calls_s, 1):
        now += took
        assert not patience.ended(now)
        patience = patience.seen(now, handled=number)
    assert not patience.ended(now + STUCK_S * 0.99)
    assert patience.ended(now + STUCK_S)


@given(st.floats(min_value=0, max_value=100), st.none() | st.floats(min_value=0, max_value=100))
def test_there_is_something_to_decide_after_each_wait(passed: float, within: float | None) -> None:
    """Nothing is overslept, and nothing is asked for over and over."""
    patience = FlushDeadline.at(0.0, handled=0, within=within)
    after = passed + patience.wait_s(passed)
    # The sum of two floats may be a hair below the moment that it stands for.
    late = after + 1e-6
    assert patience.warns(late) or patience.ended(late)
