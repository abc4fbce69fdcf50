"""The calls of one map: made while there is room, answered in the loop, taken where their results are wanted."""

from __future__ import annotations

import contextlib
import contextvars
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from attrs import evolve

from skyward.engine.calls.answer import Answer
from skyward.engine.calls.call import Call, CapturedFunction
from skyward.engine.calls.posting import Posting
from skyward.engine.calls.result_overflow import Overflow
from skyward.errors import PoolClosedError
from skyward.link.payload import Payload
from skyward.link.payload_parts import Place
from skyward.plan.pool.map_flow import UNBOUNDED, Bounds, MapLoad, Pace, room

if TYPE_CHECKING:
    from skyward.engine.calls.pulling import ItemSource
    from skyward.engine.pool.running import Running
    from skyward.function import Function

AWAKE_EVERY = 0.5
"""Seconds after which a thread that waits looks for signals, for a pool that was closed, and for one that grew."""

_SMOOTHING = 1 / 16
_FASTER, _SLOWER = 1 / 4, 1 / 8
_RECENT = 64


class Landed(NamedTuple):
    """An answer that has come: of which item, and how many bytes it holds."""

    item: int
    answer: Answer
    size: int


class _Open(NamedTuple):
    call: Call
    since: float
    size: int


class Flight:
    """
    Hold the calls of one map.

    One thread makes calls, the engine's loop takes their answers, others take the results. Each counter has one of
    these as its only writer, so that none waits for another.

    Args:
        pool: Where they run.
        function: What is called.
        source: The arguments.
        ordered: Whether results are taken in the order of the items.
        bounds: What may be held.
    """

    def __init__(
        self, pool: Running, function: Function[..., Any], source: ItemSource, *, ordered: bool, bounds: Bounds
    ) -> None:
        self._pool = pool
        self._source = source
        self._ordered = ordered
        self._bounds = bounds
        self._clock = pool.engine.loop.time
        self._make = pool.maker.caller(function, self)
        self._posting = Posting(pool.engine, idle=self._idle, submit=self._submit)
        self._open: dict[int, _Open] = {}
        self._function: CapturedFunction | None = None
        self._recent: deque[bytes] = deque(maxlen=_RECENT)
        # Written where calls are made.
        self.pulled = 0
        self._arguments = 0
        self._argument = 0.0
        self.exhausted = False
        self.failure: BaseException | None = None
        self._waits = False
        self._least = 1
        self._low = 0
        self._wake = threading.Event()
        # Written in the loop.
        self._sent = 0
        self.answered = 0
        self._arguments_done = 0
        self._landed_bytes = 0
        self._learnt = Pace()
        self._seconds: float | None = None
        self._away = 0.0
        self._result = 0.0
        self._starved = False
        self._ringing = False
        # Written where results are taken.
        self._given = 0
        self._given_bytes = 0
        self._overflow = Overflow(partial(pool.engine.loop.run_in_executor, None))
        self._landed: deque[Landed] = deque()
        self._held: dict[int, Landed] = {}
        self._taking = threading.Lock()
        self._sleepers: deque[Callable[[], None]] = deque()
        self.over = False

    # Where calls are made.

    def room(self) -> int:
        """Count the items that may be pulled now."""
        if self._function is None:
            # What earlier maps learnt is known with the first call.
            return 1
        slots = self._pool.slots
        load = MapLoad(
            slots=slots,
            ahead=slots * self._pool.options.workers.buffer,
            pulled=self.pulled - self._given,
            running=self.pulled - self.answered,
            arguments=self._arguments - self._arguments_done,
            held=self._landed_bytes - self._given_bytes,
            answered=self.answered,
        )
        return room(load, self._pace(), self._bounds, ordered=self._ordered)

    def pull(self, most: int, *, until_landed: bool = False) -> None:
        """
        Make calls of the next items; an error is the map's failure.

        Args:
            most: How many.
            until_landed: Whether to leave off when an answer has come.
        """
        for _ in range(most):
            if self.over or (until_landed and self._landed):
                return
            try:
                arguments = next(self._source)
            except StopIteration:
                self.exhausted = True
                return
            except BaseException as error:
                self._fail(error, f"Raised by the iterator that `map` takes its items from, after {self.pulled} items.")
                return
            try:
                self._call(arguments)
            except BaseException as error:
                self._fail(error, f"Raised for the item at {self.pulled} of a `map`.")
                return

    def run(self) -> None:
        """Make calls until there are no more items, or no more results are wanted; for a thread of its own."""
        try:
            while not (self.exhausted or self.over or self._pool.state.closing):
                if count := self.room():
                    self.pull(count)
                else:
                    self._rest()
            if not (self.exhausted or self.over):
                self.failure = self._closed()
        finally:
            self.exhausted = True
            with contextlib.suppress(BaseException):
                self._source.close()
            self._ring_soon()

    def begin(self) -> None:
        """Start making calls in a thread of its own, in the context of this one."""
        context = contextvars.copy_context()
        threading.Thread(target=context.run, args=(self.run,), name="skyward-map", daemon=True).start()

    def _call(self, arguments: tuple[Any, ...]) -> None:
        index = self.pulled
        call = self._make(arguments, index)
        size = self._own_bytes(call.payload)
        if self._function is None:
            self._function = call.function
            self._learnt = call.function.learnt.pace
        self._arguments += size
        self._argument = _larger(self._argument, size)
        self._open[index] = _Open(call, self._clock(), size)
        self.pulled = index + 1
        self._posting.put(call)

    def _own_bytes(self, payload: Payload) -> int:
        """Count what is held for one call only: a buffer that several calls name is held once."""
        if not payload.parts:
            return len(payload.inline)
        size = 0
        for part in payload.parts:
            if part.place != Place.STORED or part.digest not in self._recent:
                size += part.size
            if part.place == Place.STORED:
                self._recent.append(part.digest)
        return size

    def _fail(self, error: BaseException, note: str) -> None:
        if isinstance(error, Exception):
            error.add_note(note)
        self.failure = error
        self.exhausted = True

    def _rest(self) -> None:
        """Wait until there is room for more."""
        pulled = self.pulled - self._given
        self._least = max(1, min(pulled // 8, 64))
        self._low = pulled - self._least
        self._wake.clear()
        self._waits = True
        if not self._enough():
            self._wake.wait(AWAKE_EVERY)
        self._waits = False

    def _enough(self) -> bool:
        if self.over:
            return True
        count = self.room()
        return count >= self._least or (count > 0 and self.pulled - self.answered <= self._pool.slots)

    def _pace(self) -> Pace:
        learnt = self._learnt
        if self._seconds is None:
            return evolve(learnt, argument=max(learnt.argument, self._argument))
        return Pace(
            seconds=self._seconds,
            away=self._away,
            argument=self._argument,
            result=self._result,
            taken=learnt.taken + self._given,
        )

    # In the loop.

    def resolve(self, call: Call, answer: Answer) -> None:
        """Take an answer."""
        _, since, arguments = self._open.pop(call.index)
        payload = answer.payload
        size = len(answer.text) if payload is None else payload.size
        self._learn(answer, self._clock() - since, size, first=call.attempt == 1)
        self._arguments_done += arguments
        self._landed_bytes += size
        self.answered += 1
        self._landed.append(Landed(call.index, answer, size))
        held = self._landed_bytes - self._given_bytes - self._overflow.bytes
        if held > self._bounds.results != UNBOUNDED:
            self._overflow.move(call.index, answer)
        if (self._sleepers or self._waits) and not self._ringing:
            self._ringing = True
            self._pool.engine.loop.call_soon(self._ring)

    def item(self, call: Call, payload: Payload) -> None:
        """Ignore items: the calls are no streams."""

    def stalled(self) -> bool:
        """Return False: no call waits for its result to be taken."""
        return False

    def _learn(self, answer: Answer, elapsed: float, size: int, *, first: bool) -> None:
        # A node may say anything.
        ran = answer.seconds if 0.0 <= answer.seconds <= elapsed else elapsed
        away = elapsed - ran
        if self._seconds is None:
            known = self._learnt.seconds is not None
            self._seconds = self._learnt.seconds if known else ran
            self._away = min(away, self._learnt.away) if known else away
            self._result = max(float(size), self._learnt.result)
            return
        self._result = _larger(self._result, size)
        # The first call of a function is often its slowest, and few follow it until that has decayed.
        self._seconds += (ran - self._seconds) * (_FASTER if ran < self._seconds else _SLOWER)
        if away < self._away:
            self._away = away
        elif self._starved and first:
            # Nothing waits in the pool, and the map could have had more under way: the line is longer than it was.
            self._away += (away - self._away) * _SMOOTHING

    def _ring(self) -> None:
        self._ringing = False
        self._starved = self._waits and not self._pool.dispatch.queued
        for _ in range(len(self._sleepers)):
            self._sleepers.popleft()()
        if self._waits and self._enough():
            self._wake.set()

    def _idle(self) -> bool:
        return self._sent - self.answered < self._pool.slots

    def _submit(self, calls: Sequence[Call]) -> None:
        if not self.over:
            self._sent += len(calls)
            self._pool.submit(calls)

    # Where results are taken.

    def take(self) -> Landed | None:
        """Return the next result that has come; None if there is none yet."""
        with self._taking:
            # What comes of calls that were stopped is not wanted.
            landed = None if self.over else self._next()
            if landed is None:
                return None
            self._given += 1
            self._given_bytes += landed.size
            self._overflow.taken(landed.item)
        if self._waits and self.pulled - self._given <= self._low and self._enough():
            self._wake.set()
        return landed

    def put_back(self, landed: Landed) -> None:
        """Take a result back that is the next to be taken again."""
        with self._taking:
            self._given -= 1
            self._given_bytes -= landed.size
            if self._ordered:
                self._held[landed.item] = landed
            else:
                self._landed.appendleft(landed)

    @property
    def finished(self) -> bool:
        """Return whether no result is left to be taken."""
        return self.over or (self.exhausted and self._given == self.pulled)

    def sleep(self, wake: Callable[[], None]) -> bool:
        """
        Register what is called, in the loop, when there may be a result; False if there may be one now.

        Raises:
            PoolClosedError: In a process that was forked, or if the pool is closed and so no result will come.
        """
        self._sleepers.append(wake)
        if self._landed or self.finished:
            return False
        self.look()
        return True

    def wait(self, until: float | None = None) -> None:
        """
        Wait until there may be a result.

        Args:
            until: When to give up, by `time.monotonic()`.

        Raises:
            PoolClosedError: In a process that was forked, or if the pool is closed and so no result will come.
        """
        lock = threading.Lock()
        lock.acquire()
        if not self.sleep(lock.release):
            return
        while not lock.acquire(timeout=AWAKE_EVERY if until is None else min(AWAKE_EVERY, until - time.monotonic())):
            if until is not None and time.monotonic() >= until:
                return
            self.look()

    def look(self) -> None:
        """
        Check whether there is anything left to wait for.

        Raises:
            PoolClosedError: In a process that was forked, or if the pool is closed and so no result will come.
        """
        self._pool.engine.check()
        if self._pool.state.closing and self.answered == self.pulled and not self.finished and not self._landed:
            raise self._closed()

    def cancel_after(self, index: int) -> None:
        """Stop the calls of the items after one."""
        self._pool.cancel([one.call for number, one in list(self._open.items()) if number > index])

    def close(self) -> None:
        """
        Stop what is under way, and pull no more; harmless when it has ended.

        It takes no lock: it may be called wherever the interpreter collects garbage.
        """
        # In a forked child there is nothing to stop, and what was forked with it is the parent's.
        if self.over or not self._pool.engine.is_here:
            return
        self.over = True
        self._source.interrupt()
        # After the loop's end there is nothing to stop either.
        with contextlib.suppress(OSError):
            self._pool.engine.post(self._stop)

    def _stop(self) -> None:
        self._pool.cancel([one.call for one in list(self._open.values())])
        self._remember()
        with self._taking:
            # Results that will not be taken are not kept for as long as the program keeps their stream.
            self._landed.clear()
            self._held.clear()
        self._wake.set()
        self._ring()

    def _remember(self) -> None:
        if self._function is not None and self._seconds is not None:
            self._function.learnt.pace = self._pace()

    def _closed(self) -> PoolClosedError:
        return PoolClosedError(f"The pool {self._pool.name!r} is closed.", pool=self._pool.name)

    def _ring_soon(self) -> None:
        with contextlib.suppress(PoolClosedError, OSError):
            self._pool.engine.post(self._ring)

    def _next(self) -> Landed | None:
        if not self._ordered:
            return self._landed.popleft() if self._landed else None
        while self._given not in self._held:
            if not self._landed:
                return None
            landed = self._landed.popleft()
            self._held[landed.item] = landed
        return self._held.pop(self._given)


def _larger(expected: float, size: int) -> float:
    """Expect the largest, and less of it with each that is smaller."""
    return float(size) if size >= expected else expected - (expected - size) * _SMOOTHING
