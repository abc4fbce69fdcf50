"""Load curves: when calls are sent, and how long each of them runs; the same at every run."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from itertools import count
from typing import NamedTuple

HOUR = 3600.0


class Sent(NamedTuple):
    """A call: when it is sent, what it runs, and for how long, in seconds."""

    at: float
    function: bytes
    seconds: float


class Load(NamedTuple):
    """
    A load curve.

    Args:
        name: What it is called.
        said: What it is, in a few words.
        calls: The calls, in the order in which they are sent.
        until: How long the pool is open at least, in seconds.
    """

    name: str
    said: str
    calls: tuple[Sent, ...]
    until: float


def loads() -> tuple[Load, ...]:
    """Return all curves."""
    return (
        Load("steady", "one call of about 45 s every 15 s, for four hours", _steady(), 4 * HOUR),
        Load("bursts", "120 calls of about 60 s at once, every 40 minutes", _bursts(), 4 * HOUR),
        Load("day", "a day of requests of about 20 s, few at night and most in the afternoon", _day(), 24 * HOUR),
        Load("queue", "2,000 calls of about 90 s, sent at once", _queue(), 0.0),
        Load("sweep", "64 trainings of 5 to 40 minutes, sent at once", _sweep(), 0.0),
        Load("interactive", "one person who calls, reads, calls again, and goes to lunch", _interactive(), 8 * HOUR),
    )


def _around(chance: random.Random, seconds: float, spread: float = 0.3) -> float:
    """Draw a duration around another one, never below a tenth of it."""
    return max(seconds / 10, chance.lognormvariate(math.log(seconds), spread))


def _arrivals(chance: random.Random, rate: Callable[[float], float], most: float, until: float) -> Iterator[float]:
    """Yield times at which calls are sent at a rate that changes, which is never above `most`."""
    now = 0.0
    while (now := now + chance.expovariate(most)) < until:
        if chance.random() * most < rate(now):
            yield now


def _steady() -> tuple[Sent, ...]:
    chance = random.Random(1)
    return tuple(
        Sent(at, b"serve", _around(chance, 45.0)) for at in _arrivals(chance, lambda at: 1 / 15, 1 / 15, 4 * HOUR)
    )


def _bursts() -> tuple[Sent, ...]:
    chance = random.Random(2)
    times = (number * 2400.0 + 300.0 for number in range(6))
    return tuple(Sent(at, b"burst", _around(chance, 60.0)) for at in times for _ in range(120))


def _day() -> tuple[Sent, ...]:
    chance = random.Random(3)

    def rate(at: float) -> float:
        return 0.01 + 0.6 * max(0.0, math.sin(math.pi * (at / HOUR - 7.0) / 14.0)) ** 3

    return tuple(Sent(at, b"request", _around(chance, 20.0)) for at in _arrivals(chance, rate, 0.62, 24 * HOUR))


def _queue() -> tuple[Sent, ...]:
    chance = random.Random(4)
    return tuple(Sent(10.0, b"item", _around(chance, 90.0)) for _ in range(2000))


def _sweep() -> tuple[Sent, ...]:
    chance = random.Random(5)
    return tuple(Sent(10.0, b"train", chance.uniform(300.0, 2400.0)) for _ in range(64))


def _interactive() -> tuple[Sent, ...]:
    chance, now, calls = random.Random(6), 0.0, []
    for number in count():
        seconds = _around(chance, 4.0, 0.8)
        # Each eighth time something else is to be done first.
        now += seconds + (chance.uniform(600.0, 2400.0) if number % 8 == 7 else _around(chance, 30.0, 0.7))
        if now > 8 * HOUR:
            return tuple(calls)
        if not 4 * HOUR < now < 5 * HOUR:
            calls.append(Sent(now, b"look", seconds))
    raise AssertionError
