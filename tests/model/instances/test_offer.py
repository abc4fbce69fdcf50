"""
What a provider sells.
"""

from __future__ import annotations

import pickle

import pytest

from skyward.model.accelerators.fit import select_instance
from skyward.model.instances.offer import Offer


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


def test_an_offer_in_the_catalogue_s_words_is_chosen_by_its_form_factor() -> None:
    """What was in the cloud's name stays known once the name is the catalogue's."""
    facts = {"provider": "a", "accelerator_count": 1, "vcpus": 8}
    boxed, slotted = (
        Offer(instance_type=name, accelerator_name=name, **facts).normalised()  # type: ignore[arg-type]
        for name in ("H100 SXM5 80GB", "H100 PCIe")
    )
    assert boxed is select_instance([slotted, boxed], accelerator="H100-SXM")


def test_it_is_a_value_with_data_of_its_own() -> None:
    """The provider's data cannot be changed, counts for equality, and an offer with some can be hashed."""
    made = Offer(provider="a", instance_type="b", data={"ids": [1]})
    assert {made: 1}[Offer(provider="a", instance_type="b", data={"ids": (1,)})] == 1
    assert made != Offer(provider="a", instance_type="b")
    assert made == pickle.loads(pickle.dumps(made))


@pytest.mark.parametrize(
    ("name", "count", "memory", "expected"),
    [
        ("A10G", 1, 22888 / 1024, ("A10G", 1, 24, None, "NVIDIA", "Ampere")),
        ("L40S", 4, 45776 / 1024, ("L40S", 4, 48, None, "NVIDIA", "Ada Lovelace")),
        ("H200", 8, 144384 / 1024, ("H200", 8, 141, None, "NVIDIA", "Hopper")),
        ("A100", 8, 40960 / 1024, ("A100", 8, 40, None, "NVIDIA", "Ampere")),
        ("NVIDIA H100 80GB HBM3", 8, 80, ("H100", 8, 80, "SXM", "NVIDIA", "Hopper")),
        ("H100 NVL", 1, None, ("H100", 1, 94, "NVL", "NVIDIA", "Hopper")),
        ("H100", 1, None, ("H100", 1, None, None, "NVIDIA", "Hopper")),
        ("8V100.48V", 8, None, ("V100", 8, None, None, "NVIDIA", "Volta")),
        ("gpu-h100x8-640gb", 1, None, ("H100", 8, 80, None, "NVIDIA", "Hopper")),
        ("amd_mi300x", 1, 192, ("MI300X", 1, 192, None, "AMD", "CDNA 3")),
        ("Frobnicator", 2, 64, ("Frobnicator", 2, 64, None, None, None)),
    ],
)
def test_accelerators_are_put_into_the_catalogue_s_words(
    name: str, count: float, memory: float | None, expected: tuple[object, ...]
) -> None:
    """Name, count, memory and form factor are normalised; memory that could be one of several stays unknown."""
    offer = Offer(
        provider="a", instance_type="b", accelerator_name=name, accelerator_count=count, accelerator_memory_gb=memory
    ).normalised()
    assert expected == (
        offer.accelerator_name,
        offer.accelerator_count,
        offer.accelerator_memory_gb,
        offer.accelerator_form_factor,
        offer.accelerator_manufacturer,
        offer.accelerator_architecture,
    )
    assert offer == offer.normalised()


def test_a_machine_without_accelerators_has_none() -> None:
    """Neither a maker nor a generation."""
    offer = Offer(provider="a", instance_type="b", vcpus=4)
    assert (None, None, None) == (offer.accelerator, offer.accelerator_manufacturer, offer.accelerator_architecture)
    assert offer is offer.normalised()


def test_the_least_price_is_of_the_ways_it_is_sold() -> None:
    """A way without a price does not count, and free is a price."""
    assert 0.0 == Offer(provider="a", instance_type="b", spot_price=0.0, on_demand_price=1.0).least_price
    assert 1.0 == Offer(provider="a", instance_type="b", on_demand_price=1.0).least_price
    assert Offer(provider="a", instance_type="b").least_price is None


def test_offers_of_one_provider_have_keys_of_their_own() -> None:
    """Type, size, region and zone tell them apart."""
    made = [
        Offer(provider="a", instance_type=name, region=region, zone=zone, accelerator_count=count)
        for name in ("x", "y")
        for region in (None, "r")
        for zone in (None, "z")
        for count in (0, 1)
    ]
    assert len(made) == len({offer.key for offer in made})
