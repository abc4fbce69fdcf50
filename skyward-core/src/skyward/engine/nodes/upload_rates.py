"""How fast the machines of a pool take what they are sent."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager

from skyward.errors import ProvisionError
from skyward.ssh.acceptance import NETWORK_FLOOR, too_slow

_log = logging.getLogger(__name__)


class _Sending:
    """Count how many were sent to at once, at most, while one was."""

    at_once = 0


class Uploads:
    """Measure what is sent to the machines of a pool; those that are sent to at once share the client's line."""

    def __init__(self) -> None:
        self._under_way: list[_Sending] = []
        self._rates: list[float] = []

    @contextmanager
    def sending(self, size: int, where: str) -> Iterator[None]:
        """
        Measure what the block sends.

        Args:
            size: Its bytes.
            where: The machine, in words.

        Raises:
            ProvisionError: If the machine is slower than one may be.
        """
        loop = asyncio.get_running_loop()
        began = loop.time()
        sending = _Sending()
        self._under_way.append(sending)
        for one in self._under_way:
            one.at_once = max(one.at_once, len(self._under_way))
        try:
            yield
        finally:
            self._under_way.remove(sending)
        rate = size * sending.at_once / max(loop.time() - began, 1e-3)
        before, self._rates = self._rates, [*self._rates, rate]
        if rate >= NETWORK_FLOOR:
            return
        slow = f"takes {rate / 1000:.0f} kB/s, and {NETWORK_FLOOR / 1000:.0f} kB/s are the least"
        if too_slow(rate, before):
            raise ProvisionError(f"{where} is not what was rented: It {slow}.")
        _log.warning("%s %s, as all others did: your own line may be slow.", where, slow)
