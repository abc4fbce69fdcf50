"""Orphans of a pool: machines that no node has, which are billed until they are terminated."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import AsyncIterator, Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from skyward.engine.instances.regions import Regions
from skyward.model.instances.machine import Instance, InstanceState

if TYPE_CHECKING:
    from skyward.engine.instances.meter import Meter

_log = logging.getLogger(__name__)

LATE = 8.0
"""Seconds after a launch without an answer in which a list may not have its machines yet."""

_LOOK = 2.0


class Orphans:
    """
    Count and terminate what a launch rented unseen, or twice.

    Args:
        provider: The provider's name.
        regions: End machines.
        meter: Counts what they cost.
    """

    def __init__(self, provider: str, regions: Regions, meter: Meter) -> None:
        self._provider = provider
        self._regions = regions
        self._meter = meter
        self._rates: dict[str, float] = {}
        self._known: set[str] = set()
        self._unanswered_at = -math.inf

    def asked(self, token: str, rate: float) -> None:
        """
        Take note of what is asked for.

        Args:
            token: Names the request.
            rate: What a machine costs, in USD an hour.
        """
        self._rates[token] = rate

    def unanswered(self) -> None:
        """Take note that a launch went without an answer: its machines may be listed late."""
        self._unanswered_at = asyncio.get_running_loop().time()

    async def looks(self) -> AsyncIterator[None]:
        """Yield for each look at what is left: one, and more as long as machines may be listed late."""
        yield
        loop = asyncio.get_running_loop()
        while (left := self._unanswered_at + LATE - loop.time()) > 0:
            await asyncio.sleep(min(left, _LOOK))
            yield

    def count(self, listed: Iterable[Instance], ids: Collection[str]) -> None:
        """
        Have those that there are on the bill, and those that are gone ended there.

        Args:
            listed: All machines of the pool that the provider lists.
            ids: Those that no node has.
        """
        there = {one.id: one for one in listed if one.state is not InstanceState.ENDED}
        for one in (there[name] for name in ids):
            self._meter.orphaned(one, self._rates.get(one.tags.token) if one.tags is not None else None)
        self._meter.orphans_ended(self._provider, self._known - there.keys())
        self._known = (self._known & there.keys()) | set(ids)

    async def end(self, ids: Sequence[str]) -> None:
        """
        End them.

        Raises:
            SkywardError: If one may still exist.
        """
        _log.warning("machines.orphaned provider=%s ids=%s", self._provider, ",".join(ids))
        await self._regions.end_anywhere(ids)
        self._meter.orphans_ended(self._provider, ids)
