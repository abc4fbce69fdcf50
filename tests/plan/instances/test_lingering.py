"""Which machines linger, for how long, and which pool takes them."""

from __future__ import annotations

import pytest

import skyward as sky
from skyward.model.instances.machine import EndsOwnBill, ProviderFacts
from skyward.plan.instances.lingering import (
    LEAST,
    MARGIN,
    OVERDUE,
    Lingering,
    check_budget,
    check_linger,
    choose_lingering,
    granted,
    is_over,
)

CLOUD = ProviderFacts(name="cloud", ends_own_bill=True, end_command=("poweroff",))


def left(pool_id: str, *, key: str = "k", machines: int = 1, ends_at: float = 600.0) -> Lingering:
    """Leave a pool."""
    return Lingering(
        pool_id=pool_id,
        pool_name="train",
        provider="cloud",
        source="s",
        key=key,
        machines=tuple(f"{pool_id}-{number}" for number in range(machines)),
        hourly_rate=1.0,
        since=0.0,
        ends_at=ends_at,
    )


def test_a_machine_that_ends_itself_may_linger() -> None:
    """Then nothing has to be said."""
    assert check_linger(CLOUD, linger=600.0, ttl=600.0) == ""


@pytest.mark.parametrize(("ends", "command"), [(False, ("poweroff",)), (True, ())])
def test_a_machine_that_cannot_end_its_own_bill_may_not(ends: EndsOwnBill, command: tuple[str, ...]) -> None:
    """It would be billed for ever."""
    facts = ProviderFacts(name="cloud", ends_own_bill=ends, end_command=command)
    with pytest.raises(sky.ConfigError, match="cannot end their own bill"):
        check_linger(facts, linger=600.0, ttl=600.0)
    assert check_linger(facts, linger=0.0, ttl=600.0) == ""


@pytest.mark.parametrize("ttl", [None, 0.0])
def test_nothing_lingers_without_a_watchdog(ttl: float | None) -> None:
    """`ttl=0` disarms what ends a machine that waits."""
    with pytest.raises(sky.ConfigError, match="needs the watchdog that ttl="):
        check_linger(CLOUD, linger=600.0, ttl=ttl)


def test_a_disk_does_not_linger() -> None:
    """Its machine holds it, and a watchdog would not unmount it; a bucket is left when its pool is."""
    with pytest.raises(sky.ConfigError, match="would keep the disk 'data' at /data at machines without a client"):
        check_linger(CLOUD, linger=600.0, ttl=600.0, volumes=[sky.Disk("data", mount="/data")])
    assert check_linger(CLOUD, linger=600.0, ttl=600.0, volumes=[sky.Volume("data", "/data")]) == ""
    assert check_linger(CLOUD, linger=0.0, ttl=600.0, volumes=[sky.Disk("data")]) == ""


def test_machines_that_are_there_anyway_are_exempt() -> None:
    """A warning says so, whatever ends them."""
    facts = ProviderFacts(name="ssh", ends_own_bill=True, rents=False)
    assert "changes nothing at ssh" in check_linger(facts, linger=600.0, ttl=None)


def test_waiting_may_not_use_up_the_budget() -> None:
    """Two at 3 USD an hour for ten minutes are 1 USD."""
    check_budget(linger=600.0, nodes=2, rate=3.0, budget=1.01, pool="train")
    check_budget(linger=600.0, nodes=2, rate=3.0, budget=None, pool="train")
    check_budget(linger=600.0, nodes=2, rate=0.0, budget=0.01, pool="train")
    with pytest.raises(sky.BudgetExceededError, match=r"2 machines at \$3.00 an hour cost \$1.00 after") as caught:
        check_budget(linger=600.0, nodes=2, rate=3.0, budget=1.0, pool="train")
    assert (caught.value.budget, caught.value.cost) == (1.0, 1.0)


def test_less_than_is_worth_it_is_nothing() -> None:
    """No pool would find them."""
    assert granted(linger=600.0, rate=3600.0, left=LEAST - 1, life=None) == 0.0
    assert granted(linger=600.0, rate=3600.0, left=LEAST, life=None) == LEAST
    assert granted(linger=600.0, rate=0.0, left=None, life=-3.0) == 0.0


def test_a_pool_takes_those_of_its_kind() -> None:
    """In the order of its specs, then the most machines."""
    known = [left("a", key="y"), left("b", key="x"), left("c", key="x", machines=3), left("d", key="z")]
    assert [one.pool_id for one in choose_lingering(known, ["x", "y"], now=0.0)] == ["c", "b", "a"]


def test_those_that_are_about_to_end_are_left_alone() -> None:
    """Their watchdogs may be faster."""
    assert choose_lingering([left("a", ends_at=100.0)], ["k"], now=100.0 - MARGIN) == []


def test_what_should_have_ended_is_over_after_a_while() -> None:
    """It is released by the next pool, and never while a pool may still claim it."""
    one = left("a", ends_at=100.0)
    assert not is_over(one, now=100.0 + OVERDUE)
    assert is_over(one, now=100.0 + OVERDUE + 1)
