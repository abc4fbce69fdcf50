"""What was tried in vain is said: why in the first line, then each attempt, and what comes nearest."""

from __future__ import annotations

import pytest

from skyward.model.instances.offer import Offer
from skyward.model.spec.spec import Spec
from skyward.plan.offers.choice import Candidate, Kind, Refusal, choose
from skyward.plan.offers.tried import tried

OFFERS = tuple(
    Offer(provider="x", instance_type="small", zone=zone, vcpus=4, spot_price=0.1, on_demand_price=0.4)
    for zone in ("a", "b", "c")
)


def refused(zone: str, kind: Kind = "capacity", *, spot: bool = False) -> Refusal:
    offer = next(each for each in OFFERS if each.zone == zone)
    candidate = Candidate(offer=offer, spot=spot, price=0.1 if spot else 0.4)
    return Refusal(candidate=candidate, kind=kind, reason=f"None in {zone}.", at=0.0)


@pytest.mark.parametrize(
    ("refusals", "first"),
    [
        ([refused("a")], "small in a, on demand at $0.4/h: None in a."),
        ([refused("a"), refused("b")], "all 2 offers had no capacity, such as small in a, on demand at $0.4/h: "),
        ([refused("a", "quota"), refused("b", "quota")], "all 2 offers were over the quota, such as "),
        (
            [refused("a"), refused("b", "failed"), refused("c")],
            "of 3 offers 2 had no capacity, 1 failed, such as small in a",
        ),
    ],
)
def test_the_first_line_says_why(refusals: list[Refusal], first: str) -> None:
    """Whatever it was that refused."""
    assert tried(refusals, choose(Spec(), OFFERS)).splitlines()[0].startswith(first)


def test_each_way_to_rent_is_listed_once() -> None:
    """With what was said last."""
    text = tried([refused("a"), refused("b"), refused("a"), refused("a", spot=True)], choose(Spec(), OFFERS))
    assert ["small in a, on demand", "small in b, on demand", "small in a, spot"] == [
        line.strip().partition(" at ")[0] for line in text.splitlines()[2:]
    ]


@pytest.mark.parametrize(
    ("wishes", "nearest"),
    [
        ({"allocation": "on-demand"}, "Not tried: small in a, spot at $0.1/h."),
        ({"allocation": "on-demand", "max_hourly_cost": 0.5}, "Not tried: small in a, spot at $0.1/h."),
        ({"vcpus": 8}, "Not tried: vcpus=8 excludes 3 of 3. Nearest is small in a, $0.1/h spot or $0.4/h on demand"),
    ],
)
def test_the_nearest_offer_that_exists_is_named(wishes: dict[str, object], nearest: str) -> None:
    """Another market, or what the wishes leave out."""
    text = tried([refused("a"), refused("b")], choose(Spec(**wishes), OFFERS))  # type: ignore[arg-type]
    assert text.splitlines()[-1].startswith(nearest)


def test_nothing_is_named_when_all_was_tried() -> None:
    """There is no other offer."""
    assert "Not tried" not in tried([refused("a")], choose(Spec(), OFFERS))


@pytest.mark.parametrize(
    ("wishes", "offers", "said"),
    [
        ({}, (), "Nothing is left to try. It sells nothing at this moment."),
        ({"vcpus": 8}, OFFERS, "Nothing is left to try.\nNot tried: vcpus=8 excludes 3 of 3. Nearest is small in a"),
        ({"allocation": "spot"}, (), "Nothing is left to try. It sells nothing at this moment."),
    ],
)
def test_it_is_said_where_nothing_was_tried(wishes: dict[str, object], offers: tuple[Offer, ...], said: str) -> None:
    """What was for sale a moment ago can be gone when it is looked for again."""
    assert tried([], choose(Spec(**wishes), offers)).startswith(said)  # type: ignore[arg-type]
