"""What Verda says it sells, as offers, and the image that a type boots: pure translation."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from skyward.provider import (
    ConfigError,
    Misread,
    Offer,
    field,
    listed,
    number,
    optional,
    readable,
    text,
    unknown_name,
    whole,
)

__all__ = ["Stock", "choose_image", "read_stock", "to_offers"]

Stock = Mapping[str, Collection[str]]
"""The types that are left in each location."""

_COUNT = re.compile(r"^\s*\d+\s*x\s+", re.IGNORECASE)
_IMAGE = re.compile(
    r"(?P<system>[a-z]+)-(?P<major>\d+)\.(?P<minor>\d+)"
    r"(?P<cuda>-cuda-(?P<cuda_major>\d+)\.(?P<cuda_minor>\d+))?(?P<open>-open)?(?P<docker>-docker)?"
)


def read_stock(answer: object) -> dict[str, frozenset[str]]:
    """
    Read which types are left where; a location that cannot be read is left out with a warning.

    Args:
        answer: What `GET /instance-availability` says of one market.

    Raises:
        Misread: If it is anything else, or no location can be read.

    >>> read_stock([{"location_code": "FIN-01", "availabilities": ["1V100.6V"]}])
    {'FIN-01': frozenset({'1V100.6V'})}
    """

    def read(row: object) -> tuple[str, frozenset[str]]:
        return text(row, "location_code"), frozenset(map(str, listed(row, "availabilities")))

    return dict(readable(listed(answer, ""), read))


def to_offers(
    rows: Iterable[object], on_demand: Stock, spot: Stock, places: Sequence[str], seen_at: float | None = None
) -> list[Offer]:
    """
    Return an offer for each type in each location; the markets of a location have stocks of their own.

    A type that no market of a location has left is there with its prices, and marked as not available.

    Args:
        rows: What `GET /instance-types` lists.
        on_demand: What is left on demand.
        spot: What is left as spot.
        places: The locations.
        seen_at: When that was said, in seconds since 1970.

    Raises:
        Misread: If no type can be read.
    """
    found = []
    for kind in readable(rows, _kind):
        for place in places:
            left = kind.instance_type in on_demand.get(place, ()), kind.instance_type in spot.get(place, ())
            prices = kind.on_demand_price, kind.spot_price
            if any(left):
                prices = prices[0] if left[0] else None, prices[1] if left[1] else None
            if prices == (None, None):
                continue
            found.append(
                Offer(
                    provider="verda",
                    instance_type=kind.instance_type,
                    region=place,
                    accelerator_name=kind.accelerator_name,
                    accelerator_count=kind.accelerator_count,
                    accelerator_memory_gb=kind.accelerator_memory_gb,
                    vcpus=kind.vcpus,
                    memory_gb=kind.memory_gb,
                    on_demand_price=prices[0],
                    spot_price=prices[1],
                    available=any(left),
                    seen_at=seen_at,
                    # The rate that a spot machine is compared with, also where none is left on demand.
                    data={} if kind.on_demand_price is None else {"on_demand": kind.on_demand_price},
                )
            )
    return found


def choose_image(rows: Iterable[object], *, gpus: bool, wanted: str | None, subject: str) -> str:
    """
    Choose what a type boots: the newest Ubuntu, with the newest CUDA where there are GPUs, without Docker if it can be.

    Args:
        rows: The images that the type boots, as `GET /images?instance_type=` lists them.
        gpus: Whether it has GPUs.
        wanted: The image that the user names; None for any.
        subject: The type, for the error.

    Raises:
        ConfigError: If there is none, or not the one that is wanted.

    >>> rows = [{"image_type": "ubuntu-22.04"}, {"image_type": "ubuntu-24.04-cuda-12.8-open-docker"}]
    >>> choose_image(rows, gpus=True, wanted=None, subject="1H100.80S.30V")
    'ubuntu-24.04-cuda-12.8-open-docker'
    """
    fit = [row for row in rows if isinstance(row, Mapping) and not row.get("is_cluster")]
    names = [text(row, "image_type") for row in fit]
    if wanted is not None:
        if wanted in names or wanted in [row.get("id") for row in fit]:
            return wanted
        raise unknown_name(f"Verda boots no image {wanted!r} on {subject}", wanted, names, provider="verda")
    known = [(match, name) for name in names if (match := _IMAGE.fullmatch(name)) and match["system"] == "ubuntu"]
    if known:
        return max(known, key=lambda each: _rank(each[0], gpus=gpus))[1]
    standard = [row for row in fit if row.get("is_default")] or fit
    if not standard:
        raise ConfigError(
            f"Verda lists no image for {subject}.", provider="verda", hint="Name one: sky.Verda(image=…)."
        )
    return text(standard[0], "image_type")


def _rank(name: re.Match[str], *, gpus: bool) -> tuple[object, ...]:
    cuda = (int(name["cuda_major"]), int(name["cuda_minor"])) if name["cuda"] else (0, 0)
    return (
        bool(name["cuda"]) is gpus,
        (int(name["major"]), int(name["minor"])),
        cuda,
        not name["docker"],
        bool(name["open"]),
    )


def _kind(row: object) -> Offer:
    """Read a type, wherever it is sold."""
    count = whole(row, "gpu.number_of_gpus")
    name = _COUNT.sub("", text(row, "gpu.description")) if count else None
    total = optional(row, "gpu_memory.size_in_gigabytes", number) if count else None
    return Offer(
        provider="verda",
        instance_type=text(row, "instance_type"),
        accelerator_name=name,
        accelerator_count=count,
        accelerator_memory_gb=total / count if total else None,
        vcpus=_above_zero(row, "cpu.number_of_cores"),
        memory_gb=_above_zero(row, "memory.size_in_gigabytes"),
        on_demand_price=_price(row, "price_per_hour"),
        spot_price=_price(row, "spot_price"),
    )


def _price(row: object, name: str) -> float | None:
    """Read a price, which may be text; one that is null, or nothing, is none."""
    if field(row, name) is None:
        return None
    return number(row, name, written=True) or None


def _above_zero(row: Any, name: str) -> float | None:
    value = optional(row, name, number)
    if value is not None and value <= 0:
        raise Misread(f"{name!r} is {value:g}")
    return value
