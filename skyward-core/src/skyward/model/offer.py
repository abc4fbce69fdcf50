"""
What a provider sells now.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import frozen

if TYPE_CHECKING:
    from skyward.model.spec import Architecture

__all__ = ["Offer"]


@frozen(kw_only=True)
class Offer:
    """
    Describe one kind of machine that a provider sells now, at one place.

    A fact that is not known is None; a price that is None is not sold in that way.

    Args:
        provider: The provider's name.
        instance_type: The provider's name for this kind of machine.
        region: Where it is, as the provider calls it.
        zone: Where in the region, for providers that sell by zone.
        accelerator_name: Name of its accelerators, as the provider or the catalogue spells it; None without any.
        accelerator_count: How many accelerators it has.
        accelerator_memory_gb: Memory of one accelerator, in GB.
        vcpus: Virtual CPUs.
        memory_gb: Main memory, in GB.
        disk_gb: Disk space, in GB.
        architecture: Of its processor: `"x86_64"` or `"arm64"`.
        spot_price: In USD per hour, for a machine that may be taken back.
        on_demand_price: In USD per hour, for one that may not.
        available: Whether the provider says that it can be had now; True where it says nothing.
        seen_at: When the provider said so, in seconds since the epoch.

    >>> Offer(provider="aws", instance_type="g4dn.xlarge", on_demand_price=0.526).price(spot=False)
    0.526
    """

    provider: str
    instance_type: str
    region: str | None = None
    zone: str | None = None
    accelerator_name: str | None = None
    accelerator_count: float = 0
    accelerator_memory_gb: float | None = None
    vcpus: float | None = None
    memory_gb: float | None = None
    disk_gb: float | None = None
    architecture: Architecture | None = None
    spot_price: float | None = None
    on_demand_price: float | None = None
    available: bool = True
    seen_at: float | None = None

    def price(self, *, spot: bool) -> float | None:
        """Return what an hour costs in USD, as spot or on demand; None where it is not sold so."""
        return self.spot_price if spot else self.on_demand_price
