"""`sky.lock`: exclusion, ownership, expiry and tokens."""

from __future__ import annotations

import asyncio
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from skyward.collections.named_collections import Collections
from skyward.errors import LockNotOwnedError, LockTimeoutError, UsageError
from tests.collections.holder_process import LEASE_S, holder_process, said
from tests.collections.store_server import Opener, StoreServer

TIMEOUT_S = 20


def test_one_holder_at_a_time(opened: Opener) -> None:
    """While one has it, another cannot have it, and waits no longer than it may."""
    one, other = opened("one").lock("l"), opened("other").lock("l", timeout=0.2)
    with one:
        assert not other.acquire(blocking=False)
        with pytest.raises(LockTimeoutError, match=r"lock 'l' was not free within 0.2 s") as caught:
            other.acquire()
        assert 0.2 == caught.value.timeout
        assert isinstance(caught.value, TimeoutError)
    assert other.acquire()
    other.release()


def test_a_release_wakes_the_next(opened: Opener) -> None:
    """Who waits goes on at once."""
    one, other = opened("one").lock("l"), opened("other").lock("l")
    one.acquire()
    with ThreadPoolExecutor(1) as pool:

        def next_one() -> float:
            with other:
                return time.monotonic()

        waiting = pool.submit(next_one)
        time.sleep(0.1)
        released = time.monotonic()
        one.release()
        assert waiting.result(TIMEOUT_S) - released < 0.5


def test_processes_exclude_each_other(store: StoreServer, collections: Collections) -> None:
    """What is read, changed and written under the lock loses no change."""
    code = """
for _ in range(100):
    with collections.lock("l"):
        shared = collections.dict("d")
        shared["n"] = shared.get("n", 0) + 1
say("done")
"""
    with ExitStack() as stack:
        found = [stack.enter_context(holder_process(store, f"p{number}", code)) for number in range(3)]
        assert ["done"] * 3 == [said(process) for process in found]
    assert 300 == collections.dict("d")["n"]


def test_threads_of_one_process_exclude_each_other(collections: Collections) -> None:
    """The lock is a thread's, not a process's."""
    total = 0

    def add(_: int) -> None:
        nonlocal total
        with collections.lock("l"):
            before = total
            time.sleep(0.001)
            total = before + 1

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(add, range(40)))
    assert 40 == total


def test_a_second_acquisition_is_refused(collections: Collections) -> None:
    """It would wait for itself."""
    with collections.lock("l"), pytest.raises(UsageError, match=r"held already .* not reentrant"):
        collections.lock("l").acquire()


def test_only_its_holder_releases_it(opened: Opener) -> None:
    """Neither another thread, nor another process, nor one that has released it."""
    one, other = opened("one").lock("l"), opened("other").lock("l")
    one.acquire()
    with pytest.raises(LockNotOwnedError, match="is not held by this thread"):
        other.release()
    with ThreadPoolExecutor(1) as pool, pytest.raises(LockNotOwnedError, match="is not held by this thread"):
        pool.submit(one.release).result()
    one.release()
    with pytest.raises(LockNotOwnedError, match="is not held by this thread"):
        one.release()


def test_tokens_grow(opened: Opener) -> None:
    """Each acquisition has a higher number than all before."""
    tokens: list[int] = []
    for number in range(5):
        with opened(f"holder {number}").lock("l") as lock:
            assert lock.token is not None
            tokens.append(lock.token)
    assert tokens == sorted(set(tokens))
    assert opened("one").lock("l").token is None


def test_a_killed_holder_does_not_keep_it(store: StoreServer, opened: Opener) -> None:
    """It is free when the lease is over, and not before."""
    lock = opened("living").lock("l")
    with holder_process(store, "dying", "collections.lock('l').acquire()\nsay('got it')\ntime.sleep(60)") as process:
        assert "got it" == said(process)
        with pytest.raises(LockTimeoutError):
            lock.acquire(timeout=3 * LEASE_S)
        process.send_signal(signal.SIGKILL)
        assert lock.acquire(timeout=TIMEOUT_S)
        assert lock.token == 2
        lock.release()


def test_a_holder_that_was_stopped_learns_that_it_lost_it(store: StoreServer, opened: Opener) -> None:
    """Its release is an error, and the token is what tells it from the next holder."""
    code = """
from skyward.errors import LockNotOwnedError
lock = collections.lock('l')
lock.acquire()
say(lock.token)
started = time.monotonic()
while time.monotonic() - started < 0.1 or not collections.dict("go").get("on"): time.sleep(0.02)
try:
    lock.release()
except LockNotOwnedError as error:
    say("expired" in str(error))
"""
    with holder_process(store, "stopped", code) as process:
        assert "1" == said(process)
        process.send_signal(signal.SIGSTOP)
        with opened("next").lock("l", timeout=TIMEOUT_S) as lock:
            assert 2 == lock.token
            process.send_signal(signal.SIGCONT)
            opened("third").dict("go")["on"] = True
            assert "True" == said(process)


def test_a_task_that_ends_keeps_no_lock(opened: Opener) -> None:
    """What it forgot to release is free."""
    forgetful = opened("forgetful")
    forgetful.lock("l").acquire()
    forgetful.finish(True)
    assert opened("next").lock("l").acquire(blocking=False)


def test_coroutines_use_the_twins(collections: Collections) -> None:
    """A lock is a coroutine's, also where several share a thread."""

    async def work() -> None:
        inside = 0

        async def one() -> None:
            nonlocal inside
            async with collections.lock("l"):
                inside += 1
                assert 1 == inside
                await asyncio.sleep(0.001)
                inside -= 1

        await asyncio.gather(*(one() for _ in range(10)))
        lock = collections.lock("l")
        assert await lock.acquire_async()
        waiting = asyncio.ensure_future(collections.lock("l").acquire_async())
        await asyncio.sleep(0.05)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await lock.release_async()
        assert await lock.acquire_async(blocking=False)
        await lock.release_async()

    asyncio.run(work())
