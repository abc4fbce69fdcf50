"""
A pool rents nothing far more expensive than the cheapest, and no accelerator, without permission.
"""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve
from hypothesis import given, strategies as st

from skyward.model.instances.offer import Offer
from skyward.model.spec.spec import Spec
from skyward.plan.offers.choice import choose, in_order
from skyward.plan.offers.permission import OVERPRICED
from skyward.plan.offers.tried import unasked

SMALL = Offer(provider="x", instance_type="small", memory_gb=4, spot_price=0.1, on_demand_price=0.5)
LARGE = evolve(SMALL, instance_type="large", memory_gb=64, spot_price=0.9, on_demand_price=1.1)
GPU = evolve(SMALL, instance_type="gpu", memory_gb=64, accelerator_name="T4", accelerator_count=1, spot_price=0.05)
FREE = evolve(GPU, spot_price=None, on_demand_price=0.0)


def rented(spec: Spec, *offers: Offer) -> list[str]:
    """List what may be rented, in the order to try."""
    order = in_order(spec, choose(spec, offers))
    return [f"{made.offer.instance_type} {'spot' if made.spot else 'on demand'}" for made in order]


@pytest.mark.parametrize(
    ("wishes", "offers", "may"),
    [
        ({}, [SMALL, LARGE, GPU], ["small spot", "small on demand", "large spot"]),
        ({"allocation": "spot"}, [SMALL, LARGE], ["small spot"]),
        ({"allocation": "on-demand"}, [SMALL, LARGE, GPU], ["small on demand"]),
        ({"max_hourly_cost": 1}, [SMALL, LARGE], ["small spot", "small on demand", "large spot"]),
        ({"max_hourly_cost": 0.07}, [SMALL, GPU], ["gpu spot"]),
        ({"memory_gb": 64}, [SMALL, GPU], []),
        ({"memory_gb": 64}, [GPU], ["gpu spot", "gpu on demand"]),
        ({"machine": "gpu"}, [SMALL, GPU], ["gpu spot", "gpu on demand"]),
        ({"accelerator": "T4"}, [SMALL, GPU], ["gpu spot", "gpu on demand"]),
        ({}, [evolve(SMALL, available=False), GPU], []),
        ({}, [SMALL, FREE], ["gpu on demand"]),
    ],
    ids=lambda value: str(value)[:40] if isinstance(value, dict) else None,
)
def test_offers_that_are_rented_without_permission(wishes: dict[str, Any], offers: list[Offer], may: list[str]) -> None:
    """Twice the cheapest of the market; a spot machine may cost what one on demand may; what is free, and asked for."""
    assert may == rented(Spec(**wishes), *offers)


@pytest.mark.parametrize(
    ("offers", "line"),
    [
        (
            [SMALL, LARGE],
            (
                "large, on demand at $1.1/h, costs more than twice $0.5/h, the cheapest that meets the requirements. "
                "max_hourly_cost=1.1 would allow it."
            ),
        ),
        (
            [SMALL, GPU],
            (
                "gpu, spot at $0.05/h, has 1 × T4, which is not asked for. max_hourly_cost=0.05 would allow it. "
                "1 more expensive offer was not tried either."
            ),
        ),
        ([SMALL], ""),
    ],
)
def test_an_offer_that_needs_permission_is_named_with_its_price(offers: list[Offer], line: str) -> None:
    """And with what allows it."""
    assert line == unasked(choose(Spec(), offers)).removeprefix("Not tried: ")


def test_the_price_that_is_named_is_enough() -> None:
    """It is rounded up."""
    large = evolve(LARGE, spot_price=None, on_demand_price=1.23456789)
    line = unasked(choose(Spec(), [SMALL, large]))
    assert "max_hourly_cost=1.235 " in line
    assert "large on demand" in rented(Spec(max_hourly_cost=1.235), SMALL, large)


def test_what_was_cheap_is_remembered_when_it_is_gone() -> None:
    """A stock that is emptied makes nothing that is left cheap, and no accelerator wanted."""
    first = choose(Spec(), [SMALL, LARGE, GPU])
    again = choose(Spec(), [LARGE, GPU], first.least)
    assert ([], 3) == ([made for made in again.on_demand if made.price > 1.0], len(again.unasked))


PRICES = st.none() | st.floats(0.01, 100)
OFFERS = st.lists(
    st.builds(
        Offer,
        provider=st.just("x"),
        instance_type=st.sampled_from("abc"),
        accelerator_name=st.none() | st.just("T4"),
        accelerator_count=st.sampled_from([0, 1]),
        spot_price=PRICES,
        on_demand_price=PRICES,
    ),
    max_size=8,
)


@given(OFFERS, st.sampled_from(["spot-if-available", "spot", "on-demand", "cheapest", 0.5]))
def test_nothing_is_rented_that_costs_more_than_twice_the_cheapest_of_its_market(
    offers: list[Offer], allocation: Any
) -> None:
    """Where both markets are allowed, twice the cheapest on demand; and what is the cheapest may always be rented."""
    spec = Spec(allocation=allocation)
    choice = choose(spec, offers)
    for market in (choice.spot, choice.on_demand):
        assert all(made.price <= OVERPRICED * (choice.on_demand or market)[0].price for made in market)
    plain = [offer for offer in offers if not offer.accelerator_count]
    if plain:
        assert not [made for made in (*choice.spot, *choice.on_demand) if made.offer.accelerator_count]
    elif choice.unasked:
        assert choice.spot or choice.on_demand
