"""A worker asks once where the store is, for all of its tasks, and again when it is lost."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from skyward.errors import TransportError, UsageError
from skyward.link.frames import Kind, Parser
from skyward.link.store_said import StoreGone, StorePlace, Where, decode, encode_refusal
from skyward.node.worker.store_lookup import StoreLookup

PLACE = StorePlace("/n/store-1.sock", "secret", "g1")
NEXT = StorePlace("/n/store-2.sock", "other", "g2")


class _Agent:
    """Count what is asked, and answer."""

    def __init__(self) -> None:
        self.asked = threading.Semaphore(0)
        self.count = 0
        self.lookup = StoreLookup(self._take)

    def _take(self, frame: bytes) -> None:
        (read,) = Parser().feed(frame)
        assert (Kind.STORE, Where()) == (read.kind, decode(read.body))
        self.count += 1
        self.asked.release()


def test_tasks_that_ask_at_once_ask_once() -> None:
    """All of them get the answer."""
    agent = _Agent()
    with ThreadPoolExecutor(8) as threads:
        found = [threads.submit(agent.lookup.find, 10.0) for _ in range(8)]
        assert agent.asked.acquire(timeout=10)
        agent.lookup.received(PLACE.encode())
        assert [PLACE] * 8 == [future.result() for future in found]
    assert PLACE == agent.lookup.find(0.0)
    assert 1 == agent.count


def test_a_store_that_is_lost_is_asked_for_again() -> None:
    """And not before."""
    agent = _Agent()
    with ThreadPoolExecutor(1) as threads:
        first = threads.submit(agent.lookup.find, 10.0)
        assert agent.asked.acquire(timeout=10)
        agent.lookup.received(PLACE.encode())
        assert PLACE == first.result()
        agent.lookup.received(StoreGone("g0").encode())
        assert PLACE == agent.lookup.find(0.0)
        agent.lookup.received(StoreGone("g1").encode())
        second = threads.submit(agent.lookup.find, 10.0)
        assert agent.asked.acquire(timeout=10)
        agent.lookup.received(NEXT.encode())
        assert NEXT == second.result()


def test_a_refusal_is_raised_and_not_kept() -> None:
    """The next task asks again."""
    agent = _Agent()
    with ThreadPoolExecutor(1) as threads:
        for count in (1, 2):
            asked = threads.submit(agent.lookup.find, 10.0)
            assert agent.asked.acquire(timeout=10)
            agent.lookup.received(encode_refusal(UsageError("No collections.", hint="Open another pool.")))
            with pytest.raises(UsageError, match=r"No collections. Open another pool."):
                asked.result()
            assert count == agent.count


def test_an_answer_that_does_not_come_is_not_waited_for_for_ever() -> None:
    """The next task asks again."""
    agent = _Agent()
    for count in (1, 2):
        with pytest.raises(TransportError, match=r"did not say within 0.05 s where the store"):
            agent.lookup.find(0.05)
        assert count == agent.count


def test_an_answer_that_nothing_waits_for_is_kept() -> None:
    """It was asked for by a task that is over."""
    agent = _Agent()
    agent.lookup.received(PLACE.encode())
    assert PLACE == agent.lookup.find(0.0)
