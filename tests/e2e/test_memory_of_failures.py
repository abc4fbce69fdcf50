"""What a failed call held is free before the next one, also where its frames form a cycle."""

from __future__ import annotations

import gc
import time
import weakref
from collections.abc import Iterator

import pytest

import skyward as sky

HELD: list[weakref.ref[object]] = []
"""What calls in this process have held."""


class Large:
    """Stands for what is large."""


@sky.function
def holds(how: str) -> None:
    gc.disable()
    large = Large()
    HELD.append(weakref.ref(large))
    try:
        if how == "waits":
            time.sleep(60)
        raise ValueError("no")
    except BaseException as error:
        # The frame names the exception, whose traceback has the frame.
        itself = error
        if how == "another":
            raise RuntimeError("because") from itself
        raise


@sky.function
async def holds_and_awaits() -> None:
    holds.local("raises")


@sky.function
def held() -> list[bool]:
    alive = [one() is not None for one in HELD]
    gc.enable()
    return alive


@pytest.fixture(params=["process", "thread"])
def worker(request: pytest.FixtureRequest) -> Iterator[sky.Pool]:
    """Run one worker."""
    with sky.Compute(executor=request.param, console="silent", logging=False) as pool:
        yield pool
    HELD.clear()
    gc.enable()


def test_variables_of_a_failed_call_are_released(worker: sky.Pool) -> None:
    """Those of a call that raised, with causes, in a coroutine, and of one that ran out of time."""
    for how in ("raises", "another"):
        with pytest.raises((ValueError, RuntimeError)):
            holds(how) >> worker
    with pytest.raises(ValueError, match="no"):
        holds_and_awaits() >> worker
    with pytest.raises(sky.TaskTimeoutError):
        holds("waits").with_timeout(0.5) >> worker
    assert held() >> worker == [False] * 4


def test_the_client_s_error_is_whole(worker: sky.Pool) -> None:
    """With its chain, and the lines of the node."""
    with pytest.raises(RuntimeError, match="because") as caught:
        holds("another") >> worker
    assert isinstance(caught.value.__cause__, ValueError)
    assert "raise RuntimeError" in str(caught.value.__cause__.__cause__)
