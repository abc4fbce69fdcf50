"""
What a provider sells.
"""

from __future__ import annotations

from skyward.model.fit import select_instance
from skyward.model.offer import Offer


def test_a_price_is_of_a_way_to_rent() -> None:
    """Spot and on demand are priced apart, and what is not sold has no price."""
    offer = Offer(provider="aws", instance_type="a", spot_price=0.1)
    assert (0.1, None) == (offer.price(spot=True), offer.price(spot=False))


def test_offers_can_be_chosen_from() -> None:
    """An offer has the fields that choosing an instance reads."""
    small, large = (
        Offer(
            provider="aws",
            instance_type=name,
            vcpus=size,
            memory_gb=size * 4,
            accelerator_name="T4",
            accelerator_count=1,
        )
        for name, size in (("small", 4), ("large", 16))
    )
    assert small is select_instance([large, small], accelerator="T4", cpu=2)
