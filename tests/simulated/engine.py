"""An engine on a virtual clock: hours of a pool's life pass in milliseconds, and only while a test waits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from threading import Thread
from time import monotonic, sleep
from typing import Any, TypeVar
from unittest.mock import patch

from skyward.engine.guardian.journal import Journal
from skyward.engine.pool import event_loop as loops
from skyward.engine.pool.event_loop import EngineLoop
from skyward.model.instances.machine import LaunchRequest
from tests.simulated.loop import VirtualLoop

T = TypeVar("T")

_LOOK = 0.25


class SimulatedEngine(EngineLoop):
    """
    Run pools on a clock that goes on while a thread waits for the engine, and stands still while it does not.

    Opening and leaving a pool take virtual time, and so do `pass_by`, `until` and `result`; nothing else does.
    """

    def __init__(self) -> None:
        super().__init__(lambda: VirtualLoop(sockets=False, gated=True))
        self.clock: VirtualLoop = self.loop  # type: ignore[assignment]  # made above
        self.journals: list[MemoryJournal] = []

    def journal(self) -> MemoryJournal:
        """Open a journal."""
        self.journals.append(MemoryJournal())
        return self.journals[-1]

    @property
    def now(self) -> float:
        """Tell the time, in seconds."""
        return self.clock.time()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the loop and wait for its result, while time goes on."""
        return super().run(self._passing(coroutine))

    def pass_by(self, seconds: float) -> None:
        """Let so much time go on."""
        self.run(asyncio.sleep(seconds))

    def until(self, holds: Callable[[], object], within: float = 7200.0) -> float:
        """Let time go on until a condition holds, and return how many seconds that took."""
        began = self.now
        self.run(self._until(holds, began + within))
        return self.now - began

    @contextmanager
    def beside(self, do: Callable[[], T], begun: Callable[[], object]) -> Iterator[list[T]]:
        """
        Do in a thread of its own what waits for the engine; yield what takes its result once it has begun.

        No time goes on until it has, and the block has to let enough of it go on for the thread to end.
        """
        done: list[T] = []
        thread = Thread(target=lambda: done.append(do()), daemon=True)
        thread.start()
        deadline = monotonic() + 20.0
        while not begun():
            assert monotonic() < deadline, "it never began"
            sleep(0.001)
        yield done
        thread.join(timeout=20.0)
        assert not thread.is_alive()

    def result(self, future: Future[T]) -> T:
        """Let time go on until a call is answered, and return its result."""
        self.run(_settled(future))
        return future.result()

    async def _passing(self, coroutine: Coroutine[Any, Any, T]) -> T:
        with self.clock.passing():
            return await coroutine

    async def _until(self, holds: Callable[[], object], deadline: float) -> None:
        while not holds():
            assert self.clock.time() < deadline, "it never came to hold"
            await asyncio.sleep(_LOOK)


async def _settled(future: Future[Any]) -> None:
    loop, done = asyncio.get_running_loop(), asyncio.Event()
    future.add_done_callback(lambda _: loop.call_soon_threadsafe(done.set))
    await done.wait()


async def _left() -> list[str]:
    """List what runs in the loop, a moment after it was told to end."""
    for _ in range(5):
        await asyncio.sleep(0)
    return [str(task) for task in asyncio.all_tasks() if task is not asyncio.current_task()]


class MemoryJournal:
    """Keep what a pool writes down of its machines, and write it nowhere: a disk knows no virtual time."""

    def __init__(self) -> None:
        self.tokens: list[str] = []
        self.ids: dict[str, tuple[str, ...]] = {}
        self.gone: set[str] = set()
        self.closed = False

    async def asked(self, request: LaunchRequest, provider: str, infra: Any) -> None:
        """Take note of what is about to be asked for."""
        self.tokens.append(request.token)

    def answered(self, token: str, ids: Iterable[str]) -> None:
        """Take note of what came of it."""
        self.ids[token] = tuple(ids)

    def ended(self, token: str, machine: str) -> None:
        """Take note that a machine was given back."""
        self.gone.add(machine)

    def settled(self, pool_id: str) -> None:
        """Take note that no machine is left."""
        self.gone.update(*self.ids.values())

    def close(self) -> None:
        """Take no more notes."""
        self.closed = True


@contextmanager
def simulated_engine() -> Iterator[SimulatedEngine]:
    """Have all pools of this process run on a virtual clock, and their journal in memory."""
    engine = SimulatedEngine()
    try:
        with patch.object(loops, "_current", [engine]), patch.object(Journal, "open", engine.journal):
            yield engine
            assert [] == engine.run(_left()), "a pool that was left has left something running"
    finally:
        engine.run(engine.loop.shutdown_default_executor())
        engine.close()
