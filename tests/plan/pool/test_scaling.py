"""How many nodes an elastic pool should have."""

from __future__ import annotations

import pytest

from skyward.errors import ConfigError
from skyward.model.spec.nodes import Nodes, NodeSpec
from skyward.plan.pool.scaling import PoolLoad, resized, scale


@pytest.mark.parametrize(
    ("desired", "load", "expected"),
    [
        (2, PoolLoad(queued=0, slots_per_node=1), 2),
        (2, PoolLoad(queued=1, slots_per_node=1), 3),
        (2, PoolLoad(queued=50, slots_per_node=1), 4),
        (6, PoolLoad(queued=50, slots_per_node=1), 8),
        (8, PoolLoad(queued=50, slots_per_node=1), 8),
        (2, PoolLoad(queued=3, slots_per_node=4), 3),
        (4, PoolLoad(queued=0, slots_per_node=1, idle_seconds=(70.0, 10.0)), 3),
        (4, PoolLoad(queued=0, slots_per_node=1, idle_seconds=(70.0,) * 4), 2),
        (4, PoolLoad(queued=2, slots_per_node=1, idle_seconds=(70.0,), since_change=5.0), 4),
    ],
)
def test_size_follows_the_load_within_bounds(desired: int, load: PoolLoad, expected: int) -> None:
    """At most double at once, never within the cooldown, down only by who was idle."""
    assert scale(desired, Nodes(2, max=8), load, cooldown=30, idle_timeout=60) == expected


def test_fixed_pool_is_left_alone() -> None:
    """Without a maximum nothing scales."""
    assert scale(2, Nodes(2), PoolLoad(queued=99, slots_per_node=1), cooldown=0, idle_timeout=0) == 2


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
