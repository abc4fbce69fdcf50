"""What can go wrong at any cloud, as a table: a pool is opened, does its work and is left, and no machine stays."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

import skyward as sky
from skyward.testing import (
    DiesInBootstrap,
    ListingLag,
    NeverBoots,
    NoCapacity,
    Preempt,
    Quota,
    SlowApi,
    Unreachable,
)
from tests.simulated.engine import SimulatedEngine
from tests.simulated.pool import compute
from tests.simulated.provider import ALWAYS, Fails, Hangs, ScriptedCloud

NODES = 2
WORKED = "worked"


@sky.function
def work(number: int) -> Any:
    """Take half a minute."""
    return asyncio.sleep(30.0, 2 * number)


def throttled() -> Exception:
    """Refuse, as clouds do that are called too often."""
    return sky.ProvisionError("429 Too Many Requests")


def broken() -> Exception:
    """Fail, as clouds do that are broken."""
    return sky.OfferError("500 Internal Server Error")


# What goes wrong, how the work ends, and how many machines that takes at most.
ROWS: Sequence[tuple[str, list[Any], dict[str, Any], str, int]] = [
    ("nothing", [], {}, WORKED, 2),
    ("throttled before", [Fails("offers", throttled)], {}, "ProvisionError", 0),
    ("throttled launch", [Fails("launch", throttled, times=3)], {}, WORKED, 2),
    ("throttled lists", [Fails("instances", throttled, times=8)], {}, WORKED, 2),
    ("throttled end", [Fails("terminate", throttled, times=3)], {}, WORKED, 2),
    ("broken launch", [Fails("launch", broken, times=3)], {}, WORKED, 2),
    ("broken lists", [Fails("instances", broken, times=8)], {}, WORKED, 2),
    ("broken end", [Fails("terminate", broken, times=3)], {}, WORKED, 2),
    ("broken network set-up", [Fails("open", broken, times=1)], {}, WORKED, 2),
    ("broken release", [Fails("release", broken)], {}, WORKED, 2),
    ("cut launch", [Fails("launch", done=True)], {}, WORKED, 2),
    ("cut launch, cut list", [Fails("launch", done=True), Fails("instances")], {}, WORKED, 2),
    ("cut launch, late list", [Fails("launch", done=True), ListingLag(seconds=6.0)], {}, WORKED, 2),
    ("cut end", [Fails("terminate", done=True, times=2)], {}, WORKED, 2),
    ("silent launch", [Hangs("launch")], {"provision_timeout": 30.0}, WORKED, 2),
    ("silent list", [Hangs("instances", skip=3)], {}, WORKED, 2),
    ("silent end", [Hangs("terminate")], {"shutdown_timeout": 30.0}, WORKED, 2),
    ("no capacity", [NoCapacity()], {"max_provision_attempts": 2}, "CapacityError", 0),
    ("one machine left", [NoCapacity(left=1)], {"max_provision_attempts": 2}, "CapacityError", 2),
    ("no spot", [NoCapacity(spot=True)], {}, WORKED, 2),
    ("no quota", [Quota(machines=0)], {"max_provision_attempts": 2}, "QuotaError", 0),
    ("no boot", [NeverBoots()], {"provision_timeout": 60.0}, WORKED, 3),
    ("no boot ever", [NeverBoots(times=ALWAYS)], {"provision_timeout": 60.0}, "ProvisionError", 6),
    ("late boot", [], {"boots": 500.0}, WORKED, 2),
    ("too late a boot", [], {"boots": 500.0, "provision_timeout": 60.0}, "ProvisionError", 6),
    ("lists that lag", [ListingLag(seconds=45.0)], {}, WORKED, 2),
    ("unreachable", [Unreachable()], {"bootstrap_timeout": 60.0}, WORKED, 3),
    ("unreachable all", [Unreachable(times=ALWAYS)], {"bootstrap_timeout": 60.0}, "ProvisionError", 6),
    ("dead in its bootstrap", [DiesInBootstrap(times=2)], {}, WORKED, 4),
    ("taken early", [Preempt(after=1.0, times=2)], {}, WORKED, 4),
    ("taken at work", [Preempt(after=20.0, times=2)], {}, WORKED, 4),
    ("slow API", [SlowApi(seconds=3.0)], {}, WORKED, 2),
    ("bad key", [Fails("launch", lambda: sky.CredentialsError("403"), times=ALWAYS)], {}, "CredentialsError", 0),
    ("key that may only rent", [Fails("check_end", lambda: sky.CredentialsError("403"))], {}, "CredentialsError", 2),
    ("much at once", [Fails("launch", done=True), Unreachable(), Preempt(after=9.0), SlowApi()], {}, WORKED, 4),
]  # fmt: skip


@pytest.mark.parametrize(
    ("script", "settings", "outcome", "machines"), [pytest.param(*row[1:], id=row[0]) for row in ROWS]
)
def test_a_cloud_that_fails(
    engine: SimulatedEngine, script: list[Any], settings: dict[str, Any], outcome: str, machines: int
) -> None:
    """The work is done or there is one error; what was rented is given back, and so is what machines shared."""
    options = dict(settings)
    cloud = ScriptedCloud(*script, boots=options.pop("boots", 10.0))
    pool, _ = compute(cloud, nodes=NODES, **options)
    assert outcome == _worked(engine, pool)
    assert [] == cloud.there
    assert len(cloud.rows) <= machines
    assert cloud.open == [] or any(isinstance(one, Fails) and one.hook == "release" for one in script)
    assert all(journal.closed for journal in engine.journals)


def _worked(engine: SimulatedEngine, pool: sky.Compute) -> str:
    """Have a pool do its work, and say how that ended."""
    try:
        with pool:
            calls = [work(number) > pool for number in range(6)]
            assert [0, 2, 4, 6, 8, 10] == [engine.result(call) for call in calls]
    except sky.SkywardError as error:
        return type(error).__name__
    return WORKED
