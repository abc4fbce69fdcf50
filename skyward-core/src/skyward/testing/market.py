"""
What the rehearsal cloud sells: four kinds of machines in two regions of two zones, at prices as they are elsewhere.
"""

from __future__ import annotations

from itertools import product

from attrs import evolve

from skyward.model.instances.offer import Offer

__all__ = ["GRANULARITY", "NAME", "REGIONS", "ZONES", "offers"]

NAME = "rehearsal"
"""The provider's name."""

REGIONS = ("north", "south")

GRANULARITY = 1.0
"""Seconds that are billed at least, and that every time is rounded up to."""

ZONES = ("north-a", "north-b", "south-a", "south-b")

# Prices in the region and zone that come first; elsewhere they are higher.
_KINDS = (
    Offer(provider=NAME, instance_type="small", vcpus=2, memory_gb=4, spot_price=0.03, on_demand_price=0.1),
    Offer(provider=NAME, instance_type="large", vcpus=16, memory_gb=64, spot_price=0.25, on_demand_price=0.8),
    Offer(
        provider=NAME,
        instance_type="gpu",
        vcpus=8,
        memory_gb=32,
        accelerator_name="T4",
        accelerator_count=1,
        accelerator_memory_gb=16,
        spot_price=0.2,
        on_demand_price=0.6,
    ),
    Offer(
        provider=NAME,
        instance_type="gpus",
        vcpus=96,
        memory_gb=1100,
        accelerator_name="A100",
        accelerator_count=8,
        accelerator_memory_gb=40,
        spot_price=11.0,
        on_demand_price=32.0,
    ),
)


def offers() -> list[Offer]:
    """
    List all that is sold.

    The second region costs a tenth more, and so is the second zone on the spot market.

    >>> [str(offer.spot_price) for offer in offers() if offer.instance_type == "small"]
    ['0.03', '0.033', '0.033', '0.0363']
    """
    return [
        _at(kind, *place) for kind, *place in product(_KINDS, range(len(REGIONS)), range(len(ZONES) // len(REGIONS)))
    ]


def _at(kind: Offer, region: int, zone: int) -> Offer:
    assert kind.spot_price is not None
    assert kind.on_demand_price is not None
    return evolve(
        kind,
        region=REGIONS[region],
        zone=ZONES[2 * region + zone],
        disk_gb=100,
        architecture="x86_64",
        spot_price=round(kind.spot_price * 1.1 ** (region + zone), 6),
        on_demand_price=round(kind.on_demand_price * 1.1**region, 6),
    )
