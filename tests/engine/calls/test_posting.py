"""Calls are posted at once while slots may be idle, and together where they are made fast."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from skyward.engine.calls.posting import TOGETHER, Posting
from skyward.engine.pool.event_loop import EngineLoop
from tests.simulated.loop import VirtualLoop
from tests.waiting import until


class Posted:
    """Note when which calls were submitted, on a virtual clock."""

    def __init__(self, engine: EngineLoop) -> None:
        self.engine = engine
        self.idle = False
        self.batches: list[tuple[float, list[Any]]] = []
        self.posting = Posting(engine, idle=lambda: self.idle, submit=self.submit)

    def submit(self, calls: Sequence[Any]) -> None:
        """Take calls."""
        assert threading.current_thread().name == "skyward-engine"
        self.batches.append((round(self.engine.loop.time(), 6), list(calls)))


@pytest.fixture
def posted() -> Iterator[Posted]:
    """A loop in a thread of its own."""
    engine = EngineLoop(lambda: VirtualLoop(sockets=False))
    try:
        yield Posted(engine)
    finally:
        engine.close()


def test_a_call_is_sent_at_once_while_slots_may_be_idle(posted: Posted) -> None:
    """Although no other call follows."""
    posted.idle = True
    posted.posting.put("a")  # type: ignore[arg-type]
    until(lambda: posted.batches)
    assert [(0.0, ["a"])] == posted.batches


def test_calls_are_sent_together_while_all_slots_are_busy(posted: Posted) -> None:
    """After a millisecond, whatever the thread that makes them does meanwhile."""
    made = threading.Event()
    posted.engine.post(made.wait, 10)
    for name in "abc":
        posted.posting.put(name)  # type: ignore[arg-type]
    made.set()
    until(lambda: posted.batches)
    assert [(TOGETHER, ["a", "b", "c"])] == posted.batches
    posted.posting.put("d")  # type: ignore[arg-type]
    until(lambda: len(posted.batches) == 2)
    assert (2 * TOGETHER, ["d"]) == posted.batches[1]
