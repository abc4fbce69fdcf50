"""A tenth of many nodes goes at once: it is ordered together, each for its own place, and nothing grows faster."""

from __future__ import annotations

import asyncio
from typing import Any

import skyward as sky
from skyward.engine.instances.launch import BATCH
from tests.simulated.engine import SimulatedEngine
from tests.simulated.host import here
from tests.simulated.pool import compute
from tests.simulated.provider import ScriptedCloud

NODES = 100


@sky.function
def work(seconds: float) -> Any:
    """Take so long, and tell where."""
    return asyncio.sleep(seconds, here.get())


def test_a_tenth_that_is_lost_at_once_is_replaced_in_one_order(engine: SimulatedEngine) -> None:
    """As soon as the machines are given back, within what one machine takes; events are told one for each node."""
    cloud = ScriptedCloud()
    pool, heard = compute(cloud, nodes=NODES)
    with pool:
        calls = [work(300.0) > pool for _ in range(NODES)]
        engine.pass_by(50.0)
        asked, lost = len(cloud.requests), cloud.rows[::10]
        for row in lost:
            engine.loop.call_soon_threadsafe(cloud.take, row)
        assert engine.until(lambda: pool.current_nodes() < NODES) < 1.0
        took = engine.until(lambda: pool.current_nodes() == NODES)
        assert [sorted(row.node for row in lost)] == [sorted(request.nodes) for request in cloud.requests[asked:]]
        assert took <= cloud.ends + cloud.boots + cloud.prepares + 5.0
        assert NODES == len({engine.result(call) for call in calls})
        # The places are those of before, so that calls for them find a node.
        placed = [pool.run_async(work(1.0), target=row.node) for row in lost]
        assert len(lost) == len({engine.result(call) for call in placed})
    assert sorted(row.node for row in lost) == sorted(event.node for event in heard.of(sky.InstancePreempted))
    assert sorted(row.node for row in lost) == sorted(event.node for event in heard.of(sky.InstanceReplaced))


def test_what_is_told_of_the_cost_does_not_grow_with_the_nodes(engine: SimulatedEngine) -> None:
    """Machines that come and go together are one change of the cost."""
    cloud = ScriptedCloud()
    pool, heard = compute(cloud, nodes=NODES)
    with pool:
        assert NODES == pool.current_nodes()
    orders = -(-NODES // BATCH)
    assert orders == len(cloud.requests)
    assert len(heard.of(sky.CostUpdate)) <= 2 * orders + engine.now / 10.0 + 4
