"""What is said of machines that could not be ended."""

from __future__ import annotations

import pytest

from skyward.model.instances.cluster import Cluster
from skyward.model.instances.machine import ProviderFacts
from skyward.model.instances.offer import Offer
from skyward.model.spec.spec import Spec
from skyward.plan.instances.left_behind import left_behind

ITSELF = ProviderFacts(name="cloud", ends_own_bill=True, end_command=("poweroff",))
GUARDED = ProviderFacts(name="cloud", ends_own_bill=False)


def cluster(ttl: float | None) -> Cluster:
    """Make a pool."""
    offer = Offer(provider="cloud", instance_type="small")
    return Cluster(pool_id="a1", pool_name="train", spec=Spec(ttl=ttl), offer=offer, provider="cloud", nodes=2)


def test_it_says_which_why_and_what_to_do() -> None:
    """All of them, the reason once, and the command with the pool's id."""
    error = left_behind({"m-1": "Not allowed.", "m-2": "Not allowed."}, cluster(600.0), ITSELF)
    assert ("m-1", "m-2") == error.instances
    assert ("cloud", "train") == (error.provider, error.pool)
    assert "billed for m-1, m-2: Not allowed. What is left" in str(error)
    assert str(error).endswith("To end it: sky down a1")


@pytest.mark.parametrize(
    ("facts", "ttl", "guardian", "fate"),
    [
        (
            ITSELF,
            600.0,
            None,
            "What is left terminates itself at the latest 600 s after it last heard from this program.",
        ),
        (
            ProviderFacts(name="cloud", ends_own_bill="running", end_command=("poweroff",)),
            600.0,
            None,
            (
                "What is left and runs terminates itself at the latest 600 s after it last heard from this program. "
                "Nothing else ends what does not run."
            ),
        ),
        (ITSELF, None, None, "Nothing else ends what is left."),
        (ITSELF, 0.0, None, "Nothing else ends what is left."),
        (ProviderFacts(name="cloud", ends_own_bill=True), 600.0, None, "Nothing else ends what is left."),
        (GUARDED, 600.0, 12, "Guardian (process 12) goes on ending what is left, for a day."),
        (GUARDED, 600.0, None, "Nothing else ends what is left."),
    ],
)
def test_it_says_who_ends_what_is_left(
    facts: ProviderFacts, ttl: float | None, guardian: int | None, fate: str
) -> None:
    """The machines themselves, their guardian, or nothing."""
    assert f"No. {fate} " in str(left_behind({"m-1": "No."}, cluster(ttl), facts, guardian=guardian))
