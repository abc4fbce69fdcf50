"""Machines of a pool that no node has: they are on the bill until they are ended."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from skyward.engine.regions import Regions
from skyward.model.machine import Instance, InstanceState

if TYPE_CHECKING:
    from skyward.engine.meter import Meter

_log = logging.getLogger(__name__)


class Strays:
    """
    Count and end what a launch rented unseen, or twice.

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

    def asked(self, token: str, rate: float) -> None:
        """
        Take note of what is asked for.

        Args:
            token: Names the request.
            rate: What a machine costs, in USD an hour.
        """
        self._rates[token] = rate

    def count(self, listed: Iterable[Instance], ids: Collection[str]) -> None:
        """
        Have those that there are on the bill, and those that are gone ended there.

        Args:
            listed: All machines of the pool that the provider lists.
            ids: Those that no node has.
        """
        there = {one.id: one for one in listed if one.state is not InstanceState.ENDED}
        for one in (there[name] for name in ids):
            self._meter.strayed(one, self._rates.get(one.tags.token) if one.tags is not None else None)
        self._meter.strays_ended(self._provider, self._known - there.keys())
        self._known = (self._known & there.keys()) | set(ids)

    async def end(self, ids: Sequence[str]) -> None:
        """
        End them.

        Raises:
            SkywardError: If one may still exist.
        """
        _log.warning("machines.unwanted provider=%s ids=%s", self._provider, ",".join(ids))
        await self._regions.end_anywhere(ids)
        self._meter.strays_ended(self._provider, ids)
