"""
What comes nearest where nothing on offer meets a spec, and what would have to be written to get it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any

from attrs import evolve, frozen

from skyward.model.accelerators.accelerator import Accelerator
from skyward.model.accelerators.device import compact
from skyward.model.fields.memory import written
from skyward.model.instances.offer import Offer
from skyward.model.spec.spec import Spec

__all__ = ["Rejection", "broader", "changes", "described", "has_device", "nearest", "why_not"]

_COUNTS = (1, 2, 4, 8)
"""How many accelerators of a node are asked for where the number that is wished for is not on sale."""


@frozen
class Rejection:
    """
    Say why an offer is not for a pool.

    Args:
        offer: The offer.
        wishes: What it does not meet, as the user would write it, such as `"memory_gb=64"`.
    """

    offer: Offer
    wishes: tuple[str, ...]


def broader(spec: Spec) -> tuple[Spec, ...]:
    """
    Return the questions that find the accelerators of a spec in every memory and number, whatever else it asks for.

    Providers narrow their answers to what is asked for, so that what comes near is in none of them.

    Args:
        spec: What the user asks for.

    Returns:
        A spec for each number of accelerators; nothing where the spec asks for no accelerator of the catalogue.

    >>> [str(each.accelerator) for each in broader(Spec(accelerator="A100-80GB:16", vcpus=500))]
    ['A100', 'A100:2', 'A100:4', 'A100:8']
    """
    wanted = spec.accelerator
    if wanted is None or wanted.custom:
        return ()
    free: dict[str, Any] = {"vcpus": None, "memory_gb": None, "disk_gb": None, "machine": None, "max_hourly_cost": None}
    return tuple(evolve(spec, accelerator=Accelerator(wanted.name, count=count), **free) for count in _COUNTS)


def has_device(spec: Spec, offer: Offer) -> bool:
    """Return whether an offer has the accelerators of a spec, in any memory, form factor and number."""
    seen, wanted = offer.accelerator, spec.accelerator
    return wanted is None or (seen is not None and compact(seen.name) == compact(wanted.name))


def nearest(spec: Spec, rejections: Iterable[Rejection]) -> Rejection | None:
    """
    Find the offer that comes nearest to a spec: only one with its accelerators, where it asks for some.

    Then counts whether it is on sale now, how like the name of the machine asked for its name is, how many wishes it
    misses, how much of the wish for accelerators, how many of them it is short of, and its price.

    Args:
        spec: What the user asks for.
        rejections: What does not meet it.

    Returns:
        One of them; None where none has the accelerators.
    """

    def order(rejection: Rejection) -> tuple[float, ...]:
        offer = rejection.offer
        price = math.inf if offer.least_price is None else offer.least_price
        gone = price == math.inf or not offer.available
        return (gone, _unlike(offer.instance_type, spec.machine), len(rejection.wishes), *_missed(spec, offer), price)

    return min((one for one in rejections if has_device(spec, one.offer)), key=order, default=None)


def changes(spec: Spec, offer: Offer) -> Mapping[str, object] | None:
    """
    Return what would have to be written in a spec for an offer to meet it; a wish that is None has to be left out.

    Args:
        spec: What the user asks for.
        offer: What does not meet it.

    Returns:
        By the names of parameters; None where nothing helps, because it is not to be had.

    >>> small = Offer(provider="x", instance_type="a", accelerator_name="A100", accelerator_memory_gb=40,
    ...               accelerator_count=8, vcpus=96, on_demand_price=32)
    >>> dict(changes(Spec(accelerator="A100-80GB", vcpus=128), small))
    {'accelerator': 'A100-40GB:8', 'vcpus': 96}
    """
    spot, on_demand = offer.spot_price is not None, offer.on_demand_price is not None
    if not offer.available or not (spot or on_demand):
        return None
    found: dict[str, object] = {}
    seen = offer.accelerator
    if spec.accelerator is not None and (seen is None or not spec.accelerator.accepts(seen)):
        found["accelerator"] = None if seen is None else _spelled(seen)
    for name in ("vcpus", "memory_gb"):
        wanted, there = getattr(spec, name), getattr(offer, name)
        if wanted is not None and (there or 0) < wanted:
            found[name] = _floor(there) if there else None
    if spec.disk_gb is not None and offer.disk_gb is not None and offer.disk_gb < spec.disk_gb:
        found["disk_gb"] = _floor(offer.disk_gb)
    if spec.architecture is not None and offer.architecture not in (None, spec.architecture):
        found["architecture"] = offer.architecture
    if spec.machine is not None and offer.instance_type != spec.machine:
        found["machine"] = offer.instance_type
    if spec.region is not None and offer.region not in (None, spec.region):
        found["region"] = offer.region
    allowed = [price for price, yes in _prices(spec, offer) if yes and price is not None]
    if not allowed:
        found["allocation"] = "spot" if spot else "on-demand"
    price = min(allowed, default=offer.least_price or 0.0)
    if spec.max_hourly_cost is not None and price > spec.max_hourly_cost:
        # Rounded up, or it would not be enough.
        found["max_hourly_cost"] = math.ceil(round(price * 1000, 6)) / 1000
    return found


def why_not(spec: Spec, rejections: Sequence[Rejection], total: int) -> str:
    """
    Return which wish excludes how many offers, which of them comes nearest, and what to write to get it.

    Args:
        spec: What the user asks for.
        rejections: What does not meet it; at least one.
        total: Of how many offers.
    """
    counted = Counter(wish for rejection in rejections for wish in rejection.wishes)
    excluded = ", ".join(f"{wish} excludes {count}" for wish, count in counted.most_common())
    near = nearest(spec, rejections)
    if near is None:
        return f"{excluded} of {total}. {_without(spec, rejections)}"
    return f"{excluded} of {total}. Nearest is {described(near)}.{_advice(changes(spec, near.offer))}"


def described(rejection: Rejection) -> str:
    """Return an offer with those of its facts that it was rejected for."""
    offer = rejection.offer
    facts = {
        "accelerator": offer.accelerators or "none",
        "vcpus": "unknown" if offer.vcpus is None else f"{offer.vcpus:g}",
        "memory_gb": "unknown" if offer.memory_gb is None else f"{offer.memory_gb:g}",
        "disk_gb": "unknown" if offer.disk_gb is None else f"{offer.disk_gb:g}",
        "architecture": offer.architecture or "unknown",
        "region": offer.region or "unknown",
    }
    wanted = [wish.partition("=")[0] for wish in rejection.wishes]
    shown = ", ".join(f"{name}={facts[name]}" for name in wanted if name in facts)
    prices = [
        f"${price:.4g}/h {way}"
        for way, price in (("spot", offer.spot_price), ("on demand", offer.on_demand_price))
        if price is not None
    ]
    price = " or ".join(prices) or "not for sale"
    if prices and not any((offer.spot_price, offer.on_demand_price)):
        price = "free"
    place = f" in {offer.zone or offer.region}" if offer.zone or offer.region else ""
    sold = "" if offer.available else ", none left"
    return f"{offer.instance_type}{place}, {price}{sold}{f', with {shown}' if shown else ''}"


def _without(spec: Spec, rejections: Sequence[Rejection]) -> str:
    """Return that none of the offers has the accelerators, and which there are instead."""
    wanted = "" if spec.accelerator is None else spec.accelerator.name
    names = sorted({seen.name for one in rejections if (seen := one.offer.accelerator) is not None})
    there = f"; the accelerators there are {', '.join(names[:8])}{' …' if len(names) > 8 else ''}" if names else ""
    return f"{wanted} is not among them{there}."


def _advice(found: Mapping[str, object] | None) -> str:
    """Return what to write to get an offer; nothing where that does not help."""
    if not found:
        return ""
    write = [f"{name}={_code(value)}" for name, value in found.items() if value is not None]
    leave = [name for name, value in found.items() if value is None]
    parts = [f"write {', '.join(write)}"] * bool(write) + [f"leave out {', '.join(leave)}"] * bool(leave)
    text = " and ".join(parts)
    return f" {text[0].upper()}{text[1:]} to get it."


def _code(value: object) -> str:
    """Return a value as a user writes it."""
    if isinstance(value, Accelerator):
        memory = f', memory="{written(value.memory_gb)}"' if value.memory_gb is not None else ""
        count = f", count={value.count:g}" if value.count != 1 else ""
        return f'sky.accelerators.Custom("{value.name}"{memory}{count})'
    return f'"{value}"' if isinstance(value, str) else f"{value:.12g}"


def _spelled(seen: Accelerator) -> str | Accelerator:
    """Return accelerators on offer as a user asks for them: what no catalogue has, as a value."""
    if seen.custom or seen.device is None:
        return Accelerator(seen.name, count=seen.count, memory_gb=seen.memory_gb, custom=True)
    memory = seen.memory_gb if seen.exact_memory and len(seen.device.variants) > 1 else None
    return str(Accelerator(seen.name, count=seen.count, memory_gb=memory, topology=seen.topology))


def _unlike(name: str, wanted: str | None) -> float:
    """Return how far a name is from the one that is wanted, from 0 for the same to 1."""
    return 0.0 if wanted is None or name == wanted else 1 - SequenceMatcher(None, wanted, name).ratio()


def _missed(spec: Spec, offer: Offer) -> tuple[float, float]:
    """Count the parts of a wish for accelerators that an offer does not meet, and the accelerators it lacks."""
    wanted, seen = spec.accelerator, offer.accelerator
    if wanted is None or seen is None:
        return 0, 0
    short = max(0, wanted.count - seen.count)
    return (short > 0) + (not wanted.accepts(evolve(seen, count=seen.count + short))), short


def _prices(spec: Spec, offer: Offer) -> tuple[tuple[float | None, bool], ...]:
    """Return an offer's prices, each with whether the allocation of a spec allows its market."""
    return (offer.spot_price, spec.allocation.allows_spot), (offer.on_demand_price, spec.allocation.allows_on_demand)


def _floor(figure: float) -> float:
    """Return a figure without digits that don't matter, and never above itself."""
    short = math.floor(figure * 100) / 100 or figure
    return int(short) if short == int(short) else short
