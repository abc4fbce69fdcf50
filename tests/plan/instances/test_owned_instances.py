"""
Machines that clouds list: which are meant, which are forgotten.
"""

from __future__ import annotations

import pytest
from attrs import evolve

from skyward.model.instances.machine import Instance, InstanceState
from skyward.model.instances.tags import Tags
from skyward.plan.instances.owned_instances import GRACE, chosen, expired

TRAIN = Instance(
    id="i-1",
    node=0,
    provider="aws",
    tags=Tags(pool_id="a1", pool_name="train", owner="ada@box", expires_at=1000.0),
    launched_at=100.0,
)
SWEEP = evolve(TRAIN, id="i-2", tags=Tags(pool_id="b2", pool_name="sweep", expires_at=9000.0))
ENDED = evolve(TRAIN, id="i-3", state=InstanceState.ENDED)
BARE = evolve(TRAIN, id="i-4", tags=None)
ALL = [TRAIN, SWEEP, ENDED, BARE]


@pytest.mark.parametrize(
    ("pools", "only_expired", "meant"),
    [
        ((), False, ["i-1", "i-2", "i-4"]),
        (("train",), False, ["i-1"]),
        (("b2", "train"), False, ["i-1", "i-2"]),
        ((), True, ["i-1"]),
        (("sweep",), True, []),
        (("none",), False, []),
    ],
)
def test_machines_are_chosen_by_pool_and_expiry(pools: tuple[str, ...], only_expired: bool, meant: list[str]) -> None:
    """By the name of the pool or its id; what has ended is not there."""
    found = chosen(ALL, pools=pools, only_expired=only_expired, now=1000.0 + GRACE + 1)
    assert [one.id for one in found] == meant


@pytest.mark.parametrize(
    ("pools", "owner", "meant"),
    [
        ((), None, ["i-1", "i-2", "i-4"]),
        ((), "ada@box", ["i-1"]),
        (("train",), "eve@box", []),
        (("a1",), "eve@box", []),
        (("sweep",), "ada@box", []),
        (("b2",), "ada@box", ["i-2"]),
    ],
)
def test_machines_are_chosen_by_owner(pools: tuple[str, ...], owner: str | None, meant: list[str]) -> None:
    """One that bears no owner is meant only by its pool's id, which no other pool has."""
    assert [one.id for one in chosen(ALL, pools=pools, owner=owner, now=0.0)] == meant


@pytest.mark.parametrize(("now", "gone"), [(999.0, False), (1000.0 + GRACE, False), (1000.5 + GRACE, True)])
def test_a_machine_is_forgotten_some_time_after_its_expiry(now: float, gone: bool) -> None:
    """Clocks differ."""
    assert expired(TRAIN, now=now) is gone
    assert not expired(BARE, now=now)
