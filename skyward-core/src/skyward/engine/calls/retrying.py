"""Calls that failed, from the decision what becomes of them to the moment at which they are sent again."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Callable
from typing import Any

from skyward.blocking import in_thread
from skyward.engine.calls.answer import Answer
from skyward.engine.calls.call import Call
from skyward.engine.pool.event_loop import EngineLoop
from skyward.errors import UsageError
from skyward.model.spec.retry_setting import Retry
from skyward.plan.pool.retry_policy import Decision, Failure, decide


class Retrying:
    """
    Carry out what `plan.pool.retry_policy` decides about attempts that failed; lives in the engine's loop.

    Args:
        engine: The loop, by whose clock delays are.
        end: Ends a call with an answer.
        renew: Makes a call its next attempt.
        queue: Sends a call again, before those that wait.
    """

    def __init__(
        self,
        engine: EngineLoop,
        *,
        end: Callable[[Call, Answer], None],
        renew: Callable[[Call, Answer, Decision], None],
        queue: Callable[[Call], None],
    ) -> None:
        self._engine = engine
        self._end = end
        self._renew = renew
        self._queue = queue
        self._waiting: dict[Call, asyncio.TimerHandle | asyncio.Task[None]] = {}
        self._pauses: dict[threading.Event, asyncio.TimerHandle] = {}
        self._closed = False

    @property
    def waiting(self) -> list[Call]:
        """List the calls that are neither queued nor on a node."""
        return list(self._waiting)

    def failed(self, call: Call, answer: Answer, failure: Failure, *, over: bool) -> None:
        """
        Record that an attempt failed, and send the next one at once, later or never.

        Args:
            call: The call.
            answer: What it is answered with, if that was its last attempt.
            failure: Why the attempt came to nothing.
            over: Whether no further attempt is wanted, or could be.
        """
        decision = _decided(call, failure, over=over, now=self._engine.loop.time())
        retry = call.retry
        if decision.again and failure is Failure.FAILED and retry is not None and retry.on is not None:
            # What the user's exception is, and what the user's function says of it, is found out in another thread.
            call.on = None
            self._waiting[call] = self._engine.loop.create_task(self._judge(call, retry, answer))
        else:
            self._settle(call, answer, decision)

    def forget(self, call: Call) -> bool:
        """Take a call out that waits for its next attempt; return whether it did."""
        waiting = self._waiting.pop(call, None)
        if waiting is not None:
            waiting.cancel()
        return waiting is not None

    def pause(self, seconds: float, over: threading.Event) -> None:
        """Set an event that a user's thread waits for, so many seconds from now; at once in a pool that is closed."""
        if self._closed:
            over.set()
            return
        self._pauses[over] = self._engine.loop.call_later(seconds, self._end_pause, over)

    def close(self) -> None:
        """End all pauses; calls are ended one by one."""
        self._closed = True
        for over in list(self._pauses):
            self._end_pause(over)

    def _end_pause(self, over: threading.Event) -> None:
        self._pauses.pop(over).cancel()
        over.set()

    async def _judge(self, call: Call, retry: Retry, answer: Answer) -> None:
        applies, answer.instead = await in_thread(_applies, retry, answer)
        # Taken out only after the wait, and by whatever ended the call meanwhile, which cancels this.
        del self._waiting[call]
        now = self._engine.loop.time()
        self._settle(call, answer, _decided(call, Failure.FAILED, over=not applies, now=now))

    def _settle(self, call: Call, answer: Answer, decision: Decision) -> None:
        if not decision.again:
            self._end(call, answer)
            return
        self._renew(call, answer, decision)
        if decision.delay:
            self._waiting[call] = self._engine.loop.call_later(decision.delay, self._send, call)
        else:
            self._queue(call)

    def _send(self, call: Call) -> None:
        del self._waiting[call]
        self._queue(call)


def judged(retry: Retry, error: BaseException, function: str) -> bool:
    """
    Return whether a call is to be tried again after a failure.

    Args:
        retry: What the user asked for.
        error: The failure.
        function: The function's name.

    Raises:
        UsageError: If the user's own function fails at telling.
    """
    try:
        return retry.applies(error)
    except Exception as reason:
        if reason.__context__ is None and reason is not error:
            reason.__context__ = error
        raise UsageError(
            f"{function}() failed with {type(error).__name__}, and whether it is tried again could not be decided: "
            f"on= of its sky.Retry raised {type(reason).__name__}: {reason}.",
            hint="It takes an exception and returns True or False.",
        ) from reason


def wait(pool: Any, seconds: float) -> None:
    """
    Wait in a user's thread by the engine's clock, no longer than the pool is open; an interrupt gets through.

    Args:
        pool: The pool that runs.
        seconds: How long.
    """
    if not seconds:
        return
    over = threading.Event()
    pool.engine.post(pool.dispatch.pause, seconds, over)
    over.wait()


def _decided(call: Call, failure: Failure, *, over: bool, now: float) -> Decision:
    return decide(
        failure,
        cancelled=over,
        retries=call.retries,
        interruptions=call.interruptions,
        attempt=call.attempt,
        retry=call.retry,
        draw=random.random(),
        left=call.until - now,
    )


def _applies(retry: Retry, answer: Answer) -> tuple[bool, BaseException | None]:
    """Return whether a call is tried again, or what it is answered with because that cannot be decided."""
    try:
        return judged(retry, answer.error(), answer.function), None
    except Exception as error:
        return False, error
    except BaseException as error:
        # One that ends a program is for the thread that asked, not for the engine's.
        return False, UsageError(f"on= of the sky.Retry of {answer.function}() raised {type(error).__name__}.")
