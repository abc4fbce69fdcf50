"""
Facts tell what is wanted; what an offer does not tell is not guessed.
"""

from __future__ import annotations

from typing import Any

import pytest

from skyward.errors import ConfigError
from skyward.model.accelerators.accelerator import accelerator
from skyward.model.instances.offer import Offer
from skyward.plan.offers.wanted import Order, Wanted, order, select


def offer(name: str = "a", **facts: Any) -> Offer:
    """Return an offer in the catalogue's words."""
    return Offer(provider=facts.pop("provider", "cloud"), instance_type=name, **facts).normalised()


def gpu(name: str, count: float = 1, **facts: Any) -> Offer:
    """Return an offer with accelerators."""
    return offer(accelerator_name=name, accelerator_count=count, **facts)


@pytest.mark.parametrize(
    ("wanted", "fitting", "other"),
    [
        (Wanted(accelerator=accelerator("H100:4")), gpu("NVIDIA H100 PCIe", 8), gpu("H100", 2)),
        (Wanted(accelerator=accelerator("A100-40GB")), gpu("A100 SXM4 40GB"), gpu("A100 SXM4 80GB")),
        (Wanted(accelerator=accelerator("H100-SXM")), gpu("H100"), gpu("H100 PCIe")),
        (Wanted(cpu_only=True), offer(vcpus=4), gpu("T4")),
        (Wanted(provider="cloud"), offer(), offer(provider="sky")),
        (Wanted(region="r"), offer(region="r"), offer()),
        (Wanted(accelerator_architecture="Hopper"), gpu("H200"), gpu("A100")),
        (Wanted(manufacturer="AMD"), gpu("MI300X"), offer()),
        (Wanted(accelerator_memory_gb=48), gpu("L40S"), gpu("H100")),
        (Wanted(accelerator_memory_most_gb=48), gpu("L40S"), gpu("H100 NVL")),
        (Wanted(accelerator_count=4), gpu("T4", 4), gpu("T4", 2)),
        (Wanted(vcpus=8), offer(vcpus=8), offer()),
        (Wanted(memory_gb=64), offer(memory_gb=64), offer(memory_gb=63.9)),
        (Wanted(way="spot"), offer(spot_price=1.0), offer(on_demand_price=1.0)),
        (Wanted(way="on-demand"), offer(on_demand_price=1.0), offer(spot_price=1.0)),
        (Wanted(max_price=1.0), offer(spot_price=1.0, on_demand_price=3.0), offer()),
        (Wanted(max_price=1.0, way="on-demand"), offer(on_demand_price=1.0), offer(spot_price=1.0, on_demand_price=2)),
        (Wanted(to_be_had=True), offer(spot_price=0.0), offer(spot_price=1.0, available=False)),
        (Wanted(to_be_had=True), offer(spot_price=0.0), offer()),
    ],
)
def test_each_wish_excludes_what_does_not_meet_it(wanted: Wanted, fitting: Offer, other: Offer) -> None:
    """Of two offers, the one that meets the wish is found."""
    assert [fitting] == select(wanted, [other, fitting])
    assert 2 == len(select(Wanted(), [other, fitting]))


def test_the_lowest_price_comes_first_and_what_has_none_last() -> None:
    """The price is that of the way asked for, else the lower one."""
    cheap, dear, unpriced = offer("a", on_demand_price=1.0), offer("b", spot_price=0.5, on_demand_price=4.0), offer("c")
    assert [dear, cheap, unpriced] == select(Wanted(), [unpriced, cheap, dear])
    assert [cheap, dear] == select(Wanted(way="on-demand"), [unpriced, dear, cheap])


def test_orders_follow_each_other() -> None:
    """The second orders those that the first holds equal; what does not tell comes last in both directions."""
    small, large, huge, unknown = (offer(f"{size}", vcpus=size, memory_gb=8) for size in (2, 4, 8, None))
    both = (Order("memory_gb"), Order("vcpus", descending=True))
    assert [huge, large, small, unknown] == select(Wanted(orders=both), [small, unknown, large, huge])
    assert [small, large] == select(Wanted(orders=(Order("vcpus"),), limit=2), [huge, unknown, large, small])


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("price", Order("price")),
        ("-memory_gb", Order("memory_gb", descending=True)),
        (" vcpus DESC ", Order("vcpus", descending=True)),
        ("region asc", Order("region")),
    ],
)
def test_an_order_is_read(written: str, meant: Order) -> None:
    """A field, and which end of it comes first."""
    assert meant == order(written)


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("prise", "order_by='prise' is no order of offers. Did you mean \"price\"\\? Accepted: price, spot_price"),
        ("price; DROP TABLE offer", "is no order of offers"),
        ("-price desc", "is no order of offers"),
        ("", "is no order of offers"),
        (3, "order_by must be the name of a field, not 3"),
    ],
)
def test_what_is_no_order_is_refused(written: object, message: str) -> None:
    """The nearest field is offered, and all are listed."""
    with pytest.raises(ConfigError, match=message):
        order(written)
