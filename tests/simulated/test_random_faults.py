"""Whatever goes wrong in whatever order: each machine that was rented is ended or told of, and none is one too many."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, note, settings, strategies as st

import skyward as sky
from skyward.testing import DiesInBootstrap, ListingLag, NeverBoots, NoCapacity, Preempt, Quota, SlowApi, Unreachable
from tests.seeds import share
from tests.simulated.engine import SimulatedEngine, simulated_engine
from tests.simulated.pool import Heard, compute
from tests.simulated.provider import Fails, Hangs, Script, ScriptedCloud

LEAVING = 30.0
"""Seconds within which the end of a machine is asked for, once the one that replaces it is rented."""

ERRORS: list[Callable[[], Exception]] = [
    ConnectionResetError,
    lambda: sky.ProvisionError("429"),
    lambda: sky.OfferError("500"),
    lambda: sky.CapacityError("none left"),
    lambda: sky.CredentialsError("403"),
]


@sky.function
def work(seconds: float) -> Any:
    """Take so long."""
    return asyncio.sleep(seconds, seconds)


hooks = st.sampled_from(["preflight", "offers", "open", "launch", "instances", "terminate", "check_end", "release"])
few = st.integers(1, 4)
moments = st.floats(0.1, 60.0)
failing = st.builds(
    Fails,
    hook=hooks,
    error=st.sampled_from(ERRORS),
    times=st.integers(1, 7),
    skip=st.integers(0, 5),
    done=st.booleans(),
)
scripts = st.lists(
    st.one_of(
        failing,
        failing,
        st.builds(Hangs, hook=hooks, times=few, skip=st.integers(0, 5)),
        st.builds(NeverBoots, times=few),
        st.builds(Unreachable, times=few),
        st.builds(DiesInBootstrap, times=few),
        st.builds(Preempt, after=moments, times=few),
        st.builds(ListingLag, seconds=st.floats(0.1, 7.0)),
        st.builds(SlowApi, seconds=st.floats(0.1, 5.0)),
        st.builds(NoCapacity, left=st.integers(0, 3), spot=st.sampled_from([True, False, None])),
        st.builds(Quota, machines=st.integers(0, 4)),
    ),
    max_size=6,
)


lives = given(
    script=scripts,
    nodes=st.integers(1, 4),
    later=st.integers(1, 5),
    boots=st.sampled_from([1.0, 10.0, 90.0]),
    forgets=st.booleans(),
)


@pytest.mark.timeout(240)
@settings(max_examples=share(80, least=0.2), suppress_health_check=[HealthCheck.too_slow])
@lives
# The watch of instances is cancelled while it waits for the ends of several orphans.
@example(
    [DiesInBootstrap(), NeverBoots(times=4), NeverBoots(), Hangs("terminate", times=4), Unreachable()], 2, 1, 1.0, False
)
def test_no_machine_is_forgotten(script: list[Script], nodes: int, later: int, boots: float, forgets: bool) -> None:
    """A pool is opened, works, changes its size and is left; hypothesis prints how to see it again."""
    _live(script, nodes, later, boots, forgets=forgets)


@pytest.mark.fuzz
@pytest.mark.everything
@pytest.mark.timeout(900)
@settings(max_examples=1000, suppress_health_check=[HealthCheck.too_slow])
@lives
def test_no_machine_is_forgotten_in_many_lives(
    script: list[Script], nodes: int, later: int, boots: float, forgets: bool
) -> None:
    """The same, for longer."""
    _live(script, nodes, later, boots, forgets=forgets)


def _live(script: list[Script], nodes: int, later: int, boots: float, *, forgets: bool) -> None:
    cloud = ScriptedCloud(*script, boots=boots, forgets=forgets)
    with simulated_engine() as engine:
        pool, heard = compute(cloud, nodes=nodes, provision_timeout=60.0, bootstrap_timeout=60.0, shutdown_timeout=60.0)
        left = _lived(engine, pool, later)
        for row in cloud.rows:
            note(f"{row.id} node={row.node} {row.since:.1f} asked {row.asked_at} ended {row.ended_at}")
        note(f"{left!r} {[str(event) for event in heard.of(sky.Error)]}")
        assert all(request.token in journal.tokens for request in cloud.requests for journal in engine.journals[-1:])
    told = _told(left, heard)
    assert [] == [row.id for row in cloud.there if row.id not in told]
    assert [] == _too_many(cloud)


def _lived(engine: SimulatedEngine, pool: sky.Compute, later: int) -> BaseException | None:
    """Live a pool's life, and return what it was left by."""
    try:
        with pool:
            calls = [work(20.0) > pool for _ in range(6)]
            engine.pass_by(30.0)
            pool.resize(later)
            engine.until(lambda: all(call.done() for call in calls), within=4 * 3600.0)
    except sky.SkywardError as error:
        return error
    return None


def _told(left: BaseException | None, heard: Heard) -> str:
    """Return all that was said of machines that may be left."""
    notes = getattr(left, "__notes__", ())
    events = [event.message for event in heard.of(sky.Error) if event.fatal]
    return "\n".join([str(left), *notes, *events])


def _too_many(cloud: ScriptedCloud) -> list[str]:
    """List the machines that stayed beside those that took their places."""
    rows = [row for row in cloud.rows if row.answered]
    return [
        f"{before.id} stayed beside {after.id}"
        for node in {row.node for row in rows}
        for before, after in pairwise(row for row in rows if row.node == node)
        if after.since - before.since > 0
        and min(before.asked_at or 1e9, before.ended_at or 1e9) > after.since + LEAVING
    ]
