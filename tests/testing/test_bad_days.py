"""Pools on a cloud that fails: each ends in work that is done or in one error, and no machine is left."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import skyward as sky
from skyward.testing import (
    DiesInBootstrap,
    Fault,
    ListingLag,
    LostResponse,
    NoCapacity,
    Rehearsal,
    SlowApi,
    TerminateFails,
    TooManyRequests,
    Unreachable,
)
from tests.seeds import seeds, share
from tests.waiting import until

pytestmark = pytest.mark.slow


def compute(books: str, *faults: Fault, **options: Any) -> sky.Compute:
    """Make a pool on a cloud on which something goes wrong."""
    given = {"provider": Rehearsal(faults=faults, directory=books), "console": False, "logging": False, **options}
    return sky.Compute(**given)


@sky.function
def double(number: int) -> int:
    """Give twice a number."""
    return 2 * number


@sky.function
def stay(first: str) -> int:
    """Start a process that outlives everything that is not killed; on a second machine, return at once."""
    if not os.path.exists(first):
        child = subprocess.Popen(["sleep", "1000"], start_new_session=True)
        with open(f"{first}.part", "w") as file:
            file.write(str(child.pid))
        os.replace(f"{first}.part", first)
        child.wait()
    return 42


def test_a_label_is_what_tags_lists_logs_and_errors_show(books: str, tmp_path: Path) -> None:
    """A pool is named beside any other keyword."""
    log = sky.LogConfig(file=str(tmp_path / "log"), console=False)
    with compute(books, nodes=2, label="sweep-7", logging=log) as pool:
        assert ("sweep-7", "sweep-7") == (pool.name, pool.snapshot()["name"])
        assert {"sweep-7"} == {one.tags.pool_name for one in Rehearsal(directory=books).machines() if one.tags}
        assert {"sweep-7"} == {one.tags.pool_name for one in sky.instances([Rehearsal(directory=books)]) if one.tags}
    assert "pool=sweep-7" in (tmp_path / "log").read_text()
    with pytest.raises(sky.PoolClosedError, match="sweep-7"):
        double(1) >> pool
    with (
        pytest.raises(sky.CapacityError, match="sweep-7") as caught,
        compute(books, NoCapacity(), label="sweep-7"),
    ):
        pytest.fail("there is no capacity")
    assert "sweep-7" == caught.value.pool


def test_a_good_day(books: str) -> None:
    """The rehearsal is like any other pool."""
    with compute(books, nodes=2) as pool:
        assert [2, 2] == double(1) @ pool
        assert 2 == len(Rehearsal(directory=books).machines())


def test_a_machine_that_is_taken_is_killed_and_replaced(books: str, tmp_path: Path) -> None:
    """With all that ran there; the call is tried again on the next machine."""
    seen: list[object] = []
    cloud, first = Rehearsal(directory=books), tmp_path / "pid"
    pool = compute(books)
    pool.on(sky.InstanceReplaced, seen.append)
    with pool:
        waiting = stay(str(first)) > pool
        until(first.exists)
        [machine] = cloud.machines()
        cloud.preempt(machine.id)
        assert 42 == waiting.result(timeout=30)
        until(lambda: not Path(f"/proc/{first.read_text()}").exists())
        assert machine.id not in {other.id for other in cloud.machines()}
    assert 1 == len(seen)


@pytest.mark.parametrize("fault", [DiesInBootstrap(times=2), Unreachable(times=2)], ids=repr)
def test_machines_that_never_become_nodes_are_replaced(books: str, fault: Fault) -> None:
    """Each in its turn, until one holds."""
    with compute(books, fault, provision_retry_delay=0.05) as pool:
        assert 42 == double(21) >> pool


def test_calls_that_go_wrong_cost_no_machine(books: str) -> None:
    """Nothing is rented twice, and nothing is left."""
    lost, lag, failing = LostResponse(), ListingLag(seconds=1.0), TerminateFails(times=2)
    with compute(books, lost, lag, failing, SlowApi(seconds=0.1), TooManyRequests(times=4), nodes=2) as pool:
        assert [42, 42] == double(21) @ pool
        assert 2 == len(Rehearsal(directory=books).machines())


def test_what_a_killed_client_left_is_found_and_ended(books: str, tmp_path: Path) -> None:
    """By any client that reads the account, with the tags that say whose it was; its processes have gone with it."""
    first = tmp_path / "pid"
    script = f"""
import skyward as sky
from skyward.testing import Rehearsal
from tests.testing.test_bad_days import stay
with sky.Compute(provider=Rehearsal(directory={books!r}), console=False, logging=False) as pool:
    stay({str(first)!r}) >> pool
"""
    with subprocess.Popen([sys.executable, "-c", script], cwd=Path(__file__).parents[2]) as client:
        until(first.exists)
        client.kill()
    [left] = asyncio.run(Rehearsal(directory=books).skyward_owned())
    assert left.tags is not None
    assert "@" in left.tags.owner
    until(lambda: not Path(f"/proc/{first.read_text()}").exists())
    asyncio.run(Rehearsal(directory=books).skyward_end([left, left]))
    assert [] == Rehearsal(directory=books).machines()


def had(cloud: Rehearsal) -> str:
    """Have a bad day: give the work's result, or the error that it ended in."""
    options = {"provision_timeout": 4, "bootstrap_timeout": 20, "provision_retry_delay": 0.1, "shutdown_timeout": 20}
    pool = sky.Compute(provider=cloud, nodes=2, reconcile_tick_interval=0.3, console=False, logging=False, **options)
    try:
        with pool:
            return str(pool.map(double, range(20)))
    except sky.SkywardError as error:
        return type(error).__name__


WORKED = str([2 * number for number in range(20)])


@pytest.mark.parametrize("seed", [1, 3, 21])
def test_a_bad_day_ends_well_or_in_one_error(books: str, seed: int) -> None:
    """And no machine is left, which the books say; these days have no machine that has to be waited for."""
    assert WORKED == had(Rehearsal.bad_day(seed, directory=books))


@pytest.mark.chaos
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", seeds("bad days", share(20)))
def test_a_drawn_day_ends_well_or_in_one_error(books: str, seed: int) -> None:
    """And no machine is left after it."""
    cloud = Rehearsal.bad_day(seed, directory=books)
    print(f"{cloud!r} {had(cloud)}")
    assert [] == cloud.machines()
