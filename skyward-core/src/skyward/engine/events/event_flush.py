"""The end of a pool's events: handlers that are behind are waited for, and what they do not take is in the log."""

from __future__ import annotations

import logging
from collections.abc import Callable
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, Self

from skyward.engine.events.log_files import keep
from skyward.plan.pool.flush_deadline import STUCK_S, FlushDeadline

if TYPE_CHECKING:
    from skyward.engine.events.event_dispatcher import Dispatcher
    from skyward.model.fields.log_config import LogConfig

__all__ = ["Delivery"]

_log = logging.getLogger(__name__)

HURRIED_S = 5.0
"""Seconds that handlers have in all when a pool is left by an interrupt."""

AWAKE_EVERY_S = 0.25
"""Seconds after which the wait looks whether it is to be skipped."""


def ended_within(dispatcher: Dispatcher, seconds: float) -> bool:
    """
    Wait for the end of a dispatcher's thread, but not without looking up.

    Args:
        dispatcher: The dispatcher.
        seconds: How long at most.
    """
    return dispatcher.ended(min(seconds, AWAKE_EVERY_S))


class Delivery:
    """
    Flush what a pool's handlers have not taken when it is left.

    Nothing is rented any more by then, so that they may take their time.

    Args:
        dispatcher: The pool's.
        config: Where the pool's log is; None if it has none.
        clock: Returns the time, in seconds.
        ended: Waits for the end of the dispatcher's thread, some seconds at most.
    """

    def __init__(
        self,
        dispatcher: Dispatcher,
        config: LogConfig | None,
        *,
        clock: Callable[[], float] = monotonic,
        ended: Callable[[Dispatcher, float], bool] = ended_within,
    ) -> None:
        self._dispatcher = dispatcher
        self._config = config
        self._clock = clock
        self._ended = ended
        self._hurried = False
        self._skipped = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.left_by(error)
        self.finish()

    def left_by(self, error: BaseException | None) -> None:
        """
        Limit handlers to a few seconds in all, if it was not the program itself that ended the pool.

        Args:
            error: What the pool is left by.
        """
        self._hurried = self._hurried or (error is not None and not isinstance(error, Exception))

    def skip(self) -> None:
        """Wait no longer, in whichever thread that is under way."""
        self._skipped = True

    def finish(self) -> bool:
        """
        Wait until handlers have everything, as long as they get on, and write to the log what they do not take.

        Returns:
            Whether they have it all.

        Raises:
            KeyboardInterrupt: If this thread is interrupted, which ends the wait.
        """
        self._dispatcher.end()
        try:
            delivered = self._wait()
        except BaseException:
            self._give_up("the wait was interrupted")
            raise
        if not delivered:
            self._give_up(
                "the pool was left by an interrupt"
                if self._hurried or self._skipped
                else f"its last call has not ended within {STUCK_S:g} s"
            )
        return delivered

    def _wait(self) -> bool:
        within = HURRIED_S if self._hurried else None
        patience = FlushDeadline.at(self._clock(), handled=self._dispatcher.handled, within=within)
        while not self._ended(self._dispatcher, patience.wait_s(self._clock())):
            now = self._clock()
            patience = patience.seen(now, handled=self._dispatcher.handled)
            if self._skipped or patience.ended(now):
                return False
            if patience.warns(now):
                left = self._dispatcher.left()
                _log.warning(
                    "events.waiting handler=%s: %s still to be delivered. The pool is closed already; "
                    "Ctrl-C skips the rest%s.",
                    left.handler,
                    left,
                    ", which is then lost: the pool has no log" if self._config is None else " and keeps it in the log",
                )
                patience = patience.warned(now)
        return True

    def _give_up(self, why: str) -> None:
        left, events = self._dispatcher.left(), self._dispatcher.abandon()
        if not events:
            return
        if kept := keep(self._config, events):
            where = f"They are in {kept}."
        elif self._config is None:
            where = "They are lost: the pool has no log (logging=False)."
        else:
            where = f"They are lost: {self._config.file} cannot be written."
        _log.warning("events.undelivered handler=%s: %s not delivered, because %s. %s", left.handler, left, why, where)
