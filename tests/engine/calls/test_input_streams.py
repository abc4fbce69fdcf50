"""Iterators that calls take as arguments are fed no further ahead than their window."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from typing import Any

import pytest

import skyward as sky
from skyward.engine.calls import operations
from skyward.engine.calls.input_streams import Feeder
from skyward.engine.nodes.outflow import MOST, Outflow
from skyward.link.frames import Kind
from skyward.node.worker.streams import WINDOW_BYTES, WINDOW_ITEMS
from tests.simulated import plan
from tests.simulated.plan import FOREVER, HANGS, Plan, dies
from tests.simulated.scripted_pool import ScriptedPool, idle
from tests.waiting import until

act_on_items = sky.function(plan.act_on_items)
ALL = Plan(takes=FOREVER)


@pytest.fixture
def pool() -> Iterator[ScriptedPool]:
    """Two nodes of one slot each."""
    with ScriptedPool([1], [1]) as pool:
        yield pool


class Source:
    """Count what is taken, and take note of the end."""

    def __init__(self, size: int = 0) -> None:
        self.taken = 0
        self.closed = threading.Event()
        self._size = size

    def __iter__(self) -> Iterator[Any]:
        try:
            while True:
                self.taken += 1
                yield bytes(self._size) if self._size else self.taken
        finally:
            self.closed.set()


def test_all_items_arrive_in_order(pool: ScriptedPool) -> None:
    """Far more than a window; the node hears of the end."""
    assert list(range(200)) == operations.run(pool, act_on_items(iter(range(200)), ALL))
    assert [] == operations.run(pool, act_on_items(iter(()), ALL))


def test_nothing_is_taken_before_the_call_begins(pool: ScriptedPool) -> None:
    """It might be cancelled, or never begin."""
    holding = [operations.run_async(pool, sky.function(plan.act)(HANGS)) for _ in range(2)]
    until(lambda: all(node.running for node in pool.scripted.values()))
    source = Source()
    future = operations.run_async(pool, act_on_items(iter(source), Plan(takes=3)))
    until(lambda: pool.do(lambda: pool.dispatch.queued) == 1)
    assert 0 == source.taken
    assert all(held.cancel() for held in holding)
    assert [1, 2, 3] == future.result(10)


@pytest.mark.parametrize(("size", "most"), [(0, WINDOW_ITEMS), (WINDOW_BYTES // 4, 4)])
def test_a_node_that_takes_nothing_holds_the_iterator_back(pool: ScriptedPool, size: int, most: int) -> None:
    """At the window of items, or that of bytes."""
    source = Source(size)
    future = operations.run_async(pool, act_on_items(iter(source), HANGS))
    until(lambda: any(node.running for node in pool.scripted.values()))
    [node] = [node for node in pool.scripted.values() if node.running]
    until(lambda: most == sum(frame.kind == Kind.ITEM for frame in node.received))
    assert source.taken == most
    assert future.cancel()
    assert source.closed.wait(10)
    until(lambda: idle(pool))


def test_a_node_that_credits_what_it_has_not_is_sent_no_more(pool: ScriptedPool) -> None:
    """Its link has to confirm items, too; when it does, they go on."""
    for node in pool.scripted.values():
        node.confirms = False
    source = Source(size := 1 << 20)
    future = operations.run_async(pool, act_on_items(iter(source), ALL))
    until(lambda: source.taken >= MOST // size)
    for _ in range(50):
        pool.do(lambda: None)
    # What is on its way to the loop counts by itself.
    assert source.taken <= (MOST + WINDOW_BYTES) // size + 1
    [node] = [node for node in pool.scripted.values() if node.running]

    def confirm() -> None:
        node.confirms = True
        for receipt in node.unconfirmed:
            receipt()

    pool.do(confirm)
    until(lambda: source.taken >= 4 * MOST // size)
    assert future.cancel()
    assert source.closed.wait(10)
    until(lambda: idle(pool))


@pytest.mark.parametrize("ending", [Plan(takes=3), dies()])
def test_a_call_that_ends_lets_the_iterator_go(pool: ScriptedPool, ending: Plan) -> None:
    """Its `finally` runs; nothing is taken any more."""
    source = Source()
    future = operations.run_async(pool, act_on_items(iter(source), ending))
    future.exception(10)
    assert source.closed.wait(10)
    assert source.taken <= 3 + WINDOW_ITEMS


def test_an_iterator_that_raises_raises_in_the_function(pool: ScriptedPool) -> None:
    """And through it here."""

    def broken() -> Iterator[int]:
        yield 1
        raise OSError("disk gone")

    with pytest.raises(OSError, match="disk gone"):
        operations.run(pool, act_on_items(broken(), ALL))


def test_an_item_that_cannot_be_pickled_raises_in_the_function(pool: ScriptedPool) -> None:
    """As if the iterator had."""
    with pytest.raises(TypeError, match="lock"):
        operations.run(pool, act_on_items(iter([threading.Lock()]), ALL))


def test_a_call_that_was_fed_is_not_tried_again(pool: ScriptedPool) -> None:
    """Not for the loss of its node either: what it took is gone."""
    future = operations.run_async(pool, act_on_items(iter(Source()), Plan(takes=FOREVER)))
    until(lambda: any(node.running for node in pool.scripted.values()))
    [busy] = [node for node in pool.scripted.values() if node.running]
    pool.do(busy.lose)
    assert isinstance(future.exception(10), sky.NodeLostError)
    assert 1 == len(pool.observer.begun)


def test_retries_are_refused(pool: ScriptedPool) -> None:
    """Not one item is taken."""
    source = iter(range(3))
    with pytest.raises(sky.UsageError, match="retries must be 0, not 2"):
        operations.run(pool, act_on_items(source, ALL).with_retries(2))
    assert [0, 1, 2] == list(source)


def test_streams_have_windows_of_their_own() -> None:
    """A slow one does not hold the other back; what is acknowledged for no stream belongs to none."""
    sent: list[int] = []
    feeder = Feeder((itertools.count(), itertools.count()), lambda call, send: send(Recorder(sent)))  # type: ignore[arg-type]
    feeder.start(None, Outflow())  # type: ignore[arg-type]  # it is only passed on
    until(lambda: [WINDOW_ITEMS] * 2 == [sent.count(stream) for stream in (0, 1)])
    feeder.acknowledged(7, 5)
    feeder.acknowledged(1, 5)
    until(lambda: [WINDOW_ITEMS, WINDOW_ITEMS + 5] == [sent.count(stream) for stream in (0, 1)])
    feeder.stop()
    until(lambda: 2 == sent.count(-1))


class Recorder:
    """Keep which streams items are sent to, and -1 for an end."""

    def __init__(self, sent: list[int]) -> None:
        self._sent = sent

    def send_item(self, call: object, stream: int, payload: object) -> None:
        """Take note of an item."""
        self._sent.append(stream)

    def send_end(self, call: object, stream: int, failure: bytes) -> None:
        """Take note of an end."""
        self._sent.append(-1)
