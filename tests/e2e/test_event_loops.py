"""Functions that run an event loop, and are to stop."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import skyward as sky


def touch(path: str) -> None:
    """Leave a sign."""
    Path(path).touch()


async def busy(left: str) -> None:
    """Keep the event loop in callbacks that are no task's, each for longer than a thread keeps the interpreter."""
    loop = asyncio.get_running_loop()

    def turn() -> None:
        until = time.monotonic() + 0.02
        while time.monotonic() < until:
            pass
        loop.call_soon(turn)

    turn()
    try:
        await asyncio.Event().wait()
    finally:
        await asyncio.sleep(0)
        touch(left)


@sky.function
async def ours(left: str) -> None:
    await busy(left)


@sky.function
def its_own(left: str) -> None:
    asyncio.run(busy(left))


@sky.function
async def spins(left: str) -> None:
    """Await nothing."""
    try:
        while True:
            pass
    finally:
        touch(left)


@sky.function
def pid() -> int:
    return os.getpid()


@pytest.fixture(scope="module", params=[1, 2], ids=["main thread", "threads"])
def pool(request: pytest.FixtureRequest) -> Iterator[sky.Compute]:
    """One node whose slots are threads of one process."""
    with sky.Compute(console="silent", concurrency=request.param) as opened:
        yield opened


@pytest.mark.parametrize(
    "function", [ours, its_own, pytest.param(spins, marks=pytest.mark.slow)], ids=["ours", "its own", "spins"]
)
def test_it_leaves_by_itself(pool: sky.Compute, function: Callable[[str], Any], tmp_path: Path) -> None:
    """Its `finally` runs, and its process is not ended for it."""
    before = pid() >> pool
    with pytest.raises(sky.TaskTimeoutError):
        function(str(tmp_path / "left")).with_timeout(0.1) >> pool
    assert (tmp_path / "left").exists()
    assert pid() >> pool == before


@pytest.mark.slow
def test_what_awaits_on_its_way_out_has_its_seconds(pool: sky.Compute, tmp_path: Path) -> None:
    """It is not unwound a second time while it does."""

    @sky.function
    async def tidy(left: str) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(2)
            touch(left)

    with pytest.raises(sky.TaskTimeoutError):
        tidy(str(tmp_path / "left")).with_timeout(0.1) >> pool
    assert (tmp_path / "left").exists()
