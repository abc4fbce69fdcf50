"""One call for all who ask the same at nearly the same time, such as the pools of an account for its machines."""

from __future__ import annotations

import asyncio
import hashlib
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Hashable
from typing import Any, TypeVar
from weakref import WeakKeyDictionary, WeakValueDictionary

__all__ = ["Shared"]

T = TypeVar("T")

_all: WeakValueDictionary[str, Shared] = WeakValueDictionary()
_sharing = threading.Lock()


class Shared:
    """Hold the answers that were had a moment ago, and those that are under way."""

    def __init__(self) -> None:
        self._asked: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Hashable, tuple[float, asyncio.Task[Any]]]] = (
            WeakKeyDictionary()
        )

    @classmethod
    def of(cls, account: str) -> Shared:
        """
        Return the one of an account, for all of its callers.

        Args:
            account: Tells accounts apart; only a digest of it is kept.
        """
        key = hashlib.sha256(account.encode()).hexdigest()
        with _sharing:
            found = _all.get(key)
            if found is None:
                found = _all[key] = cls()
            return found

    async def ask(self, question: Hashable, seconds: float, ask: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """
        Return an answer whose call began a moment ago, or call.

        Args:
            question: Names the question.
            seconds: How long ago the call may have begun; a failure is given only to those who wait for it.
            ask: Calls.
        """
        asked = self._asked.setdefault(asyncio.get_running_loop(), {})
        begun, task = asked.get(question, (0.0, None))
        now = time.monotonic()
        if task is None or now - begun > seconds or (task.done() and (task.cancelled() or task.exception())):
            task = asyncio.create_task(ask())
            # Those who asked may all have gone when it fails.
            task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
            asked[question] = (now, task)
        waiting: Awaitable[T] = asyncio.shield(task)
        return await waiting
