"""How many nodes an elastic pool should have."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from skyward.errors import ConfigError
from skyward.model.spec.nodes import Nodes, NodeSpec
from skyward.plan.pool.scaling import PoolLoad, resized, scale
from skyward.plan.pool.workload import Workload

BOUNDS = Nodes(2, max=8)


def work(queued: int, seconds: float, *remaining: float, running: int = 2) -> Workload:
    """Return so many calls that wait, each of so many seconds, beside some that run."""
    return Workload(queued=queued, queued_seconds=queued * seconds, running=running, remaining=remaining or (seconds,))


def size(desired: int, bounds: Nodes = BOUNDS, *, ready: int | None = None, **load: object) -> int:
    """Return the size that a pool is to have."""
    given: dict[str, Any] = {"boot": 60.0, "hourly_rate": 1.0, **load}
    have = PoolLoad(ready=desired if ready is None else ready, **given)
    return scale(desired, bounds, have, cooldown=30, idle_timeout=60)


@pytest.mark.parametrize(
    ("queued", "seconds", "expected"),
    [(0, 100.0, 2), (1, 1.0, 2), (50, 1.0, 2), (50, 0.01, 2), (50, 100.0, 8), (5, 100.0, 7), (2, 200.0, 4)],
)
def test_a_pool_grows_by_the_nodes_that_its_queue_keeps_busy(queued: int, seconds: float, expected: int) -> None:
    """Not for what the nodes that there are have done when another one is there, nor beyond what waits."""
    assert expected == size(2, work=work(queued, seconds))


def test_a_pool_grows_from_the_first_second() -> None:
    """There is no cooldown for growing: nodes that are on their way count."""
    long = work(50, 30.0)
    grown = size(1, since_growth=0.0, work=long, ready=1, slots_per_node=2)
    assert 1 < grown <= 8
    assert grown == size(grown, since_growth=0.0, work=long, ready=1, slots_per_node=2)


def test_a_call_does_not_wait_for_one_that_goes_on_for_hours() -> None:
    """However short it is: no slot of those that there are is free for it."""
    assert 3 == size(2, work=work(1, 0.1, 7200.0))
    assert 2 == size(2, work=work(1, 0.1, 5.0))


def test_what_a_node_is_billed_for_at_least_is_to_be_used() -> None:
    """More work has to wait for a machine that is billed by the hour, less for one that costs nothing."""
    waits = work(10, 30.0)
    by_the_hour = size(2, billed_at_least=3600.0, work=waits)
    assert by_the_hour == 2 < size(2, work=waits) < size(2, hourly_rate=0.0, work=waits)


def test_a_machine_that_boots_quickly_is_asked_for_sooner() -> None:
    """What waits now would be done before a slow one is there."""
    assert 2 == size(2, boot=300.0, work=work(10, 30.0)) < size(2, boot=10.0, work=work(10, 30.0))


def test_nodes_that_run_several_calls_are_worth_several() -> None:
    """Fewer are asked for."""
    assert size(2, slots_per_node=8, work=work(40, 60.0, running=16)) < size(2, work=work(40, 60.0))


def test_a_pool_without_nodes_gets_one_for_any_call() -> None:
    """And as many as it has work for, if that is known."""
    bounds = Nodes(min=0, max=8)
    assert 1 == size(0, bounds, work=work(1, 0.1, running=0))
    assert 8 == size(0, bounds, work=work(100, 100.0, running=0))
    assert 0 == size(0, bounds)
    assert 1 == size(1, bounds, ready=0, work=work(3, 0.1, running=0))


def test_nodes_that_cannot_be_had_are_not_counted_on_and_not_piled_up() -> None:
    """Those that are there are as busy as without them."""
    assert size(2, work=work(9, 60.0)) == size(3, ready=2, late=1, work=work(9, 60.0))
    assert 3 == size(3, ready=2, late=1, work=work(1, 1.0))


@pytest.mark.parametrize(
    ("load", "expected"),
    [
        ({"idle_seconds": (70.0, 10.0)}, 3),
        ({"idle_seconds": (70.0,) * 4}, 2),
        ({"idle_seconds": (70.0,), "since_growth": 5.0}, 4),
        ({"idle_seconds": (70.0,), "work": work(1, 1.0)}, 4),
        ({"ready": 3, "late": 1, "quiet": 90.0}, 3),
        ({"ready": 3, "late": 1, "quiet": 30.0}, 4),
    ],
)
def test_a_pool_shrinks_by_nodes_that_have_nothing_to_do(load: dict[str, Any], expected: int) -> None:
    """For long enough, not soon after a change, not below its bounds; and by those that cannot be had."""
    assert expected == size(4, **load)


def test_a_pool_drains_to_zero_where_it_may() -> None:
    """With its last node."""
    assert 0 == size(1, Nodes(min=0), idle_seconds=(60.0,))
    assert 1 == size(1, Nodes(1, max=4), idle_seconds=(60.0,))


def test_a_pool_is_not_changed_while_that_is_held() -> None:
    """Whatever waits, and whatever is idle."""
    assert 2 == size(2, hold=True, work=work(50, 100.0))
    assert 4 == size(4, hold=True, idle_seconds=(90.0,) * 4)


def test_a_pool_of_a_fixed_size_is_left_alone() -> None:
    """Without a maximum nothing scales."""
    assert 2 == size(2, Nodes(2), work=work(99, 1000.0))


ELASTIC = Nodes(4, min=2, max=8)


@pytest.mark.parametrize(
    ("bounds", "size", "expected"),
    [
        (Nodes(2), 5, Nodes(5)),
        (Nodes(8, min=4), 2, Nodes(2)),
        (Nodes(4, max=4), 6, Nodes(6)),
        (Nodes(2, max=8), 5, Nodes(5, min=2, max=8)),
        (ELASTIC, 2, Nodes(2, min=2, max=8)),
        (ELASTIC, 8, Nodes(8, min=2, max=8)),
        (ELASTIC, (3, 16), Nodes(3, max=16)),
        (ELASTIC, Nodes(16, min=1, max=32), Nodes(16, min=1, max=32)),
        (ELASTIC, Nodes(5), Nodes(5)),
    ],
)
def test_a_number_keeps_the_bounds_of_an_elastic_pool(bounds: Nodes, size: NodeSpec, expected: Nodes) -> None:
    """Of a pool of fixed size it is the size; a pair and a `Nodes` replace the bounds of either."""
    assert expected == resized(bounds, size, "train")


@pytest.mark.parametrize(
    ("size", "written"),
    [(1, r"sky\.Nodes\(1, min=1, max=8\)"), (9, r"sky\.Nodes\(9, min=2, max=9\)"), (0, "nodes=4")],
)
def test_a_number_that_the_bounds_exclude_is_refused(size: int, written: str) -> None:
    """With what to write for it."""
    with pytest.raises(ConfigError, match=rf"(?s)(with 2 to 8 nodes; it cannot be resized|at least 1).*{written}"):
        resized(ELASTIC, size, "train")


@given(
    st.integers(0, 8), st.integers(0, 8), st.integers(0, 200), st.floats(0.0, 1e5), st.integers(0, 64),
    st.lists(st.floats(0.0, 1e6), max_size=5), st.integers(1, 8), st.floats(0.0, 3600.0), st.floats(0.0, 60.0),
)  # fmt: skip
def test_the_size_stays_within_its_bounds(
    desired: int, ready: int, queued: int, seconds: float, running: int, remaining: list[float], slots: int,
    boot: float, rate: float,
) -> None:  # fmt: skip
    """Whatever is measured; it only grows while something waits, and by no more than could have a call each."""
    load = Workload(queued=queued, queued_seconds=queued * seconds, running=running, remaining=tuple(remaining))
    have = PoolLoad(
        work=load, ready=min(ready, desired), slots_per_node=slots, boot=boot, hourly_rate=rate,
        idle_seconds=(1e4,) * min(ready, desired),
    )  # fmt: skip
    then = scale(desired, Nodes(min=0, max=8), have, cooldown=0.0, idle_timeout=60.0)
    assert 0 <= then <= 8
    if queued:
        assert then >= desired
        assert then <= max(desired, max(1, desired) + -(-queued // slots))
    else:
        assert then <= desired
