"""A node that the pool's own cloud has no machine for is rented at another one, and ended there."""

from __future__ import annotations

import asyncio
import logging
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

import pytest

import skyward as sky
from skyward.engine.journal import launches
from skyward.hookspecs import Cluster, Instance, LaunchRequest, ProviderFacts, Topology, hookimpl
from skyward.plan import watching
from skyward.testing import NoCapacity, Rehearsal

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]


class Closing(Rehearsal):
    """A cloud that sells nothing more from one moment on, and counts how often its machines are listed."""

    sold_out: ClassVar[set[str]] = set()
    lists: ClassVar[Counter[str]] = Counter()

    def close(self) -> None:
        """Sell out."""
        self.sold_out.add(self.directory)

    @hookimpl
    async def skyward_instances(self, cluster: Cluster) -> Sequence[Instance]:
        """List the pool's machines."""
        self.lists[self.directory] += 1
        return await super().skyward_instances(cluster)

    @hookimpl
    async def skyward_launch(self, request: LaunchRequest) -> Sequence[Instance]:
        """Rent machines, as long as there are any."""
        if self.directory in self.sold_out:
            raise sky.CapacityError("Sold out.")
        return await super().skyward_launch(request)


class Silent(Rehearsal):
    """A cloud that does not answer."""

    asked: ClassVar[list[str]] = []
    given_up: ClassVar[list[str]] = []

    @hookimpl
    async def skyward_preflight(self) -> None:
        """Wait, until nobody wants the answer any more."""
        self.asked.append("skyward_preflight")
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.given_up.append("skyward_preflight")
            raise


class Hosts(Rehearsal):
    """Machines that are there anyway."""

    @hookimpl
    def skyward_facts(self) -> ProviderFacts:
        """Rent nothing."""
        return ProviderFacts(name="hosts", ends_own_bill=True, rents=False)


@pytest.fixture
def elsewhere() -> Iterator[Rehearsal]:
    """Another cloud, in whose books no machine may be left."""
    directory = tempfile.mkdtemp(prefix="sky-", dir="/tmp")
    cloud = Rehearsal(directory=directory)
    yield cloud
    left = cloud.machines()
    shutil.rmtree(directory, ignore_errors=True)
    assert [] == left


@sky.function
def who() -> tuple[str, str, int]:
    """Tell which machine this is, of which pool, of how many nodes."""
    info = sky.instance_info()
    return info.id, info.job_id, info.total_nodes


def until(holds: Callable[[], object], seconds: float = 60.0) -> None:
    """Wait until a condition holds."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def compute(*providers: Any, **settings: Any) -> sky.Compute:
    """Make a pool on several clouds, that is opened on the first one."""
    given: dict[str, Any] = {
        "provider": list(providers),
        "selection": "first",
        "console": False,
        "logging": False,
        "provision_retry_delay": 0.0,
        "reconcile_tick_interval": 0.2,
        **settings,
    }
    return sky.Compute(**given)


def ids(cloud: Rehearsal) -> set[str]:
    """List the machines that exist at a cloud."""
    return {machine.id for machine in cloud.machines()}


def test_a_lost_node_is_replaced_elsewhere(books: str, elsewhere: Rehearsal) -> None:
    """Where its own cloud is sold out; all nodes are of one pool, and each machine is ended at its own cloud."""
    home = Closing(directory=books)
    replaced: list[sky.InstanceReplaced] = []
    pool = compute(home, elsewhere, nodes=2).on(sky.InstanceReplaced, replaced.append)
    with pool:
        assert (2, 0) == (len(ids(home)), len(ids(elsewhere)))
        home.close()
        lost = min(ids(home))
        home.preempt(lost)
        until(lambda: replaced and pool.current_nodes() == 2)
        told = who() @ pool
        assert ids(home) | ids(elsewhere) == {name for name, _, _ in told}
        assert (1, 1) == (len(ids(home)), len(ids(elsewhere)))
        assert [2, 2] == [total for _, _, total in told]
        assert 1 == len({job for _, job, _ in told})
        both = ids(home) | ids(elsewhere)
    assert (set(), set()) == (ids(home), ids(elsewhere))
    assert pool.receipt is not None
    assert both | {lost} == {node.instance_id for node in pool.receipt.nodes}
    assert all(node.ended and node.cost > 0 for node in pool.receipt.nodes)
    written = [launch for launch in launches() if both & set(launch.ids or ())]
    assert both == {name for launch in written for name in launch.ids or ()} - {lost}
    assert not any(launch.open for launch in written)


def test_while_its_own_cloud_has_machines_no_other_is_asked(books: str, elsewhere: Rehearsal) -> None:
    """Nodes stay together as long as they can."""
    home = Closing(directory=books)
    replaced: list[sky.InstanceReplaced] = []
    pool = compute(home, elsewhere).on(sky.InstanceReplaced, replaced.append)
    with pool:
        home.preempt(min(ids(home)))
        until(lambda: replaced and pool.current_nodes() == 1)
        assert (1, 0) == (len(ids(home)), len(ids(elsewhere)))


def test_a_pool_grows_where_there_is_room(books: str, elsewhere: Rehearsal) -> None:
    """And shrinks again, each machine at its own cloud."""
    home = Rehearsal(directory=books, faults=[NoCapacity(left=1)])
    with compute(home, elsewhere) as pool:
        pool.resize(3)
        until(lambda: pool.current_nodes() == 3)
        assert (1, 2) == (len(ids(home)), len(ids(elsewhere)))
        pool.resize(1)
        until(lambda: len(ids(home)) + len(ids(elsewhere)) == 1)
        until(lambda: pool.current_nodes() == 1)
        assert 1 == (who() >> pool)[2]


def test_an_elastic_pool_grows_where_there_is_room(books: str, elsewhere: Rehearsal) -> None:
    """While calls wait."""
    home = Rehearsal(directory=books, faults=[NoCapacity(left=1)])
    pause = sky.function(time.sleep)
    with compute(home, elsewhere, nodes=(1, 2), autoscale_cooldown=0.1) as pool:
        waiting = [pause(0.5) > pool for _ in range(8)]
        until(lambda: ids(elsewhere))
        for call in waiting:
            call.result()


def test_a_cloud_that_does_not_answer_holds_up_nobody_who_leaves(books: str, elsewhere: Rehearsal) -> None:
    """Nothing was asked of it but what it sells."""
    home, silent = Closing(directory=books), Silent(directory=elsewhere.directory)
    silent.asked.clear()
    silent.given_up.clear()
    with compute(home, silent, nodes=2):
        home.close()
        home.preempt(min(ids(home)))
        until(lambda: silent.asked)
        assert [] == silent.given_up
    assert ["skyward_preflight"] == silent.given_up


def test_two_clouds_of_one_account_keep_their_machines_apart(books: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What one has rented for the pool is no stray of the other."""
    monkeypatch.setattr(watching, "STRAYING", 0.3)
    home, other = Closing(directory=books), Rehearsal(directory=books)
    with compute(home, other, nodes=2) as pool:
        home.close()
        home.preempt(min(ids(home)))
        until(lambda: pool.current_nodes() == 2 and len(ids(home)) == 2)
        before, lists = ids(home), home.lists[books]
        until(lambda: home.lists[books] > lists + 5)
        assert before == ids(other) == {name for name, _, _ in who() @ pool}
        tags = [machine.tags for machine in home.machines() if machine.tags is not None]
        assert (1, 2) == (len({each.pool_name for each in tags}), len({each.pool_id for each in tags}))


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"region": "north"}, "region= says where the nodes are to be"),
        ({"plugins": [sky.Plugin.create("job").with_topology(lambda cluster: Topology(collective=True))]}, "reach"),
    ],
)
def test_some_pools_stay_at_their_cloud(
    settings: dict[str, Any], why: str, books: str, elsewhere: Rehearsal, caplog: pytest.LogCaptureFixture
) -> None:
    """They go on with the nodes that they have, and say once why no other cloud was asked."""
    home = Closing(directory=books)
    errors: list[sky.Error] = []
    pool = compute(home, elsewhere, nodes=2, max_provision_attempts=1, **settings).on(sky.Error, errors.append)
    with caplog.at_level(logging.WARNING, "skyward.engine.clouds"), pool:
        home.close()
        home.preempt(min(ids(home)))
        until(lambda: pool.snapshot()["desired"] == 1)
        assert 1 == len(ids(home))
    [said] = [record.getMessage() for record in caplog.records if record.name == "skyward.engine.clouds"]
    assert why in said
    assert any("Sold out." in error.message for error in errors)


def test_machines_that_are_there_anyway_make_up_for_none(books: str, elsewhere: Rehearsal) -> None:
    """Whoever falls back on hosts of his own means the pool as a whole."""
    home = Closing(directory=books)
    with compute(home, Hosts(directory=elsewhere.directory), nodes=2, max_provision_attempts=1) as pool:
        home.close()
        home.preempt(min(ids(home)))
        until(lambda: pool.snapshot()["desired"] == 1)
        assert set() == ids(elsewhere)


def test_what_a_node_may_cost_holds_elsewhere_too(books: str, elsewhere: Rehearsal) -> None:
    """What cannot be had anywhere is one error, with the reason of each cloud."""
    home = Closing(directory=books)
    errors: list[sky.Error] = []
    pool = sky.Compute(
        sky.Spec(provider=home, nodes=2),
        sky.Spec(provider=elsewhere, max_hourly_cost=0.01),
        options=sky.Options(selection="first", console=False, logging=False, max_provision_attempts=1),
    ).on(sky.Error, errors.append)
    with pool:
        home.close()
        home.preempt(min(ids(home)))
        until(lambda: pool.snapshot()["desired"] == 1)
        assert set() == ids(elsewhere)
    [said] = [error.message for error in errors if "No provider could give a node" in error.message]
    assert "Sold out." in said
    assert "max_hourly_cost=0.01 excludes" in said


def test_the_others_are_tried_as_the_selection_says(books: str, elsewhere: Rehearsal) -> None:
    """It is asked again, with what is for sale by then; one that has nothing is followed by the next."""
    home, full = Closing(directory=books), Rehearsal(directory=elsewhere.directory, faults=[NoCapacity()])
    last = Rehearsal(directory=elsewhere.directory)
    asked: list[int] = []

    def select(providers: Any, spec: Any) -> Any:
        asked.append(len(providers))
        return [providers[0], providers[2], providers[1]]

    with compute(home, last, full, selection=select) as pool:
        home.close()
        home.preempt(min(ids(home)))
        until(lambda: ids(elsewhere) and pool.current_nodes() == 1)
        assert who() >> pool
    assert [3, 3] == asked
