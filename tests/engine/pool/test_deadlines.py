"""Deadlines of a pool and of all its calls, as its options say; on a virtual clock."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import skyward as sky
from tests.simulated.engine import SimulatedEngine
from tests.simulated.host import here
from tests.simulated.pool import compute
from tests.simulated.provider import ScriptedCloud


@sky.function
def work(seconds: float) -> Any:
    """Take so long, and tell where."""
    return asyncio.sleep(seconds, here.get())


def test_a_pool_has_a_deadline(engine: SimulatedEngine) -> None:
    """Its calls fail with it, machines are terminated at once, and none is left when it is left."""
    cloud = ScriptedCloud()
    pool, _ = compute(cloud, pool_deadline=100.0)
    with pool:
        call = work(1000.0) > pool
        with pytest.raises(sky.PoolDeadlineError, match=r"was open for 100 s, which is its pool_deadline"):
            engine.result(call)
        assert 99.0 < engine.now < 101.0
        engine.until(lambda: not cloud.there, within=10.0)


def test_a_pool_whose_deadline_no_call_raised_raises_it_when_it_is_left(engine: SimulatedEngine) -> None:
    """What was not done has a reason."""
    pool, _ = compute(ScriptedCloud(), pool_deadline=100.0)
    with pytest.raises(sky.PoolDeadlineError, match="Raise pool_deadline"), pool:
        engine.pass_by(200.0)


def test_a_pool_that_is_left_in_time_has_no_deadline(engine: SimulatedEngine) -> None:
    """Nor does what comes after it."""
    pool, _ = compute(ScriptedCloud(), pool_deadline=100.0)
    with pool:
        assert "cloud-0" == engine.result(work(1.0) > pool)
    engine.pass_by(200.0)


def test_calls_have_the_limits_of_their_pool_if_they_have_none(engine: SimulatedEngine) -> None:
    """In the queue, and in all."""
    pool, _ = compute(ScriptedCloud(), call_deadline=50.0, queue_timeout=10.0)
    with pool:
        runs = work(40.0) > pool
        waits = work(1.0) > pool
        patient = work(1.0).with_timeout(queue=100.0) > pool
        with pytest.raises(sky.QueueTimeoutError, match=r"work\(\) did not begin: it waited for 10 s"):
            engine.result(waits)
        assert "cloud-0" == engine.result(runs)
        assert "cloud-0" == engine.result(patient)
        with pytest.raises(sky.CallDeadlineError, match=r"work\(\) was given up: it was not answered within 50 s"):
            engine.result(work(60.0) > pool)
        assert "cloud-0" == engine.result(work(60.0).with_deadline(70.0) > pool)


@pytest.mark.parametrize(
    "limited",
    [lambda: work(1.0).with_deadline(0), lambda: work(1.0).with_timeout(queue=0), lambda: work(1.0).with_timeout()],
)
def test_what_is_no_limit_is_refused(limited: Any) -> None:
    """Zero would never let anything happen, and nothing is no limit."""
    with pytest.raises(sky.ConfigError, match=r"must be"):
        limited()
