"""
Asking providers what they sell, and telling apart whose answer is whose.
"""

from __future__ import annotations

import hashlib
import inspect
import math
from collections.abc import Callable
from typing import Any

import attrs

from skyward.blocking import in_thread
from skyward.engine.instances.choosing import OFFERS_TIMEOUT
from skyward.engine.instances.provider_handle import ProviderHandle
from skyward.errors import PluginError, SkywardError
from skyward.market.store import Source
from skyward.model.fields.stated import stated
from skyward.model.instances.offer import Offer
from skyward.model.spec.spec import Spec

__all__ = ["ask", "source_of", "without_arguments"]


def source_of(handle: ProviderHandle) -> Source:
    """
    Return the name that a provider's offers are kept under.

    Args:
        handle: The provider.
    """
    facts = handle.facts
    said = (stated(handle.provider), facts.offers_key, facts.regions)
    # Of a secret among the settings, no more than eight bytes of a digest of all of them is written down.
    digest = hashlib.blake2b(repr(said).encode(), digest_size=8, person=b"skyward-offers").hexdigest()
    return Source(handle.name, digest)


async def ask(handle: ProviderHandle, now: float) -> list[Offer]:
    """
    Ask a provider for all that it sells.

    Args:
        handle: The provider.
        now: The time, in seconds since the epoch.

    Returns:
        Its offers in the catalogue's words, each with the time it was seen.

    Raises:
        SkywardError: As the provider raises it, or because what it returns is no list of offers.
    """
    offers = await handle.call("skyward_offers", spec=Spec(provider=handle.provider), timeout=OFFERS_TIMEOUT)
    # A cloud may sell tens of thousands of things; the loop goes on meanwhile.
    return await in_thread(_checked, handle, offers, now)


def without_arguments(factory: Callable[..., Any]) -> bool:
    """
    Return whether a provider can be made without saying anything.

    Args:
        factory: Its class.

    >>> from skyward.providers.ssh import SSH
    >>> without_arguments(SSH)
    False
    """
    return not any(
        one.default is one.empty and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)
        for one in inspect.signature(factory).parameters.values()
    )


def _checked(handle: ProviderHandle, offers: Any, now: float) -> list[Offer]:
    """Return offers in the catalogue's words, or raise what blames the provider."""
    try:
        listed = list(offers)
    except TypeError as error:
        raise _wrong(handle, f"returned {offers!r}, which is no list of offers") from error
    for offer in listed:
        if not isinstance(offer, Offer):
            raise _wrong(handle, f"returned {offer!r}, which is no Offer")
        for price in (offer.spot_price, offer.on_demand_price):
            if price is not None and not (price >= 0 and math.isfinite(price)):
                raise _wrong(handle, f"returned {offer.instance_type!r} with the price {price!r}")
    try:
        return [attrs.evolve(one.normalised(), seen_at=one.seen_at or now) for one in listed]
    except SkywardError as error:
        raise _wrong(handle, f"returned an offer that cannot be: {error}") from error


def _wrong(handle: ProviderHandle, reason: str) -> PluginError:
    """Return the error that blames a provider for its answer."""
    return PluginError(
        f"Provider {handle.name!r} {reason}.", plugin=handle.name, hook="skyward_offers", provider=handle.name
    )
