"""The table of offers that `sky offers` prints."""

from __future__ import annotations

from skyward.model.instances.offer import Offer

__all__ = ["HEADER", "row"]

HEADER = ("PROVIDER", "TYPE", "GPU", "VCPUS", "MEMORY", "REGION", "SPOT", "ON DEMAND", "NOW")


def row(offer: Offer) -> tuple[str, ...]:
    """
    Describe an offer in words, a column each, as `HEADER` names them.

    Args:
        offer: The offer.

    >>> row(Offer(provider="aws", instance_type="g4dn.xlarge", vcpus=4, memory_gb=16, on_demand_price=0.526))
    ('aws', 'g4dn.xlarge', '-', '4', '16 GB', '?', '-', '$0.526/h', 'yes')
    """
    return (
        offer.provider,
        offer.instance_type,
        offer.accelerators or "-",
        "?" if offer.vcpus is None else f"{offer.vcpus:g}",
        "?" if offer.memory_gb is None else f"{offer.memory_gb:g} GB",
        offer.zone or offer.region or "?",
        _price(offer.spot_price),
        _price(offer.on_demand_price),
        "yes" if offer.available else "no",
    )


def _price(price: float | None) -> str:
    return "-" if price is None else f"${price:.4g}/h"
