"""Calls that are cancelled one by one are stopped together, some at a time, and none is forgotten."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from skyward.engine.calls.batches import PART
from skyward.engine.calls.cancelling import Cancelling
from skyward.engine.pool.event_loop import EngineLoop
from tests.simulated.loop import VirtualLoop
from tests.waiting import until


class Stopped:
    """Stop calls that were submitted, as a pool does, and take note of what was done in one go."""

    def __init__(self, engine: EngineLoop) -> None:
        self.engine = engine
        self.open: set[int] = set()
        self.parts: list[int] = []
        self.cancelling = Cancelling(engine, self.cancel)

    def submit(self, *calls: Any) -> None:
        """Have calls submitted soon."""
        self.engine.post(self.open.update, [id(call) for call in calls])

    def cancel(self, calls: Sequence[Any]) -> None:
        """Stop those that there are."""
        assert threading.current_thread().name == "skyward-engine"
        self.parts.append(len(calls))
        for call in calls:
            call.cancelled = call.cancelled or id(call) in self.open


@pytest.fixture
def stopped() -> Iterator[Stopped]:
    """A loop in a thread of its own."""
    engine = EngineLoop(lambda: VirtualLoop(sockets=False))
    try:
        yield Stopped(engine)
    finally:
        engine.close()


def _calls(count: int) -> list[Any]:
    return [SimpleNamespace(cancelled=False) for _ in range(count)]


def test_many_are_stopped_in_parts(stopped: Stopped) -> None:
    """As many as a part has, with room for others between them."""
    calls, go = _calls(2 * PART + 1), threading.Event()
    stopped.submit(*calls)
    stopped.engine.post(go.wait, 10)
    for call in calls:
        stopped.cancelling.put(call)
    go.set()
    until(lambda: all(call.cancelled for call in calls))
    assert [PART, PART, 1] == stopped.parts


def test_call_that_is_submitted_behind_others_that_are_stopped_is_stopped_too(stopped: Stopped) -> None:
    """The loop hears of it with those, before it hears of the call itself."""
    first, second = calls = _calls(2)
    go = threading.Event()
    stopped.engine.post(go.wait, 10)
    for call in calls:
        stopped.submit(call)
        stopped.cancelling.put(call)
    go.set()
    until(lambda: first.cancelled and second.cancelled)


def test_call_that_has_ended_is_looked_for_once_more_and_no_longer(stopped: Stopped) -> None:
    """The next one is stopped all the same."""
    ended, other = _calls(2)
    stopped.cancelling.put(ended)
    stopped.submit(other)
    stopped.cancelling.put(other)
    until(lambda: other.cancelled)
    done = threading.Event()
    stopped.engine.post(done.set)
    assert done.wait(10)
    assert sum(stopped.parts) in (3, 4)
    assert not ended.cancelled


def test_several_threads_cancel_side_by_side(stopped: Stopped) -> None:
    """None of theirs is left."""
    calls = _calls(2_000)
    stopped.submit(*calls)

    def cancel(some: list[Any]) -> None:
        for call in some:
            stopped.cancelling.put(call)

    threads = [threading.Thread(target=cancel, args=(calls[at::4],)) for at in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    until(lambda: all(call.cancelled for call in calls))
