"""Stop a pool before it is left: its budget or its time is used up, or another program ended it."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from skyward.engine.calls.answer import Answer
from skyward.errors import PoolDeadlineError, PoolEndedError, SkywardError
from skyward.link.messages import Status

if TYPE_CHECKING:
    from skyward.engine.calls.dispatch import Dispatch
    from skyward.engine.events.reporting import Reporting


class Stopping:
    """
    Stop one pool; lives in the engine's loop.

    Args:
        pool: The pool's name.
        usable: What opening the pool waits for.
        dispatch: Where its calls are.
        reporting: Where events go.
        terminate: Has every node terminated, and takes the reason.
    """

    def __init__(
        self,
        pool: str,
        usable: asyncio.Future[None],
        dispatch: Dispatch,
        reporting: Reporting,
        terminate: Callable[[str], None],
    ) -> None:
        self._pool = pool
        self._usable = usable
        self._dispatch = dispatch
        self._reporting = reporting
        self._terminate = terminate
        self._ended: PoolEndedError | PoolDeadlineError | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._delivered = threading.Event()

    def stop(self, error: SkywardError, answer: Answer) -> None:
        """
        Fail every call and terminate every node.

        Args:
            error: Why.
            answer: What every call is answered with.
        """
        if not self._usable.done():
            self._usable.set_exception(error)
        self._dispatch.close(answer)
        self._reporting.error(str(error), fatal=True)
        self._terminate(str(error))

    def within(self, seconds: float | None) -> None:
        """Stop so many seconds from now, unless the pool is closed before; None for never."""
        if seconds is not None:
            late = PoolDeadlineError(
                f"The pool {self._pool!r} was open for {seconds:g} s, which is its pool_deadline, and is stopped.",
                pool=self._pool,
                hint="Raise pool_deadline, or do less.",
            )
            self._timer = asyncio.get_running_loop().call_later(seconds, self.ended, late)

    def close(self) -> None:
        """Stop nothing any more: the pool is being left."""
        if self._timer is not None:
            self._timer.cancel()

    def ended(self, error: PoolEndedError | PoolDeadlineError) -> None:
        """Stop because another program ended the pool, or its time is over; once."""
        if self._ended is not None:
            return
        self._ended = error
        if not self._usable.done():
            # Opening the pool reports it.
            self._delivered.set()
        facts = json.dumps({"error": type(error).__name__, "message": str(error)}).encode()
        self.stop(error, Answer(Status.FAILED, None, facts, pool=self._pool, on_delivered=self._delivered.set))

    def raise_undelivered(self) -> None:
        """
        Raise the error of a pool that was ended from outside or late, if no call has raised it.

        Raises:
            PoolEndedError: If it was.
            PoolDeadlineError: If its time was over.
        """
        if self._ended is not None and not self._delivered.is_set():
            raise self._ended
