"""A pool that another program ends stays ended, and its own program gets an error."""

from __future__ import annotations

import asyncio
import os
import stat
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import skyward as sky
from skyward.engine.pool.stopped_elsewhere import KEPT, CallOff, call_off
from skyward.hookspecs import Offer
from tests.simulated.engine import SimulatedEngine
from tests.simulated.pool import compute
from tests.simulated.provider import ScriptedCloud


@sky.function
def nap(seconds: float) -> Any:
    """Take so long."""
    return asyncio.sleep(seconds)


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Have a directory for state of our own."""
    monkeypatch.setenv("SKYWARD_STATE", str(tmp_path / "state"))
    return tmp_path / "state"


def end_from_outside(engine: SimulatedEngine, cloud: ScriptedCloud) -> None:
    """Do what `sky down` does: say so, then end the machines."""
    call_off({row.request.cluster.pool_id for row in cloud.there})
    for row in cloud.there:
        engine.loop.call_soon_threadsafe(cloud.take, row)


def test_a_pool_that_was_ended_from_outside_rents_nothing_in_its_place(engine: SimulatedEngine, state: Path) -> None:
    """Its calls fail with the reason, and the block does not raise it once more."""
    cloud = ScriptedCloud()
    pool, heard = compute(cloud, nodes=2)
    with pool:
        call = nap(1e6) > pool
        engine.pass_by(60.0)
        end_from_outside(engine, cloud)
        with pytest.raises(sky.PoolEndedError, match=r"'pool' was ended from outside, by: .*process \d+"):
            engine.result(call)
        engine.pass_by(600.0)
        with pytest.raises(sky.PoolEndedError):
            nap(0.0) >> pool
    assert (2, 2, []) == (len(cloud.rows), len(cloud.requests[0].nodes), cloud.there)
    assert 1 == sum("ended from outside" in event.message for event in heard.of(sky.Error))
    assert [] == list((state / "ended").iterdir())


def test_a_long_command_leaves_room_for_its_process(engine: SimulatedEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is cut off; whose process ended the pool is shown whole."""
    monkeypatch.setattr(sys, "argv", ["sky", "down", *(f"pool-{number}" for number in range(200))])
    cloud = ScriptedCloud()
    pool, _ = compute(cloud)
    told = r"by: sky down pool-0 .*… \(process \d+, \d{4}-[-0-9: ]+\)"
    with pytest.raises(sky.PoolEndedError, match=told), pool:  # noqa: PT012  # leaving the block raises
        end_from_outside(engine, cloud)
        engine.result(nap(0.0) > pool)


def test_machines_that_are_still_there_are_given_back(engine: SimulatedEngine) -> None:
    """Within a look at the cloud's list; leaving the block tells what no call has told."""
    cloud = ScriptedCloud()
    pool, _ = compute(cloud, nodes=2, reconcile_tick_interval=15.0)
    with pytest.raises(sky.PoolEndedError), pool:  # noqa: PT012  # leaving the block raises
        call_off({cloud.rows[0].request.cluster.pool_id})
        assert engine.until(lambda: not cloud.there) <= 15.0 + 5.0 + cloud.ends
        engine.pass_by(60.0)
    assert 2 == len(cloud.rows)


def test_machines_that_bear_it_are_given_back(engine: SimulatedEngine) -> None:
    """A command on another computer leaves no mark here, but on the machines' tags."""
    cloud = ScriptedCloud()
    pool, _ = compute(cloud, nodes=2)
    with pool:
        call = nap(1e6) > pool
        engine.pass_by(60.0)
        cloud.called_off = True
        with pytest.raises(sky.PoolEndedError, match="by: sky down, on another computer"):
            engine.result(call)
        assert engine.until(lambda: not cloud.there) <= 5.0 + cloud.ends
    assert 2 == len(cloud.rows)


def test_a_pool_that_is_ended_while_it_is_opened_is_not_opened_elsewhere(engine: SimulatedEngine) -> None:
    """Opening it raises the error, and the next provider is not asked."""
    cloud, other = ScriptedCloud(boots=100.0), ScriptedCloud(name="other")
    cloud.when = lambda hook: call_off([cloud.requests[0].cluster.pool_id]) if hook == "launch" else None
    pool, _ = compute(cloud, other)
    with pytest.raises(sky.PoolEndedError):
        pool.open()
    assert ([], []) == (cloud.there, other.requests)


def test_another_error_of_the_block_is_not_hidden(engine: SimulatedEngine) -> None:
    """What the program itself raised comes out."""
    cloud = ScriptedCloud()
    pool, _ = compute(cloud)
    with pytest.raises(ZeroDivisionError), pool:  # noqa: PT012  # leaving the block raises
        end_from_outside(engine, cloud)
        engine.until(lambda: pool.snapshot()["nodes"] == {})
        _ = 1 // 0


def test_what_costs_nothing_is_not_ended_so(engine: SimulatedEngine) -> None:
    """No cloud has it, so that nothing could be meant."""
    cloud = ScriptedCloud(offers=(Offer(provider="cloud", instance_type="own", region="eu", on_demand_price=0.0),))
    pool, _ = compute(cloud)
    with pool:
        call_off({cloud.rows[0].request.cluster.pool_id})
        engine.pass_by(120.0)
        assert 1 == len(cloud.there)


def test_a_mark_is_only_the_users_and_has_no_foreign_name(state: Path) -> None:
    """What clouds tell may be anything; old marks go with the next one."""
    call_off(["a1b2", "../outside", "x/y", "", "a" * 65])
    folder = state / "ended"
    assert (["a1b2"], []) == ([path.name for path in folder.iterdir()], list(state.glob("outside")))
    assert (0o600, 0o700) == (stat.S_IMODE((folder / "a1b2").stat().st_mode), stat.S_IMODE(folder.stat().st_mode))
    os.utime(folder / "a1b2", (time.time() - KEPT - 60, time.time() - KEPT - 60))
    call_off(["c3d4"])
    assert ["c3d4"] == [path.name for path in folder.iterdir()]


def test_directories_above_a_mark_are_the_users_alone(state: Path) -> None:
    """Whatever the umask: the journal and pools would refuse a directory that others can write to."""
    before = os.umask(0)
    try:
        call_off(["a1b2"])
    finally:
        os.umask(before)
    assert 0o700 == stat.S_IMODE(state.stat().st_mode)


def test_a_mark_that_is_a_link_is_none(state: Path, tmp_path: Path) -> None:
    """Neither is written through it, nor read."""
    secret = tmp_path / "secret"
    secret.write_text("mine")
    (state / "ended").mkdir(parents=True)
    (state / "ended" / "a1").symlink_to(secret)
    asyncio.run(CallOff("a1", "train").check())
    with pytest.raises(OSError, match="Too many levels"):
        call_off(["a1"])
    assert "mine" == secret.read_text()


def test_what_a_mark_says_is_shown_without_what_a_terminal_would_do(state: Path) -> None:
    """One line, cut short."""
    (state / "ended").mkdir(parents=True)
    (state / "ended" / "a1").write_text("sky down\x1b[2J\n" + "x" * 1000)
    with pytest.raises(sky.PoolEndedError) as caught:
        asyncio.run(CallOff("a1", "train").check())
    assert "sky down?[2J?xxx" in str(caught.value)
    assert len(str(caught.value)) < 600
