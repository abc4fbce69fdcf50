"""Check that an offer is valid, and that a value is one that JSON can hold."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import attrs

from skyward.hookspecs import Offer, ProviderFacts
from skyward.model.accelerators.accelerator import recognise

__all__ = ["check_json", "offer_problem"]


def offer_problem(offer: object, facts: ProviderFacts) -> str:
    """
    Return what is wrong with an offer; nothing if it is valid.

    Args:
        offer: The offer.
        facts: The provider's facts.
    """
    if not isinstance(offer, Offer):
        return "is no Offer."
    if offer.provider != facts.name:
        return f"must name its provider {facts.name!r}."
    if not offer.instance_type:
        return "has no instance_type."
    if facts.regions and offer.region not in facts.regions:
        return f"is in none of the regions that skyward_facts names: {', '.join(facts.regions)}."
    if offer.spot_price is not None and not facts.spot:
        return "has a spot_price, but skyward_facts says that there is no spot."
    for price in (offer.spot_price, offer.on_demand_price):
        if price is not None and not (price > 0 or (price == 0 and facts.billing_granularity_s is None)):
            return f"has the price {price!r}; a price is above zero, or None where it is not sold so."
    for name in ("vcpus", "memory_gb", "disk_gb", "accelerator_memory_gb"):
        value = getattr(offer, name)
        if value is not None and not value > 0:
            return f"has {name}={value!r}; what is not known is None."
    if (offer.accelerator_name is None) != (not offer.accelerator_count):
        return "must have a name and a count of accelerators, or neither."
    if offer.accelerator_name is not None and recognise(offer.accelerator_name).custom:
        return "has an accelerator that the catalogue does not know; skyward_accelerators can add it."
    return _json_problem(offer)


def check_json(value: Any, hook: str) -> None:
    """
    Check that what a hook returns can be written as JSON.

    Args:
        value: What it returns.
        hook: The hook.
    """
    problem = _json_problem(value)
    assert not problem, f"What {hook} returns {problem}"


def _json_problem(value: Any) -> str:
    """Return why JSON cannot hold a value; nothing if it can."""
    plain = attrs.asdict(value) if attrs.has(type(value)) else value
    try:
        json.dumps(plain, default=_as_dict)
    except (TypeError, ValueError) as error:
        return f"is nothing that JSON can hold: {error}."
    return ""


def _as_dict(value: object) -> dict[str, Any]:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{value!r} is a {type(value).__name__}")
