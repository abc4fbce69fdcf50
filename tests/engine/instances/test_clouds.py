"""A node that the pool's own cloud has no machine for is rented at another one, watched there and ended there."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
from attrs import evolve

import skyward as sky
from skyward.hookspecs import Topology
from skyward.plan.instances.instance_list import ORPHANED_FOR
from tests.simulated.engine import SimulatedEngine
from tests.simulated.host import here
from tests.simulated.pool import Heard, compute
from tests.simulated.provider import ALWAYS, SMALL, Fails, Hangs, ScriptedCloud

SOLD_OUT = Fails("launch", lambda: sky.CapacityError("Sold out."), times=ALWAYS)


@sky.function
def where() -> str:
    """Tell which machine this is."""
    return here.get()


@sky.function
def nap(seconds: float) -> Any:
    """Take so long, and tell where."""
    return asyncio.sleep(seconds, here.get())


def cloud(name: str, *script: Any, **facts: Any) -> ScriptedCloud:
    """Make a cloud of its own name."""
    return ScriptedCloud(*script, name=name, offers=(evolve(SMALL, provider=name),), **facts)


def pool_of(*clouds: ScriptedCloud, **settings: Any) -> tuple[sky.Compute, Heard]:
    """Make a pool that is opened at the first cloud."""
    return compute(*clouds, **{"provision_retry_delay": 0.0, **settings})


def lose(engine: SimulatedEngine, home: ScriptedCloud) -> None:
    """Have a cloud sell out, and take a machine back."""
    home.script.append(SOLD_OUT)
    engine.loop.call_soon_threadsafe(home.take, home.there[0])


def names(*clouds: ScriptedCloud) -> list[str]:
    """List the machines that are billed anywhere."""
    return sorted(row.id for each in clouds for row in each.there)


def test_a_lost_node_is_replaced_elsewhere(engine: SimulatedEngine) -> None:
    """Where its own cloud is sold out: one pool, and each machine is ended at its own cloud."""
    home, other = cloud("home"), cloud("other")
    pool, heard = pool_of(home, other, nodes=2)
    with pool:
        lose(engine, home)
        engine.until(lambda: pool.current_nodes() == 2 and other.there)
        assert ["home-1", "other-0"] == names(home, other) == sorted(where() @ pool)
        engine.pass_by(2 * ORPHANED_FOR)
        assert ["home-1", "other-0"] == names(home, other)
    assert ([], [], []) == (names(home, other), home.open, other.open)
    assert [("home-0", "other-0")] == [(event.old, event.new) for event in heard.of(sky.InstanceReplaced)]
    assert pool.receipt is not None
    assert {"home-0", "home-1", "other-0"} == {node.instance_id for node in pool.receipt.nodes}
    assert all(node.ended and node.cost > 0 for node in pool.receipt.nodes)
    ids = {row.request.cluster.pool_id for each in (home, other) for row in each.rows}
    assert 2 == len(ids)


def test_while_its_own_cloud_has_machines_no_other_is_asked(engine: SimulatedEngine) -> None:
    """Nodes stay together as long as they can."""
    home, other = cloud("home"), cloud("other")
    pool, _ = pool_of(home, other)
    with pool:
        engine.loop.call_soon_threadsafe(home.take, home.rows[0])
        engine.until(lambda: len(home.rows) == 2 and pool.current_nodes() == 1)
    assert [] == other.calls


def test_a_pool_grows_where_there_is_room_and_shrinks_again(engine: SimulatedEngine) -> None:
    """Each machine at its own cloud."""
    home, other = cloud("home", evolve(SOLD_OUT, skip=1)), cloud("other")
    pool, _ = pool_of(home, other)
    with pool:
        pool.resize(3)
        engine.until(lambda: pool.current_nodes() == 3)
        assert (1, 2) == (len(home.there), len(other.there))
        pool.resize(1)
        engine.until(lambda: len(names(home, other)) == 1)
        assert 1 == pool.current_nodes()
    assert [] == names(home, other)


def test_an_elastic_pool_grows_where_there_is_room(engine: SimulatedEngine) -> None:
    """While calls wait."""
    home, other = cloud("home", evolve(SOLD_OUT, skip=1)), cloud("other")
    pool, _ = pool_of(home, other, nodes=(1, 2), autoscale_cooldown=1.0)
    with pool:
        calls = [nap(60.0) > pool for _ in range(8)]
        engine.until(lambda: pool.current_nodes() == 2)
        assert (1, 1) == (len(home.there), len(other.there))
        assert {"home-0", "other-0"} == {engine.result(call) for call in calls}
    assert [] == names(home, other)


def test_a_pool_is_not_opened_on_two_clouds(engine: SimulatedEngine) -> None:
    """What the first one cannot give as a whole is asked for at the second as a whole."""
    home, other = cloud("home", evolve(SOLD_OUT, skip=1)), cloud("other")
    pool, _ = pool_of(home, other, nodes=40)
    with pool:
        assert (0, 40) == (len(home.there), len(other.there))
    assert (32, []) == (len(home.rows), names(home, other))


@pytest.mark.parametrize("hook", ["preflight", "offers"])
def test_a_silent_cloud_holds_up_nobody_who_leaves(engine: SimulatedEngine, hook: str) -> None:
    """It rents nothing yet, and is not waited for."""
    home, silent = cloud("home"), cloud("silent", Hangs(hook, times=ALWAYS))
    pool, _ = pool_of(home, silent, nodes=2)
    with pool:
        lose(engine, home)
        engine.until(lambda: silent.times(hook))
        began = engine.now
    assert engine.now - began <= 15.0
    assert [] == names(home, silent)


def test_a_cloud_that_fails_is_followed_by_the_next(engine: SimulatedEngine) -> None:
    """In the order of the selection; nothing of it is left open."""
    home, broken, last = cloud("home"), cloud("broken", Fails("launch", times=ALWAYS)), cloud("last")
    pool, _ = pool_of(home, broken, last)
    with pool:
        lose(engine, home)
        engine.until(lambda: last.there and pool.current_nodes() == 1)
        assert "last-0" == where() >> pool
    assert [] == names(home, broken, last)
    assert [] == home.open + broken.open + last.open


def test_two_clouds_of_one_account_keep_their_machines_apart(engine: SimulatedEngine) -> None:
    """What one has rented for the pool is no orphan of the other."""
    home, other = cloud("home"), cloud("other")
    other.rows = home.rows
    pool, _ = pool_of(home, other, nodes=2)
    with pool:
        lose(engine, home)
        engine.until(lambda: pool.current_nodes() == 2 and len(home.there) == 2)
        engine.pass_by(3 * ORPHANED_FOR)
        assert 3 == len(home.rows)
        assert names(home) == sorted(where() @ pool)
    assert [] == names(home)


@pytest.mark.parametrize(
    ("settings", "facts", "why"),
    [
        ({"region": "eu"}, {}, "region= says where the nodes are to be"),
        ({"plugins": [sky.Plugin.create("job").with_topology(lambda cluster: Topology(collective=True))]}, {}, "reach"),
        ({}, {"rents": False}, "not both of them rent machines"),
    ],
    ids=["region", "job", "hosts"],
)
def test_some_pools_stay_at_their_cloud(
    engine: SimulatedEngine,
    settings: dict[str, Any],
    facts: dict[str, Any],
    why: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """They go on with the nodes that they have, and say once why no other cloud was asked."""
    home, other = cloud("home"), cloud("other", **facts)
    pool, heard = pool_of(home, other, nodes=2, max_replacement_attempts=1, **settings)
    with caplog.at_level(logging.WARNING, "skyward.engine.instances.clouds"), pool:
        lose(engine, home)
        engine.until(lambda: pool.snapshot()["desired"] == 1)
        assert (1, []) == (len(home.there), other.rows)
    [said] = [record.getMessage() for record in caplog.records if record.name == "skyward.engine.instances.clouds"]
    assert "Pool 'pool' has no node at other, although home gives none now:" in said
    assert why in said
    assert any("Sold out." in error.message for error in heard.of(sky.Error))


def test_what_a_node_may_cost_holds_elsewhere_too(engine: SimulatedEngine) -> None:
    """What cannot be had anywhere is one error, with the reason of each cloud."""
    home, other = cloud("home"), cloud("other")
    heard: list[Any] = []
    pool = sky.Compute(
        sky.Spec(provider=home, nodes=2),
        sky.Spec(provider=other, max_hourly_cost=0.01),
        options=sky.Options(
            selection="first", console=False, logging=False, max_replacement_attempts=1, on_event=heard.append
        ),
    )
    with pool:
        lose(engine, home)
        engine.until(lambda: pool.snapshot()["desired"] == 1)
        assert [] == other.rows
    [said] = [one.message for one in heard if isinstance(one, sky.Error) and "No provider could give" in one.message]
    assert "Sold out." in said
    assert "max_hourly_cost=0.01 excludes" in said


def test_the_others_are_tried_as_the_selection_says(engine: SimulatedEngine) -> None:
    """It is asked again with what is for sale by then; one that has nothing is followed by the next."""
    home, last, full = cloud("home"), cloud("last"), cloud("full", SOLD_OUT)
    asked: list[int] = []

    def select(providers: Any, spec: Any) -> Any:
        asked.append(len(providers))
        return [providers[0], providers[2], providers[1]]

    pool, _ = pool_of(home, last, full, selection=select)
    with pool:
        lose(engine, home)
        engine.until(lambda: last.there and pool.current_nodes() == 1)
    assert [3, 3] == asked
    assert full.requests


def test_machines_that_no_cloud_ends_are_told_together(engine: SimulatedEngine) -> None:
    """Two clouds that refuse, one error: the first one's, with the other's as a note."""
    no = Fails("terminate", lambda: sky.CredentialsError("You may not."), times=ALWAYS)
    home, other = cloud("home"), cloud("other", no)
    pool, _ = pool_of(home, other, nodes=2)
    with pytest.raises(sky.LeftBehindError, match="home-1") as caught, pool:  # noqa: PT012
        lose(engine, home)
        engine.until(lambda: pool.current_nodes() == 2 and other.there)
        home.script.append(no)
    assert any("other-0" in note for note in caught.value.__notes__)
