"""
Which machines a pool asks for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given, strategies as st

from skyward.model.instances.offer import Offer
from skyward.model.spec.spec import Spec
from skyward.plan.offers.choice import REMEMBERED, Candidate, Refusal, choose, in_order, must_be_spot, remaining

SMALL = Offer(
    provider="x",
    instance_type="small",
    region="eu",
    zone="eu-a",
    vcpus=4,
    memory_gb=16,
    spot_price=0.1,
    on_demand_price=0.4,
)
LARGE = Offer(
    provider="x",
    instance_type="large",
    region="us",
    zone="us-a",
    vcpus=96,
    memory_gb=1000,
    accelerator_name="NVIDIA H100 80GB HBM3",
    accelerator_count=8,
    accelerator_memory_gb=80,
    architecture="x86_64",
    spot_price=30,
    on_demand_price=90,
)
PRICES = st.none() | st.floats(0.01, 100)
OFFERS = st.lists(
    st.builds(
        Offer,
        provider=st.just("x"),
        instance_type=st.sampled_from("abc"),
        region=st.sampled_from(["eu", "us"]),
        zone=st.none() | st.sampled_from("12"),
        vcpus=st.none() | st.floats(1, 64),
        memory_gb=st.none() | st.floats(1, 512),
        disk_gb=st.none() | st.floats(1, 512),
        accelerator_name=st.none() | st.sampled_from(["H100", "T4", "unheard of"]),
        accelerator_count=st.sampled_from([0, 1, 8]),
        spot_price=PRICES,
        on_demand_price=PRICES,
        available=st.booleans(),
    ),
    max_size=8,
)
SPECS = st.builds(
    Spec,
    accelerator=st.none() | st.sampled_from(["H100", "T4:8"]),
    vcpus=st.none() | st.floats(1, 64),
    memory_gb=st.none() | st.floats(1, 512),
    disk_gb=st.none() | st.floats(1, 512),
    region=st.none() | st.sampled_from(["eu", "us"]),
    max_hourly_cost=st.none() | st.floats(0.01, 100),
    allocation=st.sampled_from(["spot-if-available", "spot", "on-demand", "cheapest", 0.0, 0.5, 1.0]),
)


@pytest.mark.parametrize(
    ("wish", "fits"),
    [
        ({"max_hourly_cost": 100}, "small large"),
        ({"accelerator": "H100"}, "large"),
        ({"accelerator": "H100:8"}, "large"),
        ({"accelerator": "T4"}, ""),
        ({"vcpus": 5, "max_hourly_cost": 100}, "large"),
        ({"memory_gb": 16, "max_hourly_cost": 100}, "small large"),
        ({"disk_gb": 10_000, "max_hourly_cost": 100}, "small large"),
        ({"architecture": "arm64"}, "small"),
        ({"machine": "small"}, "small"),
        ({"region": "us", "max_hourly_cost": 100}, "large"),
        ({"max_hourly_cost": 0.1}, "small"),
        ({"max_hourly_cost": 29}, "small"),
        ({"max_hourly_cost": 0.05}, ""),
    ],
)
def test_a_wish_excludes_offers(wish: dict[str, Any], fits: str) -> None:
    """And those it does not exclude can be rented."""
    choice = choose(Spec(**wish), [SMALL, LARGE])
    assert {made.offer.instance_type for made in (*choice.spot, *choice.on_demand)} == set(fits.split())
    assert len(choice.rejections) == 2 - len(fits.split())


@pytest.mark.parametrize(
    ("allocation", "order"),
    [
        ("spot-if-available", [("small", True), ("small", False), ("large", True), ("large", False)]),
        ("cheapest", [("small", True), ("small", False), ("large", True), ("large", False)]),
        ("spot", [("small", True), ("large", True)]),
        ("on-demand", [("small", False), ("large", False)]),
    ],
)
def test_an_allocation_orders_markets(allocation: Any, order: list[tuple[str, bool]]) -> None:
    """Spot that is more expensive than a machine on demand is not preferred."""
    spec = Spec(allocation=allocation, max_hourly_cost=100)
    made = in_order(spec, choose(spec, [LARGE, SMALL]))
    assert [(candidate.offer.instance_type, candidate.spot) for candidate in made] == order


def test_spot_comes_first_where_it_is_cheaper_than_any_on_demand() -> None:
    """However cheap another offer is on demand."""
    other = evolve(SMALL, instance_type="other", spot_price=0.39, on_demand_price=0.45)
    order = in_order(Spec(), choose(Spec(), [SMALL, other]))
    assert [(made.offer.instance_type, made.spot) for made in order] == [
        ("small", True),
        ("other", True),
        ("small", False),
        ("other", False),
    ]


def test_why_not_counts_wishes_and_names_the_nearest() -> None:
    """The nearest has the accelerators that are asked for, and misses the fewest other wishes."""
    choice = choose(Spec(accelerator="H100", region="eu"), [SMALL, LARGE, evolve(LARGE, available=False)])
    assert choice.why_not == (
        "region='eu' excludes 2, accelerator='H100' excludes 1, available excludes 1 of 3. "
        'Nearest is large in us-a, $30/h spot or $90/h on demand, with region=us. Write region="us" to get it.'
    )


def test_what_costs_nothing_is_free() -> None:
    """Such as the user's own machine."""
    own = Offer(provider="local", instance_type="desk", on_demand_price=0.0)
    assert (
        "Nearest is desk, free, with vcpus=unknown. Leave out vcpus to get it." in choose(Spec(vcpus=4), [own]).why_not
    )


def test_nothing_for_sale_is_said() -> None:
    """Rather than that nothing excludes nothing."""
    assert choose(Spec(), []).why_not == "It sells nothing at this moment."


@given(SPECS, OFFERS)
def test_every_offer_is_chosen_or_rejected_with_a_reason(spec: Spec, offers: list[Offer]) -> None:
    """Nothing that is chosen misses a wish, costs too much, or is of a market that is not allowed."""
    choice = choose(spec, offers)
    unasked = [each.candidate for each in choice.unasked]
    chosen = {id(made.offer) for made in (*choice.spot, *choice.on_demand, *unasked)}
    assert all(rejection.wishes for rejection in choice.rejections)
    assert all(each.why for each in choice.unasked)
    assert chosen | {id(rejection.offer) for rejection in choice.rejections} == {id(offer) for offer in offers}
    assert len(chosen) + len(choice.rejections) == len(offers)
    for made in (*choice.spot, *choice.on_demand):
        assert made.price == made.offer.price(spot=made.spot)
        assert spec.max_hourly_cost is None or made.price <= spec.max_hourly_cost
        assert made.offer.available
        assert spec.allocation.allows_spot if made.spot else spec.allocation.allows_on_demand
    if choice.rejections:
        assert choice.why_not


@given(SPECS, OFFERS, st.sampled_from([True, False, None]))
def test_an_order_keeps_to_the_allocation(spec: Spec, offers: list[Offer], spot: bool | None) -> None:
    """Within a market the cheaper one comes first."""
    choice = choose(spec, offers)
    order = in_order(spec, choice, spot=spot)
    assert len({(id(made.offer), made.spot) for made in order}) == len(order)
    assert set(map(id, order)) <= set(map(id, (*choice.spot, *choice.on_demand)))
    for market in (True, False):
        prices = [made.price for made in order if made.spot is market]
        assert prices == sorted(prices)
    if spot:
        assert all(made.spot for made in order)


@given(st.sampled_from(["spot", "on-demand", "cheapest", 0.0, 0.3, 0.8, 1.0]), st.integers(1, 50), st.data())
def test_a_share_holds_whatever_was_rented_before(allocation: Any, total: int, data: st.DataObject) -> None:
    """As long as there is room for it."""
    wanted = Spec(allocation=allocation).allocation
    staying = data.draw(st.integers(0, total))
    spot = data.draw(st.integers(0, staying))
    more = must_be_spot(wanted, total=total, spot=spot, staying=staying)
    assert 0 <= more <= total - staying
    assert spot + more >= wanted.least_spot(total) or more == total - staying


DEAR = Spec(max_hourly_cost=100)
MEDIUM = evolve(SMALL, instance_type="medium", region="us", spot_price=0.15, on_demand_price=0.6)
SOLD = [SMALL, LARGE, evolve(SMALL, zone="eu-b"), evolve(LARGE, region="eu"), MEDIUM]
CANDIDATES = in_order(DEAR, choose(DEAR, SOLD))


def refused(candidate: Candidate, kind: Any, at: float = 0.0) -> Refusal:
    return Refusal(candidate=candidate, kind=kind, reason="no", at=at)


def test_no_capacity_excludes_one_way_to_rent() -> None:
    """The same machine in another zone, or on the other market, may be had."""
    left = remaining(CANDIDATES, [refused(CANDIDATES[0], "capacity")], now=1.0)
    assert left == CANDIDATES[1:]


@pytest.mark.parametrize(
    ("of", "closed"),
    [
        (("region", "kind", "market"), lambda made: made.spot and made.offer.instance_type == "small"),
        (("kind", "market"), lambda made: made.spot and not made.offer.accelerator_count),
        (("kind",), lambda made: not made.offer.accelerator_count),
        (("region",), lambda made: made.offer.region == "eu"),
        (("market",), lambda made: made.spot),
        ((), lambda made: True),
    ],
)
def test_a_quota_excludes_what_it_is_of(of: Any, closed: Callable[[Candidate], bool]) -> None:
    """Sizes of machines without accelerators are one kind; nothing is asked for that cannot be allowed."""
    small = next(made for made in CANDIDATES if made.offer == SMALL and made.spot)
    left = remaining(CANDIDATES, [evolve(refused(small, "quota"), of=of)], now=1.0)
    assert [made for made in CANDIDATES if closed(made)] == [made for made in CANDIDATES if made not in left]


def test_a_quota_of_one_accelerator_leaves_the_others() -> None:
    """And machines without any."""
    large = next(made for made in CANDIDATES if made.offer == LARGE and made.spot)
    left = remaining(CANDIDATES, [evolve(refused(large, "quota"), of=("kind",))], now=1.0)
    assert [made for made in CANDIDATES if not made.offer.accelerator_count] == list(left)


def test_a_refusal_is_forgotten() -> None:
    """What was sold out is asked for again later."""
    assert remaining(CANDIDATES, [refused(CANDIDATES[0], "quota", at=5.0)], now=5.0 + REMEMBERED) == CANDIDATES
