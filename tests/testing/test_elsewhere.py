"""A node that the pool's own cloud has no machine for is rented at another one, and ended there."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import pytest

import skyward as sky
from skyward.engine.guardian.journal import launches
from skyward.hookspecs import Cluster, Instance, LaunchRequest, hookimpl
from skyward.testing import Rehearsal
from tests.waiting import until

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
