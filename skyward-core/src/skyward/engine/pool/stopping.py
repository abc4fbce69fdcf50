"""Stop a pool before it is left: its budget is used up, or another program ended it."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from skyward.engine.calls.call import Answer
from skyward.errors import PoolEndedError, SkywardError
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
        self._ended: PoolEndedError | None = None
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

    def ended(self, error: PoolEndedError) -> None:
        """Stop because another program ended the pool; once."""
        if self._ended is not None:
            return
        self._ended = error
        if not self._usable.done():
            # Opening the pool reports it.
            self._delivered.set()
        facts = json.dumps({"error": "PoolEndedError", "message": str(error)}).encode()
        self.stop(error, Answer(Status.FAILED, None, facts, pool=self._pool, on_delivered=self._delivered.set))

    def raise_undelivered(self) -> None:
        """
        Raise the error of a pool that was ended from outside, if no call has raised it.

        Raises:
            PoolEndedError: If it was.
        """
        if self._ended is not None and not self._delivered.is_set():
            raise self._ended
