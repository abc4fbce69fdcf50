"""The machines of an account: lists with the machines that they lack as yet."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from operator import itemgetter
from typing import Any

import pytest
from attrs import evolve

from skyward.hookspecs import Cluster, InstanceState, LaunchRequest, Offer, Tags
from skyward.model.spec.spec import Spec
from skyward.providers import created
from skyward.providers.created import Created, Inventory, of_token

CLUSTER = Cluster(
    pool_id="a1",
    pool_name="train",
    spec=Spec(),
    offer=Offer(provider="shed", instance_type="bench"),
    provider="shed",
    nodes=3,
)
REQUEST = LaunchRequest(cluster=CLUSTER, nodes=(0, 1, 2), token="t")
Row = dict[str, Any]


class Cloud:
    """A cloud whose list lags as long as the test wants."""

    def __init__(self) -> None:
        self.shown: dict[str, Row] = {}
        self.lists = 0

    async def machines(self) -> Mapping[str, Row]:
        """List what is shown."""
        self.lists += 1
        return dict(self.shown)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Give the monotonic clock of records, which stands still unless a test sets it."""
    now = [1000.0]
    monkeypatch.setattr(created.time, "monotonic", lambda: now[0])
    return now


def inventory(cloud: Cloud, identity: str = "", **settings: Any) -> Inventory[Row]:
    """Return the inventory of an account of its own."""
    return Inventory({"machines": cloud.machines}, identity=lambda: identity or str(id(cloud)), **settings)


def test_a_created_machine_is_in_every_list_until_the_cloud_shows_it(clock: list[float]) -> None:
    """Its own row stands for it; the cloud's is taken once there is one."""
    cloud = Cloud()
    machines = inventory(cloud, lag=60.0)
    machines.add("i-1", {"state": "new"}, REQUEST)
    clock[0] += 1.0
    assert {"i-1": {"state": "new"}} == asyncio.run(machines.rows())
    assert machines.unlisted("i-1")
    cloud.shown = {"i-1": {"state": "active"}}
    assert {"i-1": {"state": "active"}} == asyncio.run(machines.rows())
    assert not machines.unlisted("i-1")


def test_a_machine_that_no_list_shows_in_time_is_gone(clock: list[float]) -> None:
    """Lists may lag for so long, and no longer."""
    machines = inventory(Cloud(), lag=60.0)
    machines.add("i-1", {}, REQUEST)
    clock[0] += 59.0
    assert ["i-1"] == list(asyncio.run(machines.rows()))
    clock[0] += 2.0
    assert {} == asyncio.run(machines.rows())
    assert {} == machines.created


def test_a_machine_that_a_list_had_and_a_later_one_lacks_is_gone(clock: list[float]) -> None:
    """However young it is."""
    cloud = Cloud()
    machines = inventory(cloud)
    machines.add("i-1", {}, REQUEST)
    cloud.shown = {"i-1": {}}
    clock[0] += 1.0
    assert ["i-1"] == list(asyncio.run(machines.rows()))
    cloud.shown = {}
    clock[0] += 1.0
    assert {} == asyncio.run(machines.rows())


def test_a_list_that_is_older_than_the_machine_says_nothing_of_it(clock: list[float]) -> None:
    """Nor does one that is older than the list that had it."""
    machines = inventory(Cloud(), lag=0.0)
    machines.add("i-1", {"n": 1}, REQUEST)
    assert {"i-1": {"n": 1}} == asyncio.run(machines.completed({}, clock[0] - 1.0))
    asyncio.run(machines.completed({"i-1": {"n": 2}}, clock[0] + 5.0))
    assert {"i-1": {"n": 2}} == asyncio.run(machines.completed({}, clock[0] + 4.0))
    assert {} == asyncio.run(machines.completed({}, clock[0] + 6.0))


def test_a_cloud_that_knows_machines_by_id_is_asked_after_the_lag(clock: list[float]) -> None:
    """Of the pool that is listed; what it does not know is gone."""
    looked: list[str] = []

    async def look(known: Created[Row]) -> Row | None:
        looked.append(known.id)
        return {"state": "active"} if known.id == "i-1" else None

    machines = inventory(Cloud(), lag=3.0, look=look)
    for name, pool in (("i-1", "a1"), ("i-2", "a1"), ("i-3", "b2")):
        machines.add(name, {}, evolve(REQUEST, cluster=evolve(CLUSTER, pool_id=pool)))
    clock[0] += 2.0
    assert 2 == len(asyncio.run(machines.rows(pool_id="a1")))
    assert [] == looked
    clock[0] += 2.0
    assert {"i-1": {"state": "active"}} == asyncio.run(machines.rows(pool_id="a1"))
    assert ["i-1", "i-2"] == looked


def test_a_terminated_machine_is_forgotten() -> None:
    """No list adds it."""
    machines = inventory(Cloud())
    machines.add("i-1", {}, REQUEST, rate=0.5)
    assert machines.rate("i-1") == 0.5
    machines.forget(["i-1", "i-2"])
    assert {} == asyncio.run(machines.rows())
    assert machines.rate("i-1") is None


def test_pools_of_one_account_share_a_list_that_is_younger_than_the_last_creation() -> None:
    """A creation whose answer is lost makes no record, and yet the next list is a new one."""

    async def scenario() -> None:
        cloud = Cloud()
        first, second = inventory(cloud, "key", hold=60.0), inventory(cloud, "key", hold=60.0)
        await asyncio.gather(first.rows(), second.rows())
        assert 1 == cloud.lists
        with pytest.raises(ConnectionError), second.creating(REQUEST):
            raise ConnectionError
        await first.rows()
        assert 1 == cloud.lists
        await asyncio.sleep(0.01)
        await second.rows()
        assert 2 == cloud.lists
        await first.rows(within=0.0)
        assert 3 == cloud.lists

    asyncio.run(scenario())


def test_only_a_second_request_with_a_token_asks_what_the_first_created() -> None:
    """There can be nothing before."""

    async def scenario() -> None:
        cloud = Cloud()
        machines = inventory(cloud)

        def tags(row: Row) -> Tags:
            return REQUEST.tags_of(row["node"])

        def state(row: Row) -> InstanceState:
            return InstanceState.PENDING

        assert {} == await machines.of_token(REQUEST, tags, state)
        assert 0 == cloud.lists
        with machines.creating(REQUEST):
            machines.add("i-1", {"node": 1}, REQUEST)
        assert {1: {"node": 1}} == await machines.of_token(REQUEST, tags, state)
        assert 1 == cloud.lists

    asyncio.run(scenario())


def test_what_a_request_created_before_is_found_by_its_token() -> None:
    """Those that end, those of other requests and pools, and what is not ours are left out."""
    mine, running = REQUEST.tags_of(1), InstanceState.RUNNING
    rows = [
        (REQUEST.tags_of(0), InstanceState.PENDING),
        (mine, running),
        (REQUEST.tags_of(2), InstanceState.ENDING),
        (evolve(mine, token="u", node=2), running),
        (evolve(mine, pool_id="b2", node=2), running),
        (REQUEST.tags, running),
        (None, running),
    ]
    assert of_token(rows, REQUEST, itemgetter(0), itemgetter(1)) == {0: rows[0], 1: rows[1]}
