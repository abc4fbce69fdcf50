"""A pool whose opening is interrupted gives back all that it got, at whatever moment that is."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest

import skyward as sky
from skyward.engine.pool.event_loop import EngineLoop
from skyward.testing import Rehearsal, SlowBoot
from skyward.testing.books import Books
from tests.waiting import until


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[Rehearsal]:
    """Rent from a cloud whose machines need half a minute to boot."""
    made = Rehearsal(directory=str(tmp_path), faults=[SlowBoot(seconds=30)])
    yield made
    made.clear()


def compute(cloud: Rehearsal, **options: Any) -> sky.Compute:
    given = {"machine": "small", "console": "silent", "logging": False, **options}
    return sky.Compute(provider=cloud, **given)


def rented(cloud: Rehearsal) -> int:
    """Count the machines there ever were."""
    return len(Books(cloud.directory).machines())


def test_an_interrupt_just_when_the_nodes_are_ready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is raised where the result was waited for, which no caller has then."""
    cloud, run = Rehearsal(directory=str(tmp_path)), EngineLoop.run

    def interrupted(self: EngineLoop, coroutine: Coroutine[Any, Any, Any]) -> Any:
        result = run(self, coroutine)
        if coroutine.__qualname__ == "Running.open":
            raise KeyboardInterrupt
        return result

    monkeypatch.setattr(EngineLoop, "run", interrupted)
    pool = compute(cloud)
    with pytest.raises(KeyboardInterrupt):
        pool.open()
    assert (1, []) == (rented(cloud), cloud.machines())
    assert not pool.is_active


def test_an_async_block_that_is_cancelled_while_its_pool_is_opened(cloud: Rehearsal) -> None:
    """It does not wait for machines that boot."""

    async def block() -> None:
        async with compute(cloud):
            raise AssertionError("it was opened")

    async def main() -> None:
        opening = asyncio.create_task(block())
        await asyncio.to_thread(until, lambda: rented(cloud))
        opening.cancel()
        await opening

    began = time.monotonic()
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(main())
    assert (1, []) == (rented(cloud), cloud.machines())
    assert time.monotonic() - began < 25


def test_pools_that_are_opened_side_by_side_are_broken_off_together(
    cloud: Rehearsal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An interrupt of the thread that waits for them is what is raised."""
    join = threading.Thread.join
    interrupts = [KeyboardInterrupt]

    def interrupted(self: threading.Thread, timeout: float | None = None) -> None:
        if self.name == "skyward-multipool" and interrupts:
            until(lambda: rented(cloud) == 2)
            raise interrupts.pop()
        join(self, timeout)

    monkeypatch.setattr(threading.Thread, "join", interrupted)
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt), sky.MultiPool(compute(cloud), compute(cloud)):
        raise AssertionError("they were opened")
    assert (2, []) == (rented(cloud), cloud.machines())
    assert time.monotonic() - began < 25
