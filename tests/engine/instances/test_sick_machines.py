"""Machines whose nodes failed a check: replaced, passed over, or kept because the check is suspected."""

from __future__ import annotations

from attrs import evolve

import skyward as sky
from skyward.link.frames import Kind
from tests.simulated.engine import SimulatedEngine
from tests.simulated.pool import compute
from tests.simulated.provider import SMALL, Row, ScriptedCloud

OFFERS = (evolve(SMALL, data={"machine": 7}), evolve(SMALL, zone="b", spot_price=0.2, data={"machine": 8}))


def fail(engine: SimulatedEngine, row: Row, *, passed: bool = True, certain: bool = True, reason: str = "hot") -> None:
    """Have a node report a failed check."""
    notice = {"check": "user", "reason": reason, "certain": certain, "passed": passed, "at": None}
    engine.loop.call_soon_threadsafe(row.machine.tell, Kind.NOTICE, notice)


def test_a_machine_of_a_market_that_failed_twice_is_passed_over(engine: SimulatedEngine) -> None:
    """It is known by the number that its offers have, whatever its instance is called."""
    cloud = ScriptedCloud(offers=OFFERS)
    pool, heard = compute(cloud)
    with pool:
        for turn in (1, 2):
            fail(engine, cloud.rows[-1])
            engine.until(lambda turn=turn: len(cloud.rows) > turn and pool.current_nodes() == 1, within=300.0)  # type: ignore[misc]
    assert [7, 7, 8] == [request.cluster.offer.data["machine"] for request in cloud.requests]
    assert "does not take it again" in heard.of(sky.NodeUnhealthy)[-1].reason
    assert pool.receipt is not None
    assert ["hot", "hot; it failed twice, and this pool does not take it again"] == [
        node.reason for node in pool.receipt.nodes
    ][:2]


def test_a_warning_replaces_nothing(engine: SimulatedEngine) -> None:
    """It is reported, and the node goes on; what a node writes there is bounded."""
    cloud = ScriptedCloud()
    pool, heard = compute(cloud)
    with pool:
        fail(engine, cloud.rows[0], certain=False, reason="x" * 5000)
        engine.pass_by(200.0)
        assert 1 == len(cloud.rows)
    [event] = heard.of(sky.NodeUnhealthy)
    assert (False, 1000) == (event.replaced, len(event.reason))


def test_machines_that_never_passed_are_replaced_three_times(engine: SimulatedEngine) -> None:
    """Then the check is suspected."""
    cloud = ScriptedCloud()
    pool, heard = compute(cloud)
    with pool:
        for turn in range(1, 4):
            fail(engine, cloud.rows[-1], passed=False)
            engine.until(lambda turn=turn: len(cloud.rows) > turn and pool.current_nodes() == 1, within=300.0)  # type: ignore[misc]
        fail(engine, cloud.rows[-1], passed=False)
        engine.pass_by(200.0)
        assert 4 == len(cloud.rows)
    assert [True, True, True, False] == [event.replaced for event in heard.of(sky.NodeUnhealthy)]


def test_a_notice_of_the_provider_drains_as_long_as_it_takes(engine: SimulatedEngine) -> None:
    """Whatever else its node writes into it."""
    cloud = ScriptedCloud()
    pool, _ = compute(cloud)
    with pool:
        notice = {"reason": "rebalance", "certain": True, "at": None, "within": "soon", "own": True}
        engine.loop.call_soon_threadsafe(cloud.rows[0].machine.tell, Kind.NOTICE, notice)
        engine.until(lambda: len(cloud.rows) == 2 and pool.current_nodes() == 1, within=300.0)
