"""Rate limit of an account's calls, whichever of this process's pools makes them."""

from __future__ import annotations

import asyncio
import hashlib
import threading
import time
from collections.abc import Mapping, Sequence
from weakref import WeakValueDictionary

from attrs import define, field, frozen

__all__ = ["Limit", "RateLimit"]

_shared: WeakValueDictionary[str, RateLimit] = WeakValueDictionary()
_sharing = threading.Lock()


@frozen
class Limit:
    """
    Say how many calls are allowed in how long; whatever the moment at which one begins to count.

    A fifth of them may come at once, the others follow evenly.

    Args:
        calls: How many.
        seconds: In how long.

    >>> Limit(250, 60.0).burst, Limit(1, 4.5).interval
    (50, 4.5)
    """

    calls: int
    seconds: float

    @property
    def burst(self) -> int:
        """Return how many may come at once."""
        return max(1, self.calls // 5)

    @property
    def interval(self) -> float:
        """Return the seconds between those that follow, so that no span of time ever sees more than are allowed."""
        return self.seconds / (self.calls + 1 - self.burst)


@define(eq=False)
class _Bucket:
    """Hold when a limit's allowance is whole again."""

    limit: Limit
    full_at: float = 0.0

    def earliest(self) -> float:
        return self.full_at - (self.limit.burst - 1) * self.limit.interval

    def take(self, at: float) -> None:
        self.full_at = max(self.full_at, at) + self.limit.interval


@define(eq=False, slots=True, weakref_slot=True)
class RateLimit:
    """
    Keep the calls of one account apart.

    Args:
        limits: The limits by lane: a name that the caller gives to a kind of calls; `""` counts all of them.

    >>> pace = RateLimit({"": [Limit(1, 2.0)]})
    >>> pace.reserve("", now=10.0), pace.reserve("", now=10.5)
    (0.0, 1.5)
    """

    limits: Mapping[str, Sequence[Limit]]
    _buckets: dict[str, list[_Bucket]] = field(init=False)
    _closed_until: float = field(default=0.0, init=False)
    _lock: threading.Lock = field(factory=threading.Lock, init=False)

    def __attrs_post_init__(self) -> None:
        self._buckets = {lane: [_Bucket(limit) for limit in limits] for lane, limits in self.limits.items()}

    @classmethod
    def of(cls, account: str, limits: Mapping[str, Sequence[Limit]]) -> RateLimit:
        """
        Return the one pace of an account, for all of its callers.

        Args:
            account: Tells accounts apart; only a digest of it is kept.
            limits: The limits of the API.
        """
        key = hashlib.sha256(account.encode()).hexdigest()
        with _sharing:
            pace = _shared.get(key)
            if pace is None:
                pace = _shared[key] = cls(limits)
            return pace

    def reserve(self, lane: str, now: float) -> float:
        """
        Take the next place in a lane, and return the seconds until it comes.

        Args:
            lane: The kind of call.
            now: Seconds of a clock that never goes back.
        """
        with self._lock:
            buckets = self._buckets.get(lane, ())
            at = max(now, self._closed_until, *(bucket.earliest() for bucket in buckets))
            for bucket in buckets:
                bucket.take(at)
            return at - now

    def close(self, until: float) -> None:
        """
        Hold all calls until a moment, because the API said so.

        Args:
            until: That moment, on the clock of `reserve`.
        """
        with self._lock:
            self._closed_until = max(self._closed_until, until)

    async def wait(self, lane: str = "") -> None:
        """
        Wait until a call may be made.

        Args:
            lane: The kind of call.
        """
        # One after the other: who waits in a lane takes no place among all.
        if lane:
            await asyncio.sleep(self.reserve(lane, time.monotonic()))
        pause = self.reserve("", time.monotonic())
        while pause > 0:
            await asyncio.sleep(pause)
            # Another call may have met a rate limit meanwhile.
            pause = self._closed_until - time.monotonic()
