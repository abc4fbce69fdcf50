"""
Which of the machines on offer is the smallest that will do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from skyward.errors import ConfigError, NoAvailableProviderError
from skyward.model.accelerators.accelerator import Accelerator, accelerator, recognise
from skyward.model.fields.memory import gigabytes, written
from skyward.model.instances.offer import Offer

__all__ = ["select_instance"]

OfferT = TypeVar("OfferT")

# The name keeps the parameter's name free inside `select_instance`.
_parsed = accelerator


def select_instance(
    available: Iterable[OfferT],
    *,
    accelerator: Accelerator | str | None = None,
    cpu: float | None = None,
    memory: str | float | None = None,
) -> OfferT:
    """
    Return the smallest of the machines on offer that has what is asked for.

    Small means: few accelerators, then little memory on each, then few vCPUs, then little memory, then a low price;
    of equals the first is taken.

    Args:
        available: Offers: anything with `vcpus` and `memory_gb`, and `accelerator_name` and `accelerator_count` where
            there are accelerators.
        accelerator: The accelerators it must have, such as `"H100:8"`.
        cpu: How many vCPUs it must have at least.
        memory: How much main memory it must have at least, such as `"128GB"` or a number of GB.

    Raises:
        ConfigError: If a requirement is none that can be met by any machine.
        NoAvailableProviderError: If no offer will do.

    >>> from types import SimpleNamespace as Offer
    >>> offers = [Offer(vcpus=96, memory_gb=1152), Offer(vcpus=32, memory_gb=256), Offer(vcpus=4, memory_gb=16)]
    >>> select_instance(offers, cpu=32, memory="128GB").vcpus
    32
    """
    asked = _parsed(accelerator)
    vcpus = None if cpu is None else _vcpus(cpu)
    memory_gb = None if memory is None else gigabytes(memory, "memory")
    wishes: list[tuple[str, Callable[[Any], bool]]] = []
    if asked is not None:
        wishes.append((f"accelerator={str(asked)!r}", lambda offer: _has(offer, asked)))
    if vcpus is not None:
        wishes.append((f"cpu={vcpus:g}", lambda offer: _number(offer, "vcpus") >= vcpus))
    if memory_gb is not None:
        wishes.append((f"memory={written(memory_gb)!r}", lambda offer: _number(offer, "memory_gb") >= memory_gb))
    offers = list(available)
    fitting = [offer for offer in offers if all(met(offer) for _, met in wishes)]
    if not fitting:
        excluded = [f"{wish} excludes {sum(not met(offer) for offer in offers)}" for wish, met in wishes]
        reasons = f": {', '.join(excluded)}" if excluded and offers else ""
        raise NoAvailableProviderError(f"None of {len(offers)} offers will do{reasons}.")
    return min(fitting, key=_size)


def _vcpus(given: object) -> float:
    """Return a number of vCPUs."""
    if isinstance(given, bool) or not isinstance(given, (int, float)) or not 0 < given < float("inf"):
        raise ConfigError(f"cpu must be a number of vCPUs above zero, not {given!r}.")
    return float(given)


def _has(offer: object, asked: Accelerator) -> bool:
    """Return whether an offer has the accelerators that are asked for."""
    offered = _offered(offer)
    return offered is not None and asked.accepts(offered)


def _offered(offer: object) -> Accelerator | None:
    """Return the accelerators that an offer has, if any."""
    if isinstance(offer, Offer):
        return offer.accelerator
    name = getattr(offer, "accelerator_name", None)
    count = _number(offer, "accelerator_count")
    if not name or not count:
        return None
    return recognise(name, count=count, memory_gb=getattr(offer, "accelerator_memory_gb", None))


def _size(offer: object) -> tuple[float, ...]:
    """Return what offers are ordered by, from small to large."""
    offered = _offered(offer)
    prices = (getattr(offer, "spot_price", None), getattr(offer, "on_demand_price", None))
    return (
        offered.count if offered is not None else 0,
        (offered.memory_gb or 0) if offered is not None else 0,
        _number(offer, "vcpus"),
        _number(offer, "memory_gb"),
        min((price for price in prices if price is not None), default=float("inf")),
    )


def _number(offer: object, name: str) -> float:
    """Return an offer's figure; 0 where it has none."""
    return float(getattr(offer, name, None) or 0)
