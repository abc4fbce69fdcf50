"""What EC2 says it sells, as offers: pure translation."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from skyward.provider import Offer, recognise, sold

if TYPE_CHECKING:
    from skyward.provider import Architecture, Spec

__all__ = ["ACCELERATED", "GENERAL", "patterns", "price_filters", "prices", "spot_prices", "to_offer", "useful"]

ACCELERATED = ("g*", "p*", "trn*", "inf*", "dl1*")
"""Instance types that have accelerators."""

GENERAL = tuple(
    f"{family}.*" for family in "t3 t4g m6i m7i m7a m7g m8g c6i c7i c7a c7g c8g r6i r7i r7a r7g r8g".split()
)
"""Instance types without accelerators, worth looking at: present generations, without local disks or fast networks."""

_FILTERS = {
    "operatingSystem": "Linux",
    "tenancy": "Shared",
    "preInstalledSw": "NA",
    "capacitystatus": "Used",
    "licenseModel": "No License required",
    "marketoption": "OnDemand",
}
_ARCHITECTURES: dict[str, Architecture] = {"x86_64": "x86_64", "arm64": "arm64"}


def patterns(spec: Spec) -> tuple[str, ...]:
    """
    Return the instance types to ask for, as EC2's filter takes them.

    >>> from skyward.model.spec.spec import Spec
    >>> patterns(Spec(machine="m7i.large")), patterns(Spec(accelerator="A100"))[:2]
    (('m7i.large',), ('g*', 'p*'))
    """
    if spec.machine is not None:
        return (spec.machine,)
    return ACCELERATED if spec.accelerator is not None else (*ACCELERATED, *GENERAL)


def useful(row: Mapping[str, Any], spec: Spec) -> bool:
    """
    Return whether an instance type can meet a spec at all, so that its price has to be known.

    A spec that asks for nothing gets everything.

    Args:
        row: The type, as `DescribeInstanceTypes` describes it.
        spec: What is asked for.
    """
    offer = to_offer(row, "", None, None)
    if offer is None or (spec.machine is not None and offer.instance_type != spec.machine):
        return False
    if spec.architecture is not None and offer.architecture != spec.architecture:
        return False
    if (offer.vcpus or 0) < (spec.vcpus or 0) or (offer.memory_gb or 0) < (spec.memory_gb or 0):
        return False
    if spec.accelerator is None:
        return True
    if not offer.accelerator_name:
        return False
    has = recognise(offer.accelerator_name, count=offer.accelerator_count, memory_gb=offer.accelerator_memory_gb)
    return spec.accelerator.accepts(has)


def to_offer(row: Mapping[str, Any], region: str, on_demand: float | None, spot: float | None) -> Offer | None:
    """
    Translate an instance type; None if it is none that a node could be.

    Args:
        row: The type, as `DescribeInstanceTypes` describes it.
        region: Where it is sold.
        on_demand: What an hour costs on demand, in USD.
        spot: What an hour costs on the spot market where it costs least, in USD.

    >>> row = {"InstanceType": "m7i.large", "VCpuInfo": {"DefaultVCpus": 2}, "MemoryInfo": {"SizeInMiB": 8192},
    ...        "ProcessorInfo": {"SupportedArchitectures": ["x86_64"]}}
    >>> to_offer(row, "us-east-1", 0.1, None).memory_gb
    8.0
    """
    found = [_ARCHITECTURES[name] for name in _architectures(row) if name in _ARCHITECTURES]
    if not found:
        return None
    name, count, memory_mib = _accelerators(row)
    return Offer(
        provider="aws",
        instance_type=row["InstanceType"],
        region=region,
        accelerator_name=name,
        accelerator_count=count,
        accelerator_memory_gb=_gb(memory_mib) if memory_mib else None,
        vcpus=float(row["VCpuInfo"]["DefaultVCpus"]),
        memory_gb=_gb(row["MemoryInfo"]["SizeInMiB"]),
        architecture=found[-1],
        on_demand_price=on_demand,
        spot_price=spot,
    )


def price_filters(region: str, name: str | None = None) -> list[dict[str, str]]:
    """
    Return the filters that leave one price for each type: Linux, on demand, nothing reserved, nothing installed.

    Args:
        region: Where.
        name: Only this type; None for all.
    """
    wanted = {"regionCode": region, **_FILTERS, **({"instanceType": name} if name else {})}
    return [{"Type": "TERM_MATCH", "Field": field, "Value": value} for field, value in wanted.items()]


def prices(listed: Iterable[str]) -> dict[str, float]:
    """
    Read the price list: what an hour of each type costs, in USD; an entry that cannot be read is left out.

    Args:
        listed: Its entries, each the text of a JSON object.

    Raises:
        OfferError: If there are some, and none can be read.
    """
    return {name: price for each in sold(listed, _prices, provider="aws") for name, price in each.items()}


def _prices(text: str) -> dict[str, float]:
    """Read an entry of the price list."""
    entry = json.loads(text)
    name = entry["product"]["attributes"].get("instanceType")
    terms = entry.get("terms", {}).get("OnDemand", {}).values()
    found = [_price(each["pricePerUnit"].get("USD", 0)) for term in terms for each in term["priceDimensions"].values()]
    # Reserved capacity is listed at a price of nothing.
    return dict.fromkeys([name] if name else [], max(found, default=0.0)) if any(found) else {}


def _price(written: object) -> float:
    """Return a price, which is written as text."""
    price = float(str(written))
    if not math.isfinite(price) or price < 0:
        raise ValueError(f"{written!r:.40} is no price")
    return price


def spot_prices(history: Iterable[Mapping[str, str]]) -> dict[str, dict[str, float]]:
    """
    Read the spot price history: the price in force by type and zone, in USD per hour; without what cannot be read.

    Args:
        history: Its rows.

    Raises:
        OfferError: If there are some, and none can be read.

    >>> spot_prices([{"InstanceType": "g5.xlarge", "AvailabilityZone": "us-east-1a", "SpotPrice": "0.4"}])
    {'g5.xlarge': {'us-east-1a': 0.4}}
    """
    found: dict[str, dict[str, float]] = {}
    newest: dict[tuple[str, str], Any] = {}

    def read(row: Mapping[str, Any]) -> tuple[str, str, float, Any]:
        return row["InstanceType"], row["AvailabilityZone"], _price(row["SpotPrice"]), row.get("Timestamp")

    for name, zone, price, moment in sold(history, read, provider="aws"):
        before = newest.get((name, zone))
        if before is not None and moment is not None and before > moment:
            continue
        newest[name, zone] = moment
        found.setdefault(name, {})[zone] = price
    return found


def _architectures(row: Mapping[str, Any]) -> Sequence[str]:
    names: Sequence[str] = row.get("ProcessorInfo", {}).get("SupportedArchitectures", ())
    return names


def _accelerators(row: Mapping[str, Any]) -> tuple[str | None, float, float | None]:
    """Return the name, the number and the memory of one in MiB of the accelerators of a type."""
    for info, key in (
        ("GpuInfo", "Gpus"),
        ("NeuronInfo", "NeuronDevices"),
        ("InferenceAcceleratorInfo", "Accelerators"),
    ):
        for device in row.get(info, {}).get(key, ()):
            # Slices of a card are counted as none.
            count = device.get("Count") or device.get("GpuPartitionSize") or 0
            return device["Name"], float(count), device.get("MemoryInfo", {}).get("SizeInMiB")
    return None, 0.0, None


def _gb(mib: float) -> float:
    return round(mib / 1024, 1)
