"""
A pool of a cloud's machines, end to end: they take their time, an answer is lost, and the journal knows of all.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from attrs import evolve

import skyward as sky
from skyward.engine.guardian.journal import launches
from skyward.engine.instances import instance_watch
from skyward.hookspecs import (
    Cluster,
    Instance,
    InstanceState,
    LaunchRequest,
    LocalAddress,
    Offer,
    ProviderFacts,
    hookimpl,
)

SMALL = Offer(provider="cloud", instance_type="small", region="eu", zone="a", spot_price=0.1, on_demand_price=0.5)


class Cloud:
    """
    A cloud that rents this machine, keeps books, and answers as the test says.

    Args:
        slow: How many lists have a machine pending.
        loses: How many answers to launches are lost once the machines are rented.
    """

    def __init__(self, *, slow: int = 0, loses: int = 0) -> None:
        self.slow = slow
        self.loses = loses
        self.home = tempfile.mkdtemp(prefix="cloud-")
        self.machines: dict[str, Instance] = {}
        self.lists: dict[str, int] = {}
        self.requests: list[LaunchRequest] = []
        self.ended: list[str] = []
        self.open: list[str | None] = []

    @hookimpl
    def skyward_facts(self) -> ProviderFacts:
        return ProviderFacts(name="cloud", ends_own_bill=True, billing_granularity_s=1.0, spot=True)

    @hookimpl
    async def skyward_offers(self) -> Sequence[Offer]:
        return [SMALL]

    @hookimpl
    async def skyward_open(self, cluster: Cluster) -> str | None:
        self.open.append(cluster.offer.region)
        return cluster.offer.region

    @hookimpl
    async def skyward_launch(self, request: LaunchRequest, infra: str) -> Sequence[Instance]:
        assert infra == request.cluster.offer.region
        self.requests.append(request)
        rented = [self._rent(request, node) for node in request.nodes]
        if self.loses:
            self.loses -= 1
            raise ConnectionResetError("the line is cut")
        return rented

    def _rent(self, request: LaunchRequest, node: int) -> Instance:
        name = f"i-{node}-{request.token}"
        if name not in self.machines:
            self.machines[name] = Instance(
                id=name,
                node=node,
                provider="cloud",
                state=InstanceState.PENDING,
                address=LocalAddress(f"{self.home}/{name}"),
                instance_type=request.cluster.offer.instance_type,
                region=request.cluster.offer.region,
                spot=request.spot,
                hourly_rate=request.cluster.offer.price(spot=request.spot),
                tags=request.tags_of(node),
            )
        return evolve(self.machines[name], address=None)

    @hookimpl
    async def skyward_instances(self, cluster: Cluster, infra: str) -> Sequence[Instance]:
        return [self._listed(one) for one in self.machines.values() if one.region == infra]

    def _listed(self, machine: Instance) -> Instance:
        if machine.state is not InstanceState.PENDING:
            return machine
        seen = self.lists[machine.id] = self.lists.get(machine.id, 0) + 1
        if seen > self.slow:
            self.machines[machine.id] = evolve(machine, state=InstanceState.RUNNING)
            return self.machines[machine.id]
        return evolve(machine, address=None)

    @hookimpl
    async def skyward_terminate(self, ids: Sequence[str]) -> None:
        for name in ids:
            if self.machines.pop(name, None) is not None:
                self.ended.append(name)
                shutil.rmtree(f"{self.home}/{name}", ignore_errors=True)

    @hookimpl
    async def skyward_release(self, infra: str) -> None:
        self.open.remove(infra)


@sky.function
def where() -> int:
    return sky.instance_info().node


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """What takes seconds with a cloud takes less here."""
    monkeypatch.setattr(instance_watch, "SOON", 0.05)
    monkeypatch.setattr("skyward.engine.instances.launch_requests.LOOKS", (0.05, 0.1))


@pytest.fixture
def clouds() -> Iterator[list[Cloud]]:
    """The clouds of a test, which have to be empty at its end."""
    made: list[Cloud] = []
    yield made
    for cloud in made:
        assert cloud.machines == {}
        assert cloud.open == []
        pools = {request.cluster.pool_id for request in cloud.requests}
        assert not [launch for launch in launches() if launch.open and launch.pool_id in pools]
        shutil.rmtree(cloud.home)


def compute(clouds: list[Cloud], cloud: Cloud, **settings: Any) -> sky.Compute:
    clouds.append(cloud)
    settings = {"console": "silent", "logging": False, "provision_retry_delay": 0.0, **settings}
    return sky.Compute(provider=cloud, **settings)


@pytest.mark.slow
def test_machines_that_take_their_time_are_waited_for(clouds: list[Cloud]) -> None:
    """They are asked for once, and told of as they come."""
    cloud = Cloud(slow=2)
    heard: list[str] = []
    pool = compute(clouds, cloud, nodes=2, on_event=lambda event: heard.append(type(event).__name__))
    with pool:
        assert sorted(where() @ pool) == [0, 1]
    assert [request.nodes for request in cloud.requests] == [(0, 1)]
    order = [heard.index(name) for name in ("InstanceLaunched", "InstanceRunning", "NodeReady", "InstanceDestroyed")]
    assert order == sorted(order)


@pytest.mark.slow
def test_a_lost_answer_costs_no_second_machine(clouds: list[Cloud]) -> None:
    """What was rented is found by its token."""
    cloud = Cloud(loses=1)
    with compute(clouds, cloud, nodes=2) as pool:
        assert sorted(where() @ pool) == [0, 1]
    assert len(cloud.requests) == 1
    assert len(cloud.ended) == 2


def test_every_machine_bears_its_tags(clouds: list[Cloud]) -> None:
    """Pool, node, owner, client and token; no expiry where it could not be put off."""
    cloud = Cloud()
    with compute(clouds, cloud, nodes=2):
        tags = [one.tags for one in cloud.machines.values() if one.tags is not None]
        assert [one.node for one in tags] == [0, 1]
        assert all(one.owner and one.client and one.token and one.pool_id for one in tags)
        assert [None, None] == [one.expires_at for one in tags]
        assert launches()[-1].ids == tuple(cloud.machines)
        assert launches()[-1].open
