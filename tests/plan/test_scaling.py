"""How many nodes an elastic pool should have."""

from __future__ import annotations

import pytest

from skyward.model.nodes import Nodes
from skyward.plan.scaling import Load, scale


@pytest.mark.parametrize(
    ("desired", "load", "expected"),
    [
        (2, Load(queued=0, slots_per_node=1), 2),
        (2, Load(queued=1, slots_per_node=1), 3),
        (2, Load(queued=50, slots_per_node=1), 4),
        (6, Load(queued=50, slots_per_node=1), 8),
        (8, Load(queued=50, slots_per_node=1), 8),
        (2, Load(queued=3, slots_per_node=4), 3),
        (4, Load(queued=0, slots_per_node=1, idle_seconds=(70.0, 10.0)), 3),
        (4, Load(queued=0, slots_per_node=1, idle_seconds=(70.0,) * 4), 2),
        (4, Load(queued=2, slots_per_node=1, idle_seconds=(70.0,), since_change=5.0), 4),
    ],
)
def test_size_follows_the_load_within_bounds(desired: int, load: Load, expected: int) -> None:
    """At most double at once, never within the cooldown, down only by who was idle."""
    assert scale(desired, Nodes(2, max=8), load, cooldown=30, idle_timeout=60) == expected


def test_fixed_pool_is_left_alone() -> None:
    """Without a maximum nothing scales."""
    assert scale(2, Nodes(2), Load(queued=99, slots_per_node=1), cooldown=0, idle_timeout=0) == 2
