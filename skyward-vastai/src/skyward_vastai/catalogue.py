"""What Vast.ai lists, as offers: pure translation. A listing is one machine, which can be rented once."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil
from typing import TYPE_CHECKING, Any

from attrs import frozen

from skyward.provider import Misread, Offer, number, optional, text, whole

if TYPE_CHECKING:
    from skyward.provider import Architecture, Spec

__all__ = ["HIGHEST_BID", "LEAST_DISK_GB", "Wish", "country", "disk_gb", "is_country", "kind", "query", "to_offer"]

LEAST_DISK_GB = 8
"""The smallest disk that Vast.ai rents."""

HIGHEST_BID = 128.0
"""The highest bid that it takes, in USD per hour."""

MOST = 3000
"""Listings that are asked for at once."""

_USUAL_DISK_GB = 32
_MIB = 1024.0
_NEARLY = 0.9
_ARCHITECTURES: dict[str, Architecture] = {"amd64": "x86_64", "arm64": "arm64"}
_CHIPS = {"x86_64": "amd64", "arm64": "arm64"}


@frozen(kw_only=True)
class Wish:
    """
    Say which listings are looked at, whatever a pool asks for.

    Args:
        countries: Two-letter codes; none for everywhere.
        verified: Whether only machines that Vast.ai has verified will do.
        reliability: The least reliability, from 0 to 1.
        cuda: The release of CUDA that the driver has to know; None for any.
        bid_factor: What is bid, as a multiple of the lowest bid that would run now.
        machine: The number of the only machine; None for any.
    """

    countries: tuple[str, ...] = ()
    verified: bool = True
    reliability: float = 0.0
    cuda: str | None = None
    bid_factor: float = 1.2
    machine: int | None = None


def disk_gb(spec: Spec) -> int:
    """
    Return the disk that is rented, in GB; it is part of the price, and can't be changed later.

    Args:
        spec: What is asked for.
    """
    return max(LEAST_DISK_GB, ceil(spec.disk_gb)) if spec.disk_gb else _USUAL_DISK_GB


def query(spec: Spec, wish: Wish) -> dict[str, Any]:
    """
    Write the question for listings, which narrows them down to what may do; prices are no part of it.

    Args:
        spec: What is asked for.
        wish: Which listings are looked at at all.

    >>> from skyward.model.spec.spec import Spec
    >>> asked = query(Spec(accelerator="A100:2", timeout=3600), Wish())
    >>> asked["num_gpus"], asked["duration"]
    ({'eq': 2}, {'gte': 3600})
    """
    disk, chips = disk_gb(spec), [_CHIPS[spec.architecture]] if spec.architecture else list(_CHIPS.values())
    asked: dict[str, Any] = {
        "type": "on-demand",
        "order": [["dph_total", "asc"]],
        "limit": MOST,
        "allocated_storage": disk,
        "rentable": {"eq": True},
        "rented": {"eq": False},
        "external": {"eq": False},
        # Through Vast's own proxy all files would take a detour.
        "direct_port_count": {"gte": 1},
        "disk_space": {"gte": disk},
        "cpu_arch": {"in": chips},
    }
    if wish.machine is not None:
        # A user who has a volume there has chosen it, whatever Vast.ai thinks of it.
        asked["machine_id"] = {"eq": wish.machine}
    if wish.verified and wish.machine is None:
        # False would ask for those that are not.
        asked["verified"] = {"eq": True}
    if wish.reliability and wish.machine is None:
        asked["reliability"] = {"gte": wish.reliability}
    if wish.cuda:
        asked["cuda_max_good"] = {"gte": float(".".join(wish.cuda.split(".")[:2]))}
    countries = (spec.region,) if spec.region else wish.countries
    if countries:
        asked["geolocation"] = {"in": list(countries)}
    if spec.timeout:
        # A host's offer ends some day, and what runs there with it.
        asked["duration"] = {"gte": ceil(spec.timeout)}
    if spec.vcpus:
        asked["cpu_cores_effective"] = {"gte": spec.vcpus}
    wanted = spec.accelerator
    if wanted is not None:
        # Prices are for all GPUs of a listing.
        asked["num_gpus"] = {"eq": ceil(wanted.count)}
        if wanted.memories_gb:
            asked["gpu_ram"] = {"gte": int(min(wanted.memories_gb) * _MIB * _NEARLY)}
    return asked


def to_offer(row: Mapping[str, Any], wish: Wish) -> Offer:
    """
    Translate a listing.

    Args:
        row: The listing.
        wish: How much is bid.

    Raises:
        Misread: If a field that matters is missing, or is none of what it should be.

    >>> row = {"id": 7, "gpu_name": "RTX 4090", "num_gpus": 1, "gpu_ram": 24564, "dph_base": 0.4, "dph_total": 0.41,
    ...        "min_bid": 0.2, "cpu_cores": 64, "cpu_cores_effective": 16.0, "cpu_ram": 262144}
    >>> offer = to_offer(row, Wish(bid_factor=1.5))
    >>> offer.memory_gb, round(offer.spot_price, 2)
    (64.0, 0.31)
    """
    ask, count = whole(row, "id"), whole(row, "num_gpus")
    name = text(row, "gpu_name") if count else None
    total, gpus = number(row, "dph_total"), number(row, "dph_base")
    if not total:
        raise Misread("'dph_total' is no price but 0")
    least, ram = optional(row, "min_bid", number), optional(row, "gpu_ram", number)
    machine = optional(row, "machine_id", whole)
    region = country(row.get("geolocation"))
    bid = round(max(0.001, least * wish.bid_factor), 4) if least is not None else None
    if bid is not None and bid > HIGHEST_BID:
        bid = None
    return Offer(
        provider="vastai",
        instance_type=kind(count, name),
        region=region,
        # Every listing is a place of its own.
        zone=f"{region}-{ask}" if region else str(ask),
        accelerator_name=name,
        accelerator_count=count,
        accelerator_memory_gb=round(ram / _MIB, 1) if ram and count else None,
        vcpus=optional(row, "cpu_cores_effective", number) or None,
        memory_gb=_memory_gb(row),
        disk_gb=optional(row, "disk_space", number) or None,
        architecture=_ARCHITECTURES.get(str(row.get("cpu_arch"))),
        on_demand_price=total,
        # Who bids pays the bid, and the disk like everybody.
        spot_price=bid + max(0.0, total - gpus) if bid is not None else None,
        available=row.get("rentable") is not False,
        data={"ask": ask, "bid": bid} | ({} if machine is None else {"machine": machine}),
    )


def kind(count: int, name: str | None) -> str:
    """
    Name a kind of machine.

    Args:
        count: How many GPUs it has.
        name: What Vast.ai calls them.

    >>> kind(2, "RTX 4090")
    '2x RTX 4090'
    """
    return f"{count}x {name}" if count else "no GPU"


def country(place: object) -> str | None:
    """
    Return the code of the country that ends the description of a place; None where it says none.

    >>> country("California, US"), country(", US"), country(None)
    ('US', 'US', None)
    """
    code = place.rpartition(",")[2].strip() if isinstance(place, str) else ""
    return code if is_country(code) else None


def is_country(code: str) -> bool:
    """
    Return whether a text is spelled as the code of a country.

    >>> is_country("US"), is_country("us-east-1")
    (True, False)
    """
    return len(code) == 2 and code.isascii() and code.isalpha() and code.isupper()


def _memory_gb(row: Mapping[str, Any]) -> float | None:
    """Return the main memory of a listing, of which the API tells that of the whole machine."""
    memory = optional(row, "cpu_ram", number)
    cores, ours = optional(row, "cpu_cores", number), optional(row, "cpu_cores_effective", number)
    if not memory or not cores or not ours:
        return None
    return round(memory / _MIB * min(1.0, ours / cores), 1) or None
