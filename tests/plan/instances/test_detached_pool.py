"""Which pools may be detached, and which one a name means."""

from __future__ import annotations

import pytest

import skyward as sky
from skyward.model.instances.machine import ProviderFacts
from skyward.plan.instances.detached_pool import Detached, check_detach, choose_detached, lease_of

RENTED = ProviderFacts(name="cloud", ends_own_bill=True, end_command=("poweroff",))


def left(pool_id: str, name: str = "train", ends_at: float = 600.0) -> Detached:
    """Make one."""
    return Detached(
        pool_id=pool_id,
        pool_name=name,
        provider="cloud",
        machines=("i-1",),
        calls=1,
        hourly_rate=1.0,
        since=0.0,
        ends_at=ends_at,
        runtime="r",
    )


def test_a_machine_that_ends_itself_may_be_left() -> None:
    """So may one that is not rented."""
    check_detach(RENTED, pool="train", ttl=600.0)
    check_detach(ProviderFacts(name="ssh", ends_own_bill=True, rents=False), pool="train", ttl=600.0)


@pytest.mark.parametrize(
    ("facts", "more", "why"),
    [
        (ProviderFacts(name="cloud", ends_own_bill=False), {}, "machines of cloud cannot end their own bill"),
        (RENTED, {"ttl": 0.0}, "ttl=0 disarms the watchdogs"),
        (RENTED, {"ttl": None}, "ttl=None disarms the watchdogs"),
        (RENTED, {"local": True}, "its nodes are processes of this program, and end with it"),
        (RENTED, {"volumes": (sky.Volume("data", "/data"),)}, "may not all be there when its lease ends"),
    ],
)
def test_what_would_not_end_or_lose_data_is_not_left(facts: ProviderFacts, more: dict[str, object], why: str) -> None:
    """Money first."""
    given: dict[str, object] = {"ttl": 600.0, **more}
    with pytest.raises(sky.ConfigError, match=f"Pool 'train' cannot be detached: .*{why}"):
        check_detach(facts, pool="train", **given)  # type: ignore[arg-type]


@pytest.mark.parametrize("lease", [0, -1, float("inf"), True, "soon"])
def test_a_lease_is_a_length_of_time(lease: float) -> None:
    """A detached pool always ends."""
    with pytest.raises(sky.ConfigError, match="lease"):
        lease_of(lease, 600.0)


def test_a_name_or_an_id_means_a_pool() -> None:
    """An id before a name, and one whose lease has not ended before one whose has."""
    pools = [left("a1"), left("b2", "sweep"), left("c3", "sweep", ends_at=5.0)]
    assert [choose_detached(pools, name, now=10.0).pool_id for name in ("a1", "train", "sweep")] == ["a1", "a1", "b2"]


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("other", "No pool 'other' is detached.*There are 'train' .a1., 'train' .b2."),
        ("train", "2 pools named 'train' are detached: a1, b2"),
        ("c3", "The lease of the detached pool 'c3' ended 5 s ago"),
    ],
)
def test_what_is_not_there_says_why(name: str, why: str) -> None:
    """And which there are."""
    pools = [left("a1"), left("b2"), left("c3", "sweep", ends_at=5.0)]
    with pytest.raises(sky.ConfigError, match=why):
        choose_detached(pools, name, now=10.0)
