"""How long calls of a function are expected to run, learnt from those that ended."""

from __future__ import annotations

from typing import Final

UNKNOWN: Final = 0.1
"""Seconds that a function is expected to run which was never seen to end."""

_LEAST_WEIGHT: Final = 0.05
_LEAP: Final = 8.0
_SHORTEST: Final = 1e-6
_FUNCTIONS: Final = 4096


class Durations:
    """
    Expect for each function what its latest calls took on average.

    One call that takes very long counts as one of eight times the expectation, as most of the calls that follow are
    like those before.

    >>> durations = Durations()
    >>> durations.of(b"f") == UNKNOWN
    True
    >>> for seconds in (0.01, 0.02, 0.03):
    ...     durations.learn(b"f", seconds)
    >>> round(durations.of(b"f"), 3)
    0.02
    >>> durations.learn(b"f", 100.0)
    >>> round(durations.of(b"f"), 3)
    0.055
    """

    __slots__ = ("_expected", "_weights")

    def __init__(self) -> None:
        self._expected: dict[bytes, float] = {}
        self._weights: dict[bytes, float] = {}

    def of(self, function: bytes) -> float:
        """Return the seconds that a call of a function is expected to run."""
        return self._expected.get(function, UNKNOWN)

    def known(self, function: bytes) -> float | None:
        """Return the same; None for a function that was never seen to end."""
        return self._expected.get(function)

    def learn(self, function: bytes, seconds: float) -> None:
        """
        Record how long a call ran.

        Args:
            function: Names what it ran.
            seconds: How long.
        """
        expected = self._expected.get(function)
        if expected is None:
            # A microsecond, so that what took no time that a clock can measure may still take longer one day.
            self._expected[function] = max(seconds, _SHORTEST)
            self._weights[function] = 0.5
            if len(self._expected) > _FUNCTIONS:
                oldest = next(iter(self._expected))
                del self._expected[oldest], self._weights[oldest]
            return
        weight = self._weights[function]
        self._expected[function] = expected + weight * (min(seconds, _LEAP * expected) - expected)
        if weight > _LEAST_WEIGHT:
            # The plain average of the first ones: a half, a third, a quarter.
            self._weights[function] = max(_LEAST_WEIGHT, weight / (1 + weight))
