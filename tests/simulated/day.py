"""
A day of a pool on a virtual clock, with whatever can go wrong, drawn from a seed.

The engine is the real one; machines, agents and the cloud are objects in its loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import math
import random
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any
from unittest.mock import patch

import skyward as sky
from skyward.hookspecs import Instance, InstanceState, LaunchRequest
from skyward.link.frames import Kind
from skyward.testing import NoCapacity, SlowApi
from tests.simulated.engine import SimulatedEngine
from tests.simulated.provider import Row, ScriptedCloud

HOUR = 3600.0
STEP = 60.0
"""Seconds between two looks of the program, which sends new calls then."""

CALM = 2400.0
"""
Seconds without a new fault, after which a pool has its size again, and has forgotten the launches of before: for up to
900 s there may be no capacity yet, and launches are kept for as long.
"""

ERRORS: Sequence[Callable[[], Exception]] = (
    lambda: ConnectionResetError("the line is cut"),
    lambda: TimeoutError("no answer"),
    lambda: sky.ProvisionError("429 Too Many Requests"),
    lambda: sky.OfferError("500 Internal Server Error"),
)
"""What calls of the cloud's API fail with."""

BAD_MACHINES = 0.01
"""The share of machines that never boot, let no login in, or die while they are made ready."""


@sky.function
def work(number: int, seconds: float) -> Any:
    """Take so long, and return which call this is."""
    return asyncio.sleep(seconds, number)


class Books(ScriptedCloud):
    """
    Rent machines, some of which are of no use, and keep a bill of those that have ended instead of them.

    Args:
        random_: Draws what becomes of machines, and which calls fail.
        offers: As for the cloud.
    """

    def __init__(self, random_: random.Random, **settings: Any) -> None:
        super().__init__(**settings)
        self.random = random_
        self.failing = 0.0
        self.rented = 0
        self.billed: dict[str, float] = {}
        self.when = self.after = self._fail
        self._listed: dict[str, Instance] = {}

    def _fail(self, hook: str) -> None:
        # Nothing is asked of what was asked before.
        self.requests.clear()
        self.calls.clear()
        if self.failing and self.random.random() < self.failing:
            make = self.random.choice(ERRORS)
            raise make()

    def add(self, request: LaunchRequest, node: int) -> Row:
        """Rent a machine, which may be a bad one."""
        row = super().add(request, node)
        self.rented += 1
        if self.random.random() < BAD_MACHINES:
            kind = self.random.randrange(3)
            row.runs_at = None if kind == 0 else row.runs_at
            row.machine.unreachable = kind == 1
            row.machine.dies = kind == 2
        return row

    def _instance(self, row: Row, state: InstanceState | None = None) -> Instance:
        # Made once for each state: a thousand are listed four times a minute.
        known = self._listed.get(row.id)
        runs = row.runs_at is not None and row.runs_at <= asyncio.get_running_loop().time()
        if known is None or state is not None or runs != (known.state is InstanceState.RUNNING):
            known = self._listed[row.id] = super()._instance(row, state)
        return known

    def take(self, row: Row) -> None:
        """End a machine, and bill it."""
        was_there = row.there
        super().take(row)
        if was_there and row.ended_at is not None:
            offer = row.request.cluster.offer
            price = offer.price(spot=row.request.spot) or 0.0
            self.billed[row.id] = price * max(1.0, math.ceil(row.ended_at - row.since)) / HOUR
            self.rows.remove(row)
            self._listed.pop(row.id, None)


class Faults:
    """
    Let something go wrong now and then; all of it runs in the engine's loop.

    Args:
        cloud: The cloud.
        clock: The engine's clock, which may jump.
        random_: Draws what happens, and when.
        every: Seconds between two faults, on average.
    """

    def __init__(self, cloud: Books, engine: SimulatedEngine, random_: random.Random, every: float) -> None:
        self.happened: Counter[str] = Counter()
        self.wall = 0.0
        self._cloud, self._engine, self._random, self._every = cloud, engine, random_, every
        self._task: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        """Let faults happen from now on."""
        self._task = asyncio.get_running_loop().create_task(self._go_on())

    async def end(self) -> None:
        """Let none happen any more; what is wrong stays so for as long as it was to last."""
        assert self._task is not None
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task

    async def _go_on(self) -> None:
        kinds = (
            *([self._lose, self._warn, self._freeze, self._freeze, self._cut_off] * 4),
            self._lose_many,
            self._fail_api,
            self._slow_api,
            self._sell_out,
            self._sleep,
            self._set_clock,
        )
        while True:
            await asyncio.sleep(self._random.expovariate(1 / self._every))
            kind = self._random.choice(kinds)
            self.happened[kind.__name__.strip("_")] += 1
            kind()

    def _in(self, seconds: float, do: Callable[..., object], *args: Any) -> None:
        self._engine.clock.call_later(seconds, do, *args)

    def _some(self, most: int = 1) -> list[Row]:
        there = self._cloud.there
        return self._random.sample(there, min(len(there), self._random.randint(1, most)))

    def _lose(self) -> None:
        for row in self._some():
            self._cloud.take(row)

    def _lose_many(self) -> None:
        for row in self._some(most=max(1, len(self._cloud.there) // 10)):
            self._cloud.take(row)

    def _warn(self) -> None:
        for row in self._some():
            row.machine.tell(Kind.NOTICE, {"reason": "rebalance", "certain": True, "at": None})
            self._in(120.0, self._cloud.take, row)

    def _silence(self, *, cut_off: bool) -> None:
        for row in self._some():
            row.machine.fall_silent(cut_off=cut_off)
            # Some are heard before they are suspected, some before they are lost, some never.
            if seconds := self._random.choice([5.0, 30.0, 60.0, 120.0, 0.0]):
                self._in(seconds, row.machine.be_heard)

    def _freeze(self) -> None:
        self._silence(cut_off=False)

    def _cut_off(self) -> None:
        self._silence(cut_off=True)

    def _fail_api(self) -> None:
        self._cloud.failing = self._random.choice([0.2, 0.5, 0.9])
        self._in(self._random.uniform(10.0, 300.0), setattr, self._cloud, "failing", 0.0)

    def _slow_api(self) -> None:
        self._script(SlowApi(seconds=self._random.uniform(1.0, 10.0)), self._random.uniform(10.0, 300.0))

    def _sell_out(self) -> None:
        self._script(NoCapacity(left=0), self._random.uniform(10.0, 900.0))

    def _script(self, fault: Any, seconds: float) -> None:
        self._cloud.script.append(fault)
        self._in(seconds, self._cloud.script.remove, fault)

    def _sleep(self) -> None:
        """Let the client's computer sleep for some minutes."""
        self._engine.clock.pass_by(self._random.uniform(1.0, 300.0))

    def _set_clock(self) -> None:
        """Set the client's wall clock, by which nothing is timed."""
        self.wall += self._random.uniform(-HOUR, HOUR)


class Calls:
    """
    Send calls for as long as the day lasts, and count what comes of each.

    Args:
        pool: The pool.
        random_: Draws how long they take.
        longest: Seconds that one takes at most.
    """

    def __init__(self, pool: Any, random_: random.Random, longest: float) -> None:
        self.sent = 0
        self.results: Counter[int] = Counter()
        self.cancelled = 0
        self.failed: list[BaseException] = []
        self._pool, self._random, self._longest = pool, random_, longest
        self._open: dict[int, Any] = {}

    def send(self, under_way: int) -> None:
        """Take note of what has ended, and send what is missing for so many to be under way, running or waiting."""
        self.settle()
        if self._open and self._random.random() < 0.2:
            future = self._open[self._random.choice(list(self._open))]
            self.cancelled += future.cancel()
        for _ in range(under_way - len(self._open)):
            self._open[self.sent] = work(self.sent, self._random.uniform(1.0, self._longest)) > self._pool
            self.sent += 1

    def settle(self) -> int:
        """Take note of what has ended, and return how many are open."""
        for number, future in [(number, future) for number, future in self._open.items() if future.done()]:
            del self._open[number]
            if future.cancelled():
                continue
            if (error := future.exception()) is not None:
                self.failed.append(error)
            else:
                assert number == future.result()
                self.results[number] += 1
        return len(self._open)


def tables() -> dict[str, int]:
    """
    Count what the program holds: objects of each class of ours, and what is in the tables of each.

    >>> sum(tables().values()) > 0
    True
    """
    gc.collect()
    found: Counter[str] = Counter()
    for thing in gc.get_objects():
        kind = type(thing)
        if kind is asyncio.Task or kind is asyncio.TimerHandle:
            found[kind.__name__] += 1
        if not str(getattr(kind, "__module__", "")).startswith("skyward."):
            continue
        found[kind.__qualname__] += 1
        for name, value in _attributes(thing):
            if isinstance(value, dict | list | set | deque):
                found[f"{kind.__qualname__}.{name}"] += len(value)
    return dict(found)


def _attributes(thing: Any) -> Iterator[tuple[str, Any]]:
    yield from getattr(thing, "__dict__", {}).items()
    for kind in type(thing).__mro__:
        slots = vars(kind).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            with contextlib.suppress(AttributeError):
                yield name, getattr(thing, name)


@contextlib.contextmanager
def wall_clock(engine: SimulatedEngine, faults: Faults) -> Iterator[None]:
    """Have the wall clock go with the virtual one, and jump when it is set."""
    began = time.time()
    with patch("time.time", lambda: began + engine.now + faults.wall):
        yield


PER_MACHINE = ("BilledLife", "BilledLives._at", "BilledLives.lives", "BilledLives.works", "Tariff", "Work")
"""What grows with each machine that was ever rented, because the receipt lists it."""

BOUNDED = ("Membership._undo", "_Undo", "Row")
"""Histories that are cut at a length of their own."""


def grown(before: Mapping[str, int], after: Mapping[str, int], nodes: int) -> dict[str, tuple[int, int]]:
    """
    Return the tables that hold more than twice as much as before, and one thing more for every fourth node.

    What is kept for a while, as launches are for 15 minutes, follows the faults of that while; over a day there are
    thousands.

    >>> grown({"Call": 10}, {"Call": 46, "Work": 1000}, nodes=100)
    {'Call': (10, 46)}
    """
    known = {*PER_MACHINE, *BOUNDED}
    return {
        name: (before.get(name, 0), count)
        for name, count in after.items()
        if name not in known and count > 2 * before.get(name, 0) + nodes // 4
    }
