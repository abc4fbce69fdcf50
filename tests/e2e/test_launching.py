"""
However a cloud answers, a pool gets its machines or one error, and no machine is left.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from attrs import evolve

import skyward as sky
from skyward.engine import watch
from skyward.engine.journal import launches
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
from skyward.plan import watching

SMALL = Offer(provider="cloud", instance_type="small", region="eu", zone="a", spot_price=0.1, on_demand_price=0.5)
OFFERS = (SMALL, evolve(SMALL, zone="b", spot_price=0.2), evolve(SMALL, region="us", zone="c", spot_price=0.3))


class Cloud:
    """
    A cloud that rents this machine, keeps books, and answers as it is told.

    Args:
        answers: Called with each request before anything is rented; raises, or returns how many machines there are.
        slow: How many lists have a machine pending.
        loses: How many answers to launches are lost once the machines are rented.
        forgets: Whether a token means nothing, so that the same request rents twice.
    """

    def __init__(
        self,
        answers: Callable[[LaunchRequest], int | None] = lambda request: None,
        *,
        offers: Sequence[Offer] = OFFERS,
        slow: int = 0,
        loses: int = 0,
        forgets: bool = False,
    ) -> None:
        self.answers = answers
        self.offers = offers
        self.slow = slow
        self.loses = loses
        self.forgets = forgets
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
        return self.offers

    @hookimpl
    async def skyward_open(self, cluster: Cluster) -> str | None:
        self.open.append(cluster.offer.region)
        return cluster.offer.region

    @hookimpl
    async def skyward_launch(self, request: LaunchRequest, infra: str) -> Sequence[Instance]:
        assert infra == request.cluster.offer.region
        self.requests.append(request)
        count = self.answers(request)
        rented = [self._rent(request, node) for node in request.nodes[:count]]
        if self.loses:
            self.loses -= 1
            raise ConnectionResetError("the line is cut")
        return rented

    def _rent(self, request: LaunchRequest, node: int) -> Instance:
        number = len(self.machines) if self.forgets else ""
        name = f"i-{node}-{request.token}{number}"
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
    monkeypatch.setattr(watch, "SOON", 0.05)
    monkeypatch.setattr("skyward.engine.renting.LOOKS", (0.05, 0.1))
    monkeypatch.setattr(watching, "STRAYING", 0.3)


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


def until(holds: Callable[[], object], seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


def refuse(*places: str | None, spot: bool | None = None, error: type[Exception] = sky.errors.CapacityError) -> Any:
    """Make what refuses launches in some zones, or on one market."""

    def answer(request: LaunchRequest) -> None:
        if request.cluster.offer.zone in places and spot in (None, request.spot):
            raise error(f"None in {request.cluster.offer.zone}.")

    return answer


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
def test_next_offer_is_tried_when_one_is_sold_out(clouds: list[Cloud]) -> None:
    """In another zone or region, on the same market first."""
    cloud = Cloud(refuse("a", "b"))
    with compute(clouds, cloud) as pool:
        assert where() >> pool == 0
    assert [(one.cluster.offer.zone, one.spot) for one in cloud.requests] == [("a", True), ("b", True), ("c", True)]


@pytest.mark.slow
def test_on_demand_is_tried_when_no_spot_is_left(clouds: list[Cloud]) -> None:
    """And not before."""
    cloud = Cloud(refuse("a", "b", "c", spot=True))
    with compute(clouds, cloud) as pool:
        assert where() >> pool == 0
    assert [one.spot for one in cloud.requests] == [True, True, True, False]


@pytest.mark.slow
def test_a_quota_is_not_run_into_twice(clouds: list[Cloud]) -> None:
    """It holds for the other zones of the region too."""
    cloud = Cloud(refuse("a", "b", spot=True, error=sky.errors.QuotaError))
    with compute(clouds, cloud) as pool:
        assert where() >> pool == 0
    assert [(one.cluster.offer.zone, one.spot) for one in cloud.requests] == [("a", True), ("c", True)]


@pytest.mark.slow
def test_nodes_that_one_offer_lacks_come_from_the_next(clouds: list[Cloud]) -> None:
    """What there is is kept."""
    cloud = Cloud(lambda request: 1)
    with compute(clouds, cloud, nodes=3) as pool:
        assert sorted(where() @ pool) == [0, 1, 2]
    assert [one.cluster.offer.zone for one in cloud.requests] == ["a", "b", "c"]


def test_what_was_tried_is_listed_when_nothing_is_left(clouds: list[Cloud]) -> None:
    """With the reasons, and what was not tried."""
    cloud = Cloud(refuse("a", "b", "c"), offers=(*OFFERS, evolve(SMALL, zone="d", available=False)))
    with pytest.raises(sky.errors.CapacityError, match=r"(?s)Tried:.*small in a, spot.*None in a.*available") as caught:
        compute(clouds, cloud, max_provision_attempts=1).open()
    first, *rest = str(caught.value).splitlines()
    assert "all 6 offers had no capacity, such as small in a, spot at $0.1/h: None in a." in first
    assert "\n".join(rest).count("None in") == 6


def test_the_first_refusal_of_credentials_ends_it(clouds: list[Cloud]) -> None:
    """No other offer will do."""
    cloud = Cloud(refuse("a", error=sky.errors.CredentialsError))
    with pytest.raises(sky.errors.CredentialsError):
        compute(clouds, cloud).open()
    assert len(cloud.requests) == 1


def test_nothing_that_fits_is_an_error_with_reasons(clouds: list[Cloud]) -> None:
    """And nothing is rented."""
    cloud = Cloud()
    with pytest.raises(sky.NoAvailableProviderError, match=r"max_hourly_cost=0\.01 excludes 3 of 3\. Nearest is small"):
        compute(clouds, cloud, max_hourly_cost=0.01).open()
    assert cloud.requests == []


@pytest.mark.slow
def test_a_lost_answer_costs_no_second_machine(clouds: list[Cloud]) -> None:
    """What was rented is found by its token."""
    cloud = Cloud(loses=1)
    with compute(clouds, cloud, nodes=2) as pool:
        assert sorted(where() @ pool) == [0, 1]
    assert len(cloud.requests) == 1
    assert len(cloud.ended) == 2


@pytest.mark.slow
def test_a_machine_that_is_rented_twice_is_ended(clouds: list[Cloud]) -> None:
    """While the pool goes on."""
    cloud = Cloud(forgets=True)
    with compute(clouds, cloud, reconcile_tick_interval=0.1) as pool:
        assert where() >> pool == 0
        cloud._rent(cloud.requests[0], 0)
        assert len(cloud.machines) == 2
        until(lambda: len(cloud.machines) == 1)
        assert where() >> pool == 0
    assert pool.receipt is not None
    both = pool.receipt.nodes
    assert set(cloud.ended) == {node.instance_id for node in both}
    assert all(node.ended and node.cost > 0 for node in both)
    assert sum(node.cost for node in both) == pytest.approx(pool.cost.accumulated)


def test_a_machine_nobody_knows_of_is_ended_with_the_pool(clouds: list[Cloud]) -> None:
    """Although no list was looked at meanwhile."""
    cloud = Cloud(forgets=True)
    with compute(clouds, cloud, reconcile_tick_interval=100.0) as pool:
        cloud._rent(cloud.requests[0], 0)
    assert len(cloud.ended) == 2
    assert pool.receipt is not None
    assert set(cloud.ended) == {node.instance_id for node in pool.receipt.nodes}


@pytest.mark.slow
def test_a_machine_that_is_taken_back_is_replaced(clouds: list[Cloud]) -> None:
    """As soon as a list says so, whatever its link says."""
    cloud = Cloud()
    lost: list[sky.InstancePreempted] = []
    replaced: list[sky.InstanceReplaced] = []
    pool = compute(clouds, cloud, nodes=2, reconcile_tick_interval=0.1)
    pool.on(sky.InstancePreempted, lost.append)
    pool.on(sky.InstanceReplaced, replaced.append)
    with pool:
        first = next(iter(cloud.machines))
        cloud.machines[first] = evolve(cloud.machines[first], state=InstanceState.ENDING)
        until(lambda: replaced)
        until(lambda: pool.current_nodes() == 2)
        assert sorted(where() @ pool) == [0, 1]
    assert [event.instance_id for event in lost] == [first]


def test_a_machine_that_never_runs_is_given_back(clouds: list[Cloud]) -> None:
    """And another is asked for, until the attempts are used up."""
    cloud = Cloud(slow=10**9)
    with pytest.raises(sky.ProvisionError, match=r"did not run within 0\.2 s"):
        compute(clouds, cloud, provision_timeout=0.2, max_provision_attempts=2).open()
    assert len(cloud.ended) == 2


@pytest.mark.slow
def test_a_share_of_the_nodes_is_spot(clouds: list[Cloud]) -> None:
    """At least as many as asked for; the others are on demand."""
    cloud = Cloud()
    with compute(clouds, cloud, nodes=4, allocation=0.5) as pool:
        assert sorted(where() @ pool) == [0, 1, 2, 3]
        assert sorted(one.spot for one in cloud.machines.values()) == [False, False, True, True]


def test_every_machine_bears_its_tags(clouds: list[Cloud]) -> None:
    """Pool, node, owner, client and expiry."""
    cloud = Cloud()
    with compute(clouds, cloud, nodes=2):
        tags = [one.tags for one in cloud.machines.values() if one.tags is not None]
        assert [one.node for one in tags] == [0, 1]
        assert all(one.owner and one.client and one.token and one.pool_id for one in tags)
        assert all(one.expires_at and one.expires_at > time.time() + 600 for one in tags)
        assert launches()[-1].ids == tuple(cloud.machines)
        assert launches()[-1].open


def plugin_with_a_lock() -> sky.Plugin:
    """Make a plugin whose hook for workers holds what cannot travel."""
    lock = threading.Lock()

    def held(info: sky.InstanceInfo) -> Any:
        return lock

    return sky.Plugin.create("locked").with_around_process(held)


@pytest.mark.parametrize(
    ("settings", "error", "said"),
    [
        ({"image": sky.Image(python="3.9")}, sky.ConfigError, r"asks for Python 3\.9 but this client runs Python"),
        ({"plugins": [plugin_with_a_lock()]}, sky.PluginError, "locked cannot be sent to nodes: .*lock"),
    ],
    ids=["python", "pickling"],
)
def test_what_cannot_work_is_refused_before_anything_is_rented(
    clouds: list[Cloud], settings: dict[str, Any], error: type[Exception], said: str
) -> None:
    """An image of another Python, a plugin that does not travel."""
    cloud = Cloud()
    with pytest.raises(error, match=said):
        compute(clouds, cloud, **settings).open()
    assert [] == cloud.requests
