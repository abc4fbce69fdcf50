"""What DigitalOcean says it sells, as offers: pure translation."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from attrs import evolve

from skyward.provider import Offer, flag, listed, number, readable, text, whole

__all__ = ["IMAGE", "image_for", "is_gpu", "to_offers"]

IMAGE = "ubuntu-24-04-x64"
"""Image of droplets without GPUs."""

_AMD_IMAGE, _ONE_GPU_IMAGE, _MANY_GPUS_IMAGE = "gpu-amd-base", "gpu-h100x1-base", "gpu-h100x8-base"
_MANY = 8


def to_offers(rows: Iterable[object], regions: Sequence[str], seen_at: float) -> list[Offer]:
    """
    Translate sizes, one offer for each region that takes an order now.

    Args:
        rows: The sizes, as `GET /v2/sizes` lists them.
        regions: The regions to look at; none for all.
        seen_at: When this was, in seconds since 1970.

    Raises:
        Misread: If there are some, and none can be read.
    """
    found = readable(rows, lambda row: _offers(row, seen_at), provider="digitalocean")
    return [offer for offers in found for offer in offers if not regions or offer.region in regions]


def is_gpu(offer: Offer) -> bool:
    """Return whether an offer's droplets are among those that only a list of GPU droplets shows."""
    return offer.instance_type.startswith("gpu-") or bool(offer.accelerator_count)


def image_for(offer: Offer) -> str:
    """
    Return the image for an offer: one with drivers where there are GPUs; the one for one card fits every model.

    >>> image_for(Offer(provider="digitalocean", instance_type="gpu-mi300x1-192gb", accelerator_name="MI300X",
    ...     accelerator_count=1))
    'gpu-amd-base'
    """
    if not is_gpu(offer):
        return IMAGE
    if offer.accelerator_manufacturer == "AMD":
        return _AMD_IMAGE
    return _MANY_GPUS_IMAGE if offer.accelerator_count >= _MANY else _ONE_GPU_IMAGE


def _offers(row: Any, seen_at: float) -> list[Offer]:
    slug = text(row, "slug")
    name, count, memory = _gpus(row, slug)
    # Preemptible droplets have sizes of their own, which are no offers: the notice of preemption is not documented.
    sold = flag(row, "available") and not slug.endswith("-spot")
    regions = listed(row, "regions") if sold else []
    # Prices come with the long tails of binary fractions.
    size = Offer(
        provider="digitalocean",
        instance_type=slug,
        accelerator_name=name,
        accelerator_count=count,
        accelerator_memory_gb=memory,
        vcpus=float(whole(row, "vcpus")),
        memory_gb=round(number(row, "memory") / 1024, 1),
        disk_gb=number(row, "disk"),
        architecture="x86_64",
        on_demand_price=round(number(row, "price_hourly"), 6),
        seen_at=seen_at,
    )
    return [evolve(size, region=str(region)) for region in regions]


def _gpus(row: Mapping[str, Any], slug: str) -> tuple[str | None, float, float | None]:
    """Return the name, the number and the memory of one in GB of a size's GPUs."""
    if not row.get("gpu_info"):
        return None, 0.0, None
    model, count, memory = (
        text(row, "gpu_info.model"),
        whole(row, "gpu_info.count"),
        number(row, "gpu_info.vram.amount"),
    )
    # Sizes are named after the memory of all cards together, and the field is said to hold that of one.
    total = re.search(r"-(\d+)gb", slug)
    if count > 1 and total and float(total[1]) == memory:
        memory /= count
    return model.partition("_")[2].replace("_", " ") or model, float(count), memory
