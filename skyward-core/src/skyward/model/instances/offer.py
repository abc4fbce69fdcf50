"""
What a provider sells now.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from attrs import evolve, field, frozen

from skyward.model.accelerators.accelerator import Accelerator, recognise
from skyward.model.accelerators.catalogue import CATALOGUE
from skyward.model.accelerators.device import FormFactor
from skyward.model.fields.memory import written
from skyward.model.instances.details import NONE, Details, details
from skyward.model.instances.offer_table import offers_html

if TYPE_CHECKING:
    from skyward.model.spec.spec import Architecture

__all__ = ["Offer"]


def _data(value: Mapping[str, Any]) -> Details:
    """Return the provider's own data, frozen."""
    return details(value, "data")


@lru_cache(maxsize=4096)
def _recognised(name: str, count: float, memory_gb: float | None, form: FormFactor | None, known: int) -> Accelerator:
    """
    Return what the catalogue knows of accelerators on offer, of which a cloud names the same few again and again.

    The size of the catalogue is an argument because a name that is not known yet may be later.
    """
    seen = recognise(name, count=count, memory_gb=memory_gb)
    if form is None or seen.form_factor is not None or seen.device is None or form not in seen.device.form_factors:
        return seen
    return recognise(f"{name} {form}", count=seen.count, memory_gb=memory_gb)


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
        accelerator_memory_gb: Memory of one accelerator, in GB; of what is counted in MiB, 1024 make one.
        accelerator_form_factor: Form factor of its accelerators: `"SXM"`, `"PCIe"`, `"NVL"` or `"OAM"`.
        vcpus: Virtual CPUs.
        memory_gb: Main memory, in GB.
        disk_gb: Disk space, in GB.
        architecture: Of its processor: `"x86_64"` or `"arm64"`.
        spot_price: In USD per hour, for a machine that may be reclaimed.
        on_demand_price: In USD per hour, for one that may not.
        available: Whether the provider says that it can be had now; True where it says nothing.
        seen_at: When the provider said so, in seconds since the epoch.
        data: What else the provider wants to know of it when it is rented; what JSON can hold, and no secret.

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
    accelerator_form_factor: FormFactor | None = None
    data: Mapping[str, Any] = field(default=NONE, converter=_data)

    @property
    def key(self) -> str:
        """
        Return what distinguishes it from all other offers of its provider's.

        >>> Offer(provider="aws", instance_type="p5.48xlarge", region="us-east-1", accelerator_count=8).key
        'aws/p5.48xlarge:8/us-east-1/-'
        """
        return (
            f"{self.provider}/{self.instance_type}:{self.accelerator_count:g}/{self.region or '-'}/{self.zone or '-'}"
        )

    @property
    def accelerator(self) -> Accelerator | None:
        """Return its accelerators as the catalogue knows them; None without any."""
        if not self.accelerator_name or not self.accelerator_count:
            return None
        return _recognised(
            self.accelerator_name,
            self.accelerator_count,
            self.accelerator_memory_gb,
            self.accelerator_form_factor,
            len(CATALOGUE),
        )

    @property
    def accelerators(self) -> str | None:
        """
        Return its accelerators in words, with the memory of one where that is known; None without any.

        >>> Offer(provider="a", instance_type="b", accelerator_name="A100-SXM4-40GB", accelerator_count=8).accelerators
        '8 × A100 40GB'
        """
        seen = self.accelerator
        if seen is None:
            return None
        memory = seen.known_memory_gb
        return f"{seen.count:g} × {seen.name}" + ("" if memory is None else f" {written(memory)}")

    @property
    def accelerator_manufacturer(self) -> str | None:
        """Return the manufacturer of its accelerators; None where that is not known."""
        seen = self.accelerator
        return None if seen is None else seen.manufacturer

    @property
    def accelerator_architecture(self) -> str | None:
        """
        Return the generation that the maker counts its accelerators to; None where that is not known.

        >>> Offer(provider="runpod", instance_type="a", accelerator_name="NVIDIA H200", accelerator_count=1
        ...     ).accelerator_architecture
        'Hopper'
        """
        seen = self.accelerator
        return None if seen is None else seen.architecture

    @property
    def least_price(self) -> float | None:
        """Return what an hour costs in the cheaper of both ways; None where it is sold in neither."""
        return min((price for price in (self.spot_price, self.on_demand_price) if price is not None), default=None)

    def normalised(self) -> Offer:
        """
        Return the same offer in the catalogue's words; what no catalogue has stays as it is.

        >>> cloud = Offer(provider="sample", instance_type="a", accelerator_name="A100-SXM4-40GB", accelerator_count=8)
        >>> offer = cloud.normalised()
        >>> offer.accelerator_name, offer.accelerator_memory_gb, offer.accelerator_form_factor
        ('A100', 40, 'SXM')
        """
        seen = self.accelerator
        if seen is None:
            return self
        return evolve(
            self,
            accelerator_name=seen.name,
            accelerator_count=seen.count,
            accelerator_memory_gb=seen.known_memory_gb,
            accelerator_form_factor=seen.form_factor,
        )

    def price(self, *, spot: bool) -> float | None:
        """Return what an hour costs in USD, as spot or on demand; None where it is not sold so."""
        return self.spot_price if spot else self.on_demand_price

    def _repr_html_(self) -> str:
        """Return the offer as a table of one row, for notebooks."""
        return offers_html([self])
