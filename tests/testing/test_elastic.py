"""Elastic pools on a cloud that fails: the size is kept, no machine is rented twice, and none is left."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import pytest

import skyward as sky
from skyward.hookspecs import Instance, LaunchRequest, hookimpl
from skyward.testing import Fault, ListingLag, LostResponse, Rehearsal, SlowApi
from tests.waiting import until

pytestmark = pytest.mark.slow

LAZY = sky.Nodes(min=0, max=2)


class Closing(Rehearsal):
    """A cloud that sells nothing for a while."""

    sold_out: ClassVar[set[str]] = set()

    def close(self) -> None:
        """Sell out."""
        self.sold_out.add(self.directory)

    def reopen(self) -> None:
        """Have machines again."""
        self.sold_out.discard(self.directory)

    @hookimpl
    async def skyward_launch(self, request: LaunchRequest) -> Sequence[Instance]:
        """Rent machines, while there are any."""
        if self.directory in self.sold_out:
            raise sky.CapacityError("Sold out.")
        return await super().skyward_launch(request)


def compute(books: str, *faults: Fault, **options: Any) -> sky.Compute:
    """Make a pool on a cloud on which something goes wrong."""
    given = {
        "provider": Rehearsal(faults=faults, directory=books),
        "console": False,
        "logging": False,
        "provision_retry_delay": 0.1,
        "reconcile_tick_interval": 0.2,
        **options,
    }
    return sky.Compute(**given)


@sky.function
def double(number: int) -> int:
    """Give twice a number."""
    return 2 * number


def test_a_pool_starts_from_zero_and_drains_to_zero(books: str) -> None:
    """However late lists are and whatever answers are lost; twice in its life."""
    cloud = Rehearsal(directory=books)
    faults = LostResponse(times=2), ListingLag(seconds=0.5), SlowApi(seconds=0.1)
    with compute(books, *faults, nodes=LAZY, autoscale_cooldown=0.0, autoscale_idle_timeout=0.5) as pool:
        assert [] == list(cloud.machines())
        for number in (1, 2):
            assert 2 * number == double(number) >> pool
            assert len(cloud.machines()) <= 2
            until(lambda: not cloud.machines())
        assert [4, 6] == pool.map(double, [2, 3])


def test_collections_start_a_pool_that_has_drained_to_zero(books: str) -> None:
    """The node with the store stays."""
    with compute(books, nodes=LAZY, autoscale_cooldown=0.0, autoscale_idle_timeout=0.2) as pool:
        counter = pool.counter("n")
        assert 1 == counter.increment()
        pool.resize(2)
        until(lambda: pool.current_nodes() == 2)
        until(lambda: pool.snapshot()["desired"] == 1)
        assert 2 == counter.increment()


def test_a_lost_node_is_replaced_when_there_is_capacity_again(books: str) -> None:
    """Long after three attempts, and with one machine."""
    cloud = Closing(directory=books)
    delays: list[sky.LaunchDelayed] = []
    pool = compute(books, provider=cloud, nodes=2).on(sky.LaunchDelayed, delays.append)
    with pool:
        cloud.close()
        cloud.preempt(min(machine.id for machine in cloud.machines()))
        until(lambda: len(delays) > 5)
        assert (2, 1, 2) == (pool.snapshot()["desired"], pool.current_nodes(), double(1) >> pool)
        cloud.reopen()
        until(lambda: pool.current_nodes() == 2)
        assert 2 == len(cloud.machines())


def test_a_resize_beyond_the_bounds_rents_nothing(books: str) -> None:
    """Nor one while the pool is left."""
    cloud = Rehearsal(directory=books)
    with compute(books, nodes=(1, 2)) as pool:
        with pytest.raises(sky.ConfigError, match="1 to 2 nodes; it cannot be resized to 3"):
            pool.resize(3)
        assert 1 == len(cloud.machines())
    with pytest.raises(sky.PoolClosedError):
        pool.resize(2)
