"""What the operators do: one call, many calls, a map, a broadcast; runs in the thread that dispatches."""

from __future__ import annotations

import concurrent.futures
import contextlib
import random
import time
from collections.abc import Iterator
from math import inf
from typing import TYPE_CHECKING, Any, TypeVar, cast

from skyward.engine.calls.answer import Answer
from skyward.engine.calls.call import Call, new_id
from skyward.engine.calls.call_making import new_caller
from skyward.engine.calls.retrying import judged, wait
from skyward.engine.calls.waiters import AnswerCollector, Future, Promise, Stream, StreamEnd, Waiter
from skyward.errors import NodeLostError, UsageError, WorkerSpentError
from skyward.link.messages import TASK_BITS
from skyward.model.spec.retries_setting import times
from skyward.model.spec.retry_setting import Retry
from skyward.plan.pool.retry_policy import RENEWALS, Failure, decide

if TYPE_CHECKING:
    from skyward.engine.pool.running import Running
    from skyward.pending import PendingFunction


T = TypeVar("T")

AT_ONCE = 64
"""Calls of a group that are pickled before they are sent: a millisecond or two, and enough for many nodes."""

SPENT_TOGETHER = 0.5
"""Seconds in which all ranks of a broadcast can say that their processes are spent, after the first one did."""


def run(pool: Running, pending: PendingFunction[T], *, node: int | None = None) -> T:
    """Run on one node and wait; a generator function gives a stream at once."""
    if pending.function.streams:
        return cast("T", open_stream(pool, pending, node=node))
    waiter = Waiter()
    call = pool.maker.call(pending, waiter, node=node)
    try:
        pool.submit([call])
        answer = waiter.wait()
        pool.reporting.caught_up()
        value: T = answer.value()
        return value
    except BaseException:
        pool.cancel([call])
        raise


def run_async(pool: Running, pending: PendingFunction[T], *, node: int | None = None) -> Future[T]:
    """Run on one node and promise the result."""
    future: Future[T] = Future(pool.cancel_soon, pool.reporting.caught_up)
    promise = Promise(future)
    if pending.function.streams:
        promise.settle(open_stream(pool, pending, node=node))
        return future
    call = pool.maker.call(pending, promise, node=node)
    promise.made(call)
    pool.submit([call])
    return future


def open_stream(pool: Running, pending: PendingFunction[Any], *, node: int | None = None) -> Stream[Any]:
    """Run a generator function, and return its items as they come."""
    end = StreamEnd()
    call = pool.maker.call(pending, end, node=node)
    pool.submit([call])
    return _stream_of(pool, call, end)


def _stream_of(pool: Running, call: Call, end: StreamEnd) -> Stream[Any]:
    return Stream(end, lambda: pool.cancel([call]), lambda items: pool.credit(call, items))


def run_all(pool: Running, pendings: tuple[PendingFunction[Any], ...], *, keep_errors: bool) -> list[Any]:
    """Run many calls; the first failure in the order of the calls is raised, and what it makes useless is stopped."""
    collector = AnswerCollector()
    progress = pool.reporting.progress("gather", len(pendings))
    results = GroupResults(len(pendings), keep_errors=keep_errors)
    calls: list[Call] = []
    try:
        for part in _made(pool, pendings, collector):
            calls += part
            pool.submit(part)
        while not results.settled:
            useless = results.add(*collector.next())
            progress(results.done)
            pool.cancel(calls[useless:] if useless is not None else ())
    except BaseException:
        pool.cancel(calls)
        raise
    pool.reporting.caught_up()
    return results.unwrap()


def stream_all(
    pool: Running, pendings: tuple[PendingFunction[Any], ...], *, ordered: bool, keep_errors: bool
) -> Iterator[Any]:
    """Run many calls, and return their results as they come."""
    results = _streamed(pool, pendings, ordered=ordered, keep_errors=keep_errors)
    # It sends the calls, and stops them when it is deleted, which one that has not begun could not.
    next(results)
    return results


def _streamed(
    pool: Running, pendings: tuple[PendingFunction[Any], ...], *, ordered: bool, keep_errors: bool
) -> Iterator[Any]:
    collector = AnswerCollector()
    progress = pool.reporting.progress("gather", len(pendings))
    calls: list[Call] = []
    held: dict[int, Answer] = {}
    given = 0
    try:
        for part in _made(pool, pendings, collector):
            calls += part
            pool.submit(part)
        yield None
        for done in range(1, len(calls) + 1):
            index, answer = collector.next()
            progress(done)
            held[index] = answer
            while held and (not ordered or given in held):
                given += 1
                yield _value(held.pop(given - 1) if ordered else held.popitem()[1], keep_errors=keep_errors)
    finally:
        pool.cancel(calls)


def _made(
    pool: Running, pendings: tuple[PendingFunction[Any], ...], collector: AnswerCollector
) -> Iterator[list[Call]]:
    """Pickle the calls of a group, and yield them in parts: the first ones run while the later ones are pickled."""
    caller = new_caller()
    for at in range(0, len(pendings), AT_ONCE):
        yield [
            pool.maker.call(pending, collector, index=index, caller=caller)
            for index, pending in enumerate(pendings[at : at + AT_ONCE], at)
        ]


class GroupResults:
    """
    Gather the answers of many calls, and know when the outcome is certain.

    Args:
        count: How many there will be.
        keep_errors: Whether what is raised takes its place among the results.
    """

    def __init__(self, count: int, *, keep_errors: bool) -> None:
        self._answers: list[Answer | None] = [None] * count
        self._keep_errors = keep_errors
        self._limit = count
        self._first_open = 0
        self.done = 0

    @property
    def settled(self) -> bool:
        """Return whether no further answer can change the outcome."""
        return self._first_open >= self._limit

    def add(self, index: int, answer: Answer) -> int | None:
        """Take an answer; give the index from which on calls have become useless."""
        self._answers[index] = answer
        self.done += 1
        useless = None
        if answer.failed and not self._keep_errors and index < self._limit:
            self._limit = index
            useless = index + 1
        while self._first_open < self._limit and self._answers[self._first_open] is not None:
            self._first_open += 1
        return useless

    def unwrap(self) -> list[Any]:
        """
        Return the results in order.

        Raises:
            Exception: The first failure in the order of the calls, with what was done until then.
        """
        values: list[Any] = []
        failure: BaseException | None = None
        for answer in self._answers:
            if answer is None:
                continue
            try:
                values.append(answer.value())
            except concurrent.futures.CancelledError as error:
                failure = failure or error
            except Exception as error:
                values.append(error)
                if not self._keep_errors:
                    failure = failure or error
        if failure is not None:
            raise_with_partial(failure, values)
        return values


def broadcast(pool: Running, pending: PendingFunction[T], *, keep_errors: bool) -> list[T]:
    """Run on every rank of the ready nodes; tried again as a whole, with the members there are then."""
    if pending.function.stream_parameters:
        raise UsageError(
            f"{pending.function.name} takes an iterator, which has one consumer: it cannot be broadcast. "
            "Send it to one node with `>> pool`, or pass a list."
        )
    retry = pending.retries if isinstance(pending.retries, Retry) else None
    retries, interruptions, renewals = times(pending.retries), pool.options.retry_on_interruption, RENEWALS
    number = new_id()
    deadline = pending.deadline or pool.options.call_deadline
    until = time.monotonic() + deadline if deadline else inf
    while True:
        pool.whole.awake()
        try:
            if pending.function.streams:
                return _broadcast_streams(pool, pending, number)
            return _broadcast_once(pool, pending, number, keep_errors=keep_errors)
        except NodeLostError:
            if not interruptions or time.monotonic() >= until:
                raise
            interruptions -= 1
            pool.whole.wait(None if until == inf else until - time.monotonic())
        except WorkerSpentError:
            # No rank has begun, and fresh processes take the place of those that could not.
            if not renewals:
                raise
            renewals -= 1
        except Exception as error:
            decision = decide(
                Failure.FAILED,
                cancelled=False,
                retries=retries,
                interruptions=interruptions,
                retry=retry,
                draw=random.random(),
                left=until - time.monotonic(),
            )
            if not decision.again or (retry is not None and not judged(retry, error, pending.function.name)):
                raise
            retries = decision.retries
            wait(pool, decision.delay)
        number += 1 << TASK_BITS
        if until != inf:
            # At least a moment, so that it fails as a call does that is late.
            pending = pending.with_deadline(max(0.001, until - time.monotonic()))


def _broadcast_once(pool: Running, pending: PendingFunction[T], number: int, *, keep_errors: bool) -> list[T]:
    collector = AnswerCollector()
    calls = pool.submit_broadcast(pending, [collector], number)
    answers: list[Answer | None] = [None] * len(calls)
    first: BaseException | None = None
    try:
        for _ in calls:
            index, answer = collector.next()
            answers[index] = answer
            if answer.failed and first is None:
                error = answer.error()
                if isinstance(error, WorkerSpentError):
                    first = error
                    # The others' processes may be spent, too: one that could not say so would be found again.
                    pool.engine.post(pool.engine.loop.call_later, SPENT_TOGETHER, pool.cancel, calls)
                elif not keep_errors:
                    first = error
                    pool.cancel(calls)
    except BaseException:
        pool.cancel(calls)
        raise
    pool.reporting.caught_up()
    values: list[Any] = []
    for answer in filter(None, answers):
        try:
            values.append(answer.value())
        except (Exception, concurrent.futures.CancelledError) as error:
            values.append(error)
            # A result that cannot be opened here is a failure too, detected only now.
            if not keep_errors and first is None:
                first = error
    if first is not None:
        raise_with_partial(first, values)
    return values


def _broadcast_streams(pool: Running, pending: PendingFunction[Any], number: int) -> list[Any]:
    ends = [StreamEnd() for _ in range(pool.ranks)]
    calls = pool.submit_broadcast(pending, ends, number)
    return [_stream_of(pool, call, end) for call, end in zip(calls, ends, strict=False)]


def raise_with_partial(error: BaseException, results: list[Any]) -> None:
    """Raise an error that remembers what was done until then."""
    from skyward.link.failure import raise_failure

    with contextlib.suppress(AttributeError):
        error.__skyward_partial__ = results  # type: ignore[attr-defined]
    raise_failure(error)


def _value(answer: Answer, *, keep_errors: bool) -> Any:
    try:
        return answer.value()
    except (Exception, concurrent.futures.CancelledError) as error:
        if not keep_errors:
            raise
        return error
