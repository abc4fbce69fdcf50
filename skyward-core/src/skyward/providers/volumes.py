"""Wait for a volume that a machine which has just ended still has: clouds take it away a moment later."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable

from skyward.errors import ProvisionError
from skyward.plan.offers.volume import SomeVolume

__all__ = ["until_free"]

DETACHING = 60.0
"""Seconds in which a volume is free that a machine had which has ended."""

_FIRST, _LONGEST = 0.25, 3.0


async def until_free(look: Callable[[], Awaitable[SomeVolume]], provider: str, within: float = DETACHING) -> SomeVolume:
    """
    Return a volume when a machine can have it.

    Args:
        look: Asks for it.
        provider: The provider's name, for errors.
        within: Seconds that are waited.

    Raises:
        ProvisionError: If another machine still has it.

    >>> from skyward.plan.offers.volume import Volume
    >>> async def look():
    ...     return Volume(id="v1", name="data", place="here")
    >>> asyncio.run(until_free(look, "verda")).id
    'v1'
    """
    give_up_at, wait = time.monotonic() + within, _FIRST
    while True:
        volume = await look()
        if volume.shared or not volume.holders:
            return volume
        if time.monotonic() + wait > give_up_at:
            raise ProvisionError(
                f"The volume {volume.title} is still attached to {', '.join(volume.holders)} after {within:g} s.",
                provider=provider,
                hint="Detach it, or end that machine.",
            )
        await asyncio.sleep(wait * random.uniform(0.8, 1.2))
        wait = min(_LONGEST, 2 * wait)
