"""What calls are expected to take follows what they took, and not one that is unlike the others."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from skyward.plan.pool.durations import UNKNOWN, Durations


@given(st.lists(st.floats(1e-5, 100.0), min_size=1, max_size=60))
def test_an_expectation_lies_within_what_was_seen(seen: list[float]) -> None:
    """Whatever was seen."""
    durations = Durations()
    for seconds in seen:
        durations.learn(b"f", seconds)
    assert min(seen) * 0.999 <= durations.of(b"f") <= max(seen) * 1.001
    assert durations.of(b"g") == UNKNOWN


def test_one_straggler_moves_it_little() -> None:
    """A call of a minute among calls of 10 ms: the next ones are still sent ahead."""
    durations = Durations()
    for _ in range(100):
        durations.learn(b"f", 0.01)
    durations.learn(b"f", 60.0)
    assert durations.of(b"f") < 0.015


def test_a_function_that_becomes_slow_is_known_to_be_after_some_calls() -> None:
    """A thousand times slower, and forty calls."""
    durations = Durations()
    for _ in range(100):
        durations.learn(b"f", 0.001)
    for _ in range(40):
        durations.learn(b"f", 1.0)
    assert durations.of(b"f") > 0.5


def test_a_call_that_took_no_time_can_be_followed_by_longer_ones() -> None:
    """A clock may see none."""
    durations = Durations()
    durations.learn(b"f", 0.0)
    for _ in range(100):
        durations.learn(b"f", 0.01)
    assert durations.of(b"f") == pytest.approx(0.01, rel=0.5)


def test_functions_that_were_not_seen_for_long_are_forgotten() -> None:
    """A program that makes a function for each call is not remembered for ever."""
    durations = Durations()
    for number in range(5000):
        durations.learn(number.to_bytes(4, "little"), 1.0)
    assert durations.of((0).to_bytes(4, "little")) == UNKNOWN
    assert durations.of((4999).to_bytes(4, "little")) == 1.0
