"""
What may be asked of retries, and what is refused.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

import pytest

import skyward as sky
from skyward.model.spec.retries_setting import retries, times
from skyward.model.spec.retry_setting import LONGEST, Retry


async def _later(error: BaseException) -> bool:
    return True


def _many(error: BaseException) -> Iterator[bool]:
    yield True


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"times": -1}, "times must be a whole number of at least 0, not -1"),
        ({"times": 1.5}, "times must be a whole number of at least 0, not 1.5"),
        ({"times": True}, "times must be a whole number"),
        ({"delay": -1}, "delay must be a finite number of seconds that is not negative"),
        ({"delay": "1"}, "delay must be a number of seconds, not '1'"),
        ({"delay": float("nan")}, "delay must be a finite number"),
        ({"delay": LONGEST + 1}, "delay must be 3600 seconds at most"),
        ({"backoff": 0.5}, "backoff must be a finite number of at least 1, not 0.5"),
        ({"backoff": float("inf")}, "backoff must be a finite number"),
        ({"jitter": 1.5}, "jitter must be a finite number from 0 to 1, not 1.5"),
        ({"jitter": "much"}, "jitter must be a finite number"),
        ({"on": ValueError("one")}, "on must be an exception class, a tuple of them, or a function"),
        ({"on": int}, "on must be an exception class"),
        ({"on": (ValueError, int)}, "on must be an exception class"),
        ({"on": ()}, "on must be an exception class"),
        ({"on": "ValueError"}, "on must be an exception class"),
        ({"on": _later}, "on must be a plain function"),
        ({"on": _many}, "on must be a plain function"),
        ({"dely": 1}, "no setting 'dely'. Did you mean 'delay'"),
    ],
)
def test_what_makes_no_sense_is_refused_when_it_is_made(given: dict[str, Any], said: str) -> None:
    """Before anything is rented or run."""
    with pytest.raises(sky.ConfigError, match=said):
        Retry(**{"times": 1, **given})


def test_it_is_a_value() -> None:
    """Equal, hashable, frozen, and as good after a pickle."""
    retry = Retry(3, 0.5, 2, 0, on=(OSError, KeyError))
    assert retry == Retry(3, delay=0.5, backoff=2.0, jitter=0.0, on=[OSError, KeyError])  # type: ignore[arg-type]
    assert {retry: 1}[pickle.loads(pickle.dumps(retry))] == 1
    with pytest.raises(AttributeError):
        retry.times = 4  # type: ignore[misc]


@pytest.mark.parametrize(
    ("on", "expected"),
    [
        (None, True),
        (OSError, True),
        (KeyError, False),
        ((KeyError, ConnectionError), True),
        (lambda error: "reset" in str(error), True),
        (lambda error: 0, False),
    ],
)
def test_on_says_which_failures_are_meant(on: Any, expected: bool) -> None:
    """By class, by several, or by a function of the exception."""
    assert expected is Retry(1, on=on).applies(ConnectionError("reset"))


def test_a_number_and_a_policy_stand_in_the_same_place() -> None:
    """With the function and with the call."""

    @sky.function(retries=Retry(3))
    def work() -> None: ...

    assert 3 == times(retries(3)) == times(retries(Retry(3)))
    assert Retry(3) == work().retries
    assert Retry(2) == work().with_retries(Retry(2)).retries


@pytest.mark.parametrize("given", [-1, 1.5, True, "3", None, (1, 2)])
def test_anything_else_is_refused(given: Any) -> None:
    """With both ways to say it."""
    with pytest.raises(sky.ConfigError, match=r"whole number from 0, or sky\.Retry"):
        sky.function(retries=given)


def test_what_decides_does_not_travel() -> None:
    """A function of the exception may hold what cannot be pickled: it stays here."""
    import threading

    import cloudpickle

    lock = threading.Lock()

    @sky.function(retries=Retry(3, on=lambda error: lock.locked()))
    def work() -> int:
        return 7

    assert (3, 7) == ((there := cloudpickle.loads(cloudpickle.dumps(work))).retries, there.local())
