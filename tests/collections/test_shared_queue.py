"""`sky.queue`: order, room, and what becomes of items whose holders end."""

from __future__ import annotations

import asyncio
import queue
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from skyward.collections.named_collections import Collections
from skyward.collections.queue_items import LOOK_S
from skyward.collections.store_address import StoreAddress
from skyward.errors import SerializationError, UsageError
from tests.collections.cutting_proxy import cutting
from tests.collections.holder_process import LEASE_S, holder_process, said
from tests.collections.store_server import PASSWORD, Opener, StoreServer, address_of
from tests.seeds import seeds
from tests.waiting import until

TIMEOUT_S = 20


def test_items_come_in_order(collections: Collections) -> None:
    """What was put first is taken first."""
    shared = collections.queue("q")
    for number in range(100):
        shared.put({"number": number})
    assert 100 == shared.qsize() == len(shared)
    assert [{"number": number} for number in range(100)] == [shared.get() for _ in range(100)]
    assert shared.empty()


def test_an_empty_queue_is_empty(collections: Collections) -> None:
    """A get whose time is over raises the standard library's error, after that time."""
    shared = collections.queue("q")
    with pytest.raises(queue.Empty):
        shared.get_nowait()
    started = time.monotonic()
    with pytest.raises(queue.Empty):
        shared.get(timeout=0.2)
    assert 0.2 <= time.monotonic() - started < TIMEOUT_S


def test_a_get_that_waits_is_woken(opened: Opener) -> None:
    """An item that is put wakes the getter at once, not at its next look."""
    getter, putter = opened("getter").queue("q"), opened("putter").queue("q")
    with ThreadPoolExecutor(1) as pool:
        took: list[float] = []
        for number in range(8):
            waiting = pool.submit(getter.get, TIMEOUT_S)
            time.sleep(0.05)
            started = time.monotonic()
            putter.put(number)
            assert number == waiting.result(TIMEOUT_S)
            took.append(time.monotonic() - started)
        # A machine may be slow now and then; without the word each would take nearly as long as a look is away.
        assert min(took) < LOOK_S / 2


def test_a_full_queue_makes_putters_wait(collections: Collections) -> None:
    """No more items wait than may, and a putter goes on when one is taken."""
    shared = collections.queue("q", maxsize=2)
    shared.put(1)
    shared.put(2)
    with pytest.raises(queue.Full):
        shared.put_nowait(3)
    with pytest.raises(queue.Full):
        shared.put(3, timeout=0.1)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(shared.put, 3, TIMEOUT_S)
        assert 1 == shared.get()
        waiting.result(TIMEOUT_S)
    assert [2, 3] == [shared.get(), shared.get()]


def test_room_is_not_negative(collections: Collections) -> None:
    """A negative maxsize is a mistake."""
    with pytest.raises(UsageError, match="not -1"):
        collections.queue("q", maxsize=-1)


def test_items_of_a_task_that_fails_are_delivered_again_in_front(opened: Opener) -> None:
    """What a failed task had taken comes first, in its old order."""
    failing = opened("failing")
    for number in range(5):
        failing.queue("q").put(number)
    with ThreadPoolExecutor(1) as pool:
        assert 0 == failing.queue("q").get()
        assert 1 == pool.submit(failing.queue("q").get).result(TIMEOUT_S)
    failing.finish(False)
    other = opened("other").queue("q")
    assert [0, 1, 2, 3, 4] == [other.get(timeout=1) for _ in range(5)]


def test_items_of_a_task_that_ends_well_are_acknowledged(opened: Opener) -> None:
    """They do not come again."""
    first = opened("first", lease=0.3)
    first.queue("q").put(1)
    assert 1 == first.queue("q").get()
    first.finish(True)
    with pytest.raises(queue.Empty):
        opened("other").queue("q").get(timeout=1.2)


def test_an_item_that_no_caller_received_is_not_acknowledged(store: StoreServer, opened: Opener) -> None:
    """One that was moved to a task whose connection broke meanwhile is delivered to it, or after it."""
    first = opened("first")
    first.queue("q").put("a")
    first.queue("q").put("b")
    first.queue("q").put("c")
    assert "a" == first.queue("q").get()
    client = store.client()
    mine = next(client.scan_iter("sky:queue-taken:q*"))
    client.rpoplpush("sky:queue:q", mine)
    assert "b" == first.queue("q").get()
    client.rpoplpush("sky:queue:q", mine)
    client.close()
    first.finish(True)
    assert ["c"] == [opened("other").queue("q").get(timeout=5)]


def test_the_next_item_acknowledges_the_one_before(opened: Opener) -> None:
    """Of two items of one thread, only the last is delivered again."""
    failing = opened("failing")
    shared = failing.queue("q")
    shared.put("a")
    shared.put("b")
    assert ["a", "b"] == [shared.get(), shared.get()]
    failing.finish(False)
    other = opened("other").queue("q")
    assert "b" == other.get(timeout=1)
    with pytest.raises(queue.Empty):
        other.get_nowait()


def test_an_item_that_is_waited_for_acknowledges_the_one_before(store: StoreServer, opened: Opener) -> None:
    """Also where taking and waiting are one round trip: of all items only the last is delivered again."""
    failing, putter = opened("failing"), opened("putter").queue("q")
    shared = failing.queue("q")
    with ThreadPoolExecutor(1) as pool:
        for number in range(5):
            waiting = pool.submit(shared.get, TIMEOUT_S)
            _until_waiting(store)
            putter.put(number)
            assert number == waiting.result(TIMEOUT_S)
    failing.finish(False)
    other = opened("other").queue("q")
    assert 4 == other.get(timeout=1)
    with pytest.raises(queue.Empty):
        other.get_nowait()


def test_an_item_that_is_waited_for_makes_room(store: StoreServer, opened: Opener) -> None:
    """A putter goes on at once, also for a getter that knows no maxsize."""
    getter, putter = opened("getter").queue("q"), opened("putter").queue("q", maxsize=1)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(getter.get, TIMEOUT_S)
        _until_waiting(store)
        putter.put(0)
        assert 0 == first.result(TIMEOUT_S)

    def put() -> None:
        for number in range(1, 30):
            putter.put(number, timeout=TIMEOUT_S)

    with ThreadPoolExecutor(1) as pool:
        putting = pool.submit(put)
        started = time.monotonic()
        assert list(range(1, 30)) == [getter.get(TIMEOUT_S) for _ in range(1, 30)]
        putting.result(TIMEOUT_S)
        # One that misses its wake-up waits for a second.
        assert time.monotonic() - started < 15


@pytest.mark.parametrize("seed", seeds("cut waits", 2))
def test_an_item_that_is_waited_for_over_a_bad_line_is_received_once(store: StoreServer, seed: int) -> None:
    """Wherever the connection is cut."""
    with cutting(store.path, 0.1, seed) as proxy, ThreadPoolExecutor(1) as pool:
        address = StoreAddress(proxy.path, PASSWORD, "first", "getter", "")
        getting = Collections(lambda: address, patience=30)
        putter = Collections(lambda: address_of(store, "putter"))

        def put() -> None:
            for number in range(100):
                putter.queue("q").put(number)
                time.sleep(0.002)

        shared = getting.queue("q")
        putting = pool.submit(put)
        assert list(range(100)) == sorted(shared.get(timeout=TIMEOUT_S) for _ in range(100))
        putting.result(TIMEOUT_S)
        getting.finish(True)
    assert 0 == putter.queue("q").qsize()
    putter.finish(True)


def _until_waiting(store: StoreServer) -> None:
    """Wait until a getter is blocked in the store."""
    client = store.client()
    try:
        until(lambda: client.info("clients")["blocked_clients"])
    finally:
        client.close()


def test_an_item_is_acknowledged_once(opened: Opener) -> None:
    """`done` says whether it was this item's first acknowledgement."""
    shared = opened("one").queue("q")
    assert not shared.done()
    shared.put(1)
    shared.get()
    assert shared.done()
    assert not shared.done()


def test_items_of_a_killed_process_are_delivered_again(store: StoreServer, collections: Collections) -> None:
    """A getter that waits has them when the lease of the dead one is over, and not before."""
    shared = collections.queue("q")
    shared.put("first")
    shared.put("second")
    with holder_process(store, "dying", "say(collections.queue('q').get())\ntime.sleep(60)") as process:
        assert "first" == said(process)
        assert "second" == shared.get()
        with pytest.raises(queue.Empty):
            # It lives, and renews its lease.
            shared.get(timeout=3 * LEASE_S)
        process.send_signal(signal.SIGKILL)
        assert "first" == shared.get(timeout=TIMEOUT_S)


def test_a_cancelled_get_takes_nothing(opened: Opener) -> None:
    """Whenever a coroutine is cancelled, each item is received by one that was not, or is still there."""
    collections = opened("one")
    other = opened("other").queue("q")

    async def work() -> list[int]:
        shared = collections.queue("q")
        received: list[int] = []
        for number in range(30):
            getting = asyncio.ensure_future(shared.get_async())
            await asyncio.sleep(0.002 * (number % 5))
            await shared.put_async(number)
            getting.cancel()
            try:
                received.append(await getting)
            except asyncio.CancelledError:
                continue
        return received

    received = asyncio.run(work())
    left = []
    while not other.empty():
        left.append(other.get())
    assert list(range(30)) == sorted([*received, *left])


def test_more_coroutines_wait_than_an_event_loop_has_threads(collections: Collections) -> None:
    """A hundred getters wait at once, and a putter gets through."""

    async def work() -> None:
        shared = collections.queue("q")
        getting = [asyncio.ensure_future(shared.get_async(timeout=TIMEOUT_S)) for _ in range(100)]
        await asyncio.sleep(0)
        for number in range(100):
            await shared.put_async(number)
        assert list(range(100)) == sorted(await asyncio.gather(*getting))
        with pytest.raises(queue.Empty):
            await shared.get_nowait_async()
        await shared.put_nowait_async(1)
        assert 1 == await shared.len_async() == await shared.qsize_async()
        await shared.clear_async()
        assert await shared.empty_async()
        await shared.done_async()

    asyncio.run(work())


def test_each_item_is_taken_once_by_processes_that_live(store: StoreServer, collections: Collections) -> None:
    """Several workers share the items of a queue."""
    code = """
import queue
taken = []
try:
    while True:
        taken.append(collections.queue("q").get(timeout=2))
except queue.Empty:
    pass
collections.finish(True)
say(" ".join(map(str, taken)))
"""
    shared = collections.queue("q")
    for number in range(400):
        shared.put(number)
    with ExitStack() as stack:
        workers = [stack.enter_context(holder_process(store, f"w{number}", code)) for number in range(3)]
        assert list(range(400)) == sorted(int(word) for worker in workers for word in said(worker).split())


def test_an_item_that_cannot_be_pickled_is_named(collections: Collections) -> None:
    """The error names the queue, and nothing is put."""
    shared = collections.queue("jobs")
    with pytest.raises(SerializationError, match="item of queue 'jobs'"):
        shared.put(threading.Lock())
    assert shared.empty()
