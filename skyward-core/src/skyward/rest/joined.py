"""One call for all who order the same at nearly the same time, such as the end of machines."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

from attrs import define, field

__all__ = ["Joined"]

T = TypeVar("T")


@define(eq=False)
class _Round(Generic[T]):
    """Hold what the next round is for, and that round."""

    waiting: set[str] = field(factory=set)
    task: asyncio.Task[T] | None = None
    lock: asyncio.Lock = field(factory=asyncio.Lock)


class Joined(Generic[T]):
    """
    Join what callers order within a moment into one round; rounds follow each other.

    Args:
        call: Carries out a round for all ids that were ordered.
        wait: Seconds that the first one waits for others.
    """

    def __init__(self, call: Callable[[Sequence[str]], Awaitable[T]], wait: float) -> None:
        self._call = call
        self._wait = wait
        self._rounds: WeakKeyDictionary[asyncio.AbstractEventLoop, _Round[T]] = WeakKeyDictionary()

    async def order(self, ids: Iterable[str]) -> T:
        """
        Order something for ids, and return what the round returns that has them.

        Args:
            ids: The ids.

        Raises:
            SkywardError: If the round fails.
        """
        joined = self._rounds.setdefault(asyncio.get_running_loop(), _Round())
        joined.waiting.update(ids)
        if joined.task is None:
            joined.task = asyncio.create_task(self._round(joined))
            # Those who ordered may all have gone when it fails.
            joined.task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
        return await asyncio.shield(joined.task)

    async def _round(self, joined: _Round[T]) -> T:
        await asyncio.sleep(self._wait)
        async with joined.lock:
            # Orders that come from here on have to wait for the next round.
            ids, joined.waiting, joined.task = sorted(joined.waiting), set(), None
            return await self._call(ids)
