"""Faults are values that read as they are written, and a seed says the same every time."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from skyward import testing
from skyward.errors import ConfigError
from skyward.testing import DiesInBootstrap, NeverBoots, NoCapacity, Preempt, Rehearsal, Unreachable
from skyward.testing.fault import LONGEST_LIFE, bad_day, fate

SEEDS = st.integers(0, 2**32)


@given(SEEDS)
def test_a_bad_day_can_be_had_again_from_what_it_prints(seed: int) -> None:
    """The repr is a program that makes the same day."""
    day = Rehearsal.bad_day(seed)
    assert day == eval(repr(day), vars(testing))
    assert day == Rehearsal.bad_day(seed)
    assert 2 <= len(day.faults) <= 4


def test_days_differ() -> None:
    """Every kind of fault comes up on one day or another."""
    kinds = {type(each).__name__ for seed in range(200) for each in bad_day(seed)}
    assert set(testing.__all__) - {"Fault", "Rehearsal"} == kinds
    assert 100 < len({bad_day(seed) for seed in range(200)})


def test_a_day_without_a_seed_says_which_it_is() -> None:
    """So that it can be had again."""
    day = Rehearsal.bad_day()
    assert day == Rehearsal.bad_day(day.seed)


def test_faults_of_machines_come_one_after_the_other() -> None:
    """The first machines of a pool have them, in the order in which they are written; then all is well."""
    faults = [NeverBoots(), NoCapacity(), Unreachable(times=2), DiesInBootstrap()]
    coming = [type(fate(faults, number, seed=1)).__name__ for number in range(5)]
    assert ["NeverBoots", "Unreachable", "Unreachable", "DiesInBootstrap", "NoneType"] == coming


@given(SEEDS)
def test_the_seed_says_when_a_machine_is_taken(seed: int) -> None:
    """Always the same moment for the same machine, where the fault names none."""
    first, again = (fate([Preempt()], 0, seed) for _ in range(2))
    assert isinstance(first, Preempt)
    assert first == again
    assert 0 < (first.after or 0) <= LONGEST_LIFE


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: Preempt(after=-1), "after must"),
        (lambda: Preempt(times=0), "times must"),
        (lambda: testing.SlowBoot(seconds=float("nan")), "seconds must"),
        (lambda: testing.Quota(machines=-1), "machines must"),
        (lambda: NoCapacity(left=1.5), "left must"),  # type: ignore[arg-type]
        (lambda: Rehearsal(faults=["no capacity"]), "faults must be a list of faults"),  # type: ignore[list-item]
        (lambda: Rehearsal(faults=[NoCapacity]), "faults must be a list of faults"),  # type: ignore[list-item]
        (lambda: Rehearsal(seed=-1), "seed must"),
    ],
)
def test_what_makes_no_sense_is_refused(wrong: Any, message: str) -> None:
    """The parameter is named."""
    with pytest.raises(ConfigError, match=message):
        wrong()


def test_one_fault_needs_no_list() -> None:
    """It is clear what is meant."""
    assert Rehearsal(faults=[Preempt()]) == Rehearsal(faults=Preempt())  # type: ignore[arg-type]
