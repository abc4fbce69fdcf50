"""
A pool as an executor: what the standard library promises of its own, kept by calls that run on nodes.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import gc
import itertools
import os
import threading
import time
import weakref
from collections.abc import Iterator
from concurrent.futures import ALL_COMPLETED, FIRST_COMPLETED, FIRST_EXCEPTION, BrokenExecutor, CancelledError, Executor
from pathlib import Path
from typing import Any

import pytest

import skyward as sky
from skyward.executor import PoolExecutor
from tests.waiting import until

SLOTS = 3


@pytest.fixture(scope="module")
def pool() -> Iterator[sky.Pool]:
    """One Local node of three slots."""
    with sky.Compute(nodes=1, concurrency=SLOTS, console="silent") as pool:
        yield pool


@pytest.fixture
def executor(pool: sky.Pool) -> Iterator[PoolExecutor]:
    """An executor that is shut down in the end."""
    with pool.executor() as executor:
        yield executor


def add(x: int, y: int = 1) -> int:
    """Add."""
    return x + y


def inverse(x: int) -> float:
    """Fail for 0."""
    return 1 / x


def captured(*args: object, **kwargs: object) -> tuple[object, ...]:
    """Give the arguments."""
    return args, kwargs


def count() -> Iterator[int]:
    """Give a stream."""
    yield from range(3)


def hold(path: str, name: str = "") -> str:
    """Say that it has begun, and wait for a file; the node is this machine."""
    Path(path, f"began {name}").touch()
    while not Path(path, "go").exists():
        time.sleep(0.005)
    return name


class Held:
    """Calls that run until they are let go."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)

    def began(self) -> int:
        """Count those that run or have run."""
        return sum(name.startswith("began") for name in os.listdir(self.path))

    def go(self) -> None:
        """Let them end."""
        Path(self.path, "go").touch()


@pytest.fixture
def held(tmp_path: Path) -> Iterator[Held]:
    """Calls that end with the test at the latest."""
    held = Held(tmp_path)
    yield held
    held.go()


# Submitting.


def test_a_call_gives_its_result(executor: PoolExecutor) -> None:
    """With arguments of any name, of plain and decorated functions, builtins and generator functions."""
    assert isinstance(executor, Executor)
    assert 8 == executor.submit(pow, 2, 3).result()
    assert 3 == executor.submit(sky.function(add), 1, y=2).result(timeout=30)
    assert ((1,), {"self": 2, "fn": 3}) == executor.submit(captured, 1, self=2, fn=3).result()
    assert [0, 1, 2] == list(executor.submit(count).result())  # type: ignore[call-overload]
    with pytest.raises(TypeError):
        executor.submit(fn=captured)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        executor.submit()  # type: ignore[call-arg]


def test_a_failure_is_the_future_s(executor: PoolExecutor) -> None:
    """As itself; a call with wrong arguments fails where it runs."""
    failed = executor.submit(inverse, 0)
    with pytest.raises(ZeroDivisionError):
        failed.result()
    assert isinstance(failed.exception(), ZeroDivisionError)
    assert isinstance(executor.submit(add).exception(), TypeError)
    with pytest.raises(sky.SerializationError, match="lock"):
        executor.submit(add, threading.Lock())  # type: ignore[arg-type]


def test_callbacks_run_with_the_result_and_outside_of_the_engine(executor: PoolExecutor, held: Held) -> None:
    """In a thread of their own, so that one may submit; a future that is done already runs its callback at once."""
    seen: list[Any] = []

    def note(future: concurrent.futures.Future[int]) -> None:
        seen.append((future.result(), threading.current_thread().name))

    def submit(future: concurrent.futures.Future[str]) -> None:
        executor.submit(add, 40, 2).add_done_callback(note)

    first = executor.submit(hold, held.path, "first")
    first.add_done_callback(submit)
    held.go()
    until(lambda: seen)
    assert [(42, "skyward-executor")] == seen


def test_a_future_tells_what_became_of_its_call(executor: PoolExecutor, held: Held) -> None:
    """It is pending until the call is on a node, running there, and done; what runs is not cancelled."""
    running = [executor.submit(hold, held.path, str(number)) for number in range(SLOTS)]
    until(lambda: held.began() == SLOTS)
    pending = executor.submit(hold, held.path, "pending")
    assert [(True, False)] * SLOTS == [(one.running(), one.done()) for one in running]
    assert not any(one.cancel() for one in running)
    with pytest.raises(concurrent.futures.TimeoutError):
        running[0].result(timeout=0.01)
    assert (False, False) == (pending.running(), pending.done())
    assert pending.cancel()
    assert pending.cancel()
    assert (True, True, False) == (pending.cancelled(), pending.done(), pending.running())
    with pytest.raises(CancelledError):
        pending.result()
    held.go()
    assert ["0", "1", "2"] == [one.result() for one in running]
    assert [(False, True, False)] * SLOTS == [(one.running(), one.done(), one.cancel()) for one in running]


# Waiting for several.


def test_the_first_of_several_that_ends(executor: PoolExecutor, held: Held) -> None:
    """The others go on."""
    slow, quick = executor.submit(hold, held.path), executor.submit(add, 1)
    done, rest = concurrent.futures.wait([slow, quick], return_when=FIRST_COMPLETED)
    assert ({quick}, {slow}) == (done, rest)


def test_the_first_of_several_that_fails(executor: PoolExecutor, held: Held) -> None:
    """Or none, if all end well."""
    slow, failing = executor.submit(hold, held.path), executor.submit(inverse, 0)
    done, rest = concurrent.futures.wait([slow, failing], return_when=FIRST_EXCEPTION)
    assert failing in done
    assert {slow} == rest
    held.go()
    assert set() == concurrent.futures.wait([slow], return_when=FIRST_EXCEPTION).not_done


def test_all_of_several(executor: PoolExecutor, held: Held) -> None:
    """Also those that failed or were cancelled, before and while they are waited for."""
    running = [executor.submit(hold, held.path, str(number)) for number in range(SLOTS)]
    until(lambda: held.began() == SLOTS)
    before, meanwhile = executor.submit(add, 1), executor.submit(add, 2)
    failing = executor.submit(inverse, 0)
    assert before.cancel()
    threading.Timer(0.02, lambda: (meanwhile.cancel(), held.go())).start()
    every = [*running, before, meanwhile, failing]
    done, rest = concurrent.futures.wait(every, timeout=30, return_when=ALL_COMPLETED)
    assert (set(every), set()) == (done, rest)


def test_several_as_they_end(executor: PoolExecutor, held: Held) -> None:
    """Each once, also one that is listed twice or was cancelled; a timeout names how many are left."""
    slow, quick = executor.submit(hold, held.path), executor.submit(add, 1)
    with pytest.raises(concurrent.futures.TimeoutError, match=r"1 \(of 2\) futures unfinished"):
        list(concurrent.futures.as_completed([slow, quick, quick], timeout=0.3))
    held.go()
    assert {slow, quick} == set(concurrent.futures.as_completed([slow, quick], timeout=30))


# Maps.


def test_a_map_gives_results_in_order(executor: PoolExecutor) -> None:
    """Of several iterables, whatever the size of chunks."""
    assert list(map(pow, range(10), range(10))) == list(executor.map(pow, range(10), range(10)))
    assert list(map(pow, range(10), range(10))) == list(executor.map(pow, range(10), range(10), chunksize=3))
    assert [] == list(executor.map(add, []))
    with pytest.raises(ValueError, match="chunksize must be >= 1"):
        executor.map(add, [1], chunksize=0)


def test_a_map_raises_where_a_call_failed(executor: PoolExecutor) -> None:
    """After the results before it."""
    results = executor.map(divmod, [1, 1, 1, 1], [2, 3, 0, 5])
    assert [(0, 1), (0, 1)] == [next(results), next(results)]
    with pytest.raises(ZeroDivisionError):
        next(results)


def test_a_map_has_a_timeout_for_all_of_it(executor: PoolExecutor, held: Held) -> None:
    """Results that came before are given."""
    results = executor.map(lambda one: one if isinstance(one, int) else hold(one), [1, 2, held.path], timeout=5)
    assert [1, 2] == [next(results), next(results)]
    again = executor.map(hold, [held.path], timeout=0.01)
    with pytest.raises(concurrent.futures.TimeoutError):
        next(again)


def test_calls_of_a_map_are_sent_without_being_asked_for(executor: PoolExecutor, tmp_path: Path) -> None:
    """Shutting down waits for them."""
    executor.map(lambda number: Path(tmp_path, str(number)).touch(), range(10))
    executor.shutdown()
    assert 10 == len(os.listdir(tmp_path))


def test_a_buffer_bounds_what_a_map_pulls(executor: PoolExecutor) -> None:
    """An endless iterable needs one; it is pulled one by one as results are taken."""
    numbers = itertools.count()
    results = executor.map(str, numbers, buffersize=2)
    assert ["0", "1", "2"] == [next(results) for _ in range(3)]
    assert 5 == next(numbers)
    # One that is let go of holds back nothing.
    del results
    numbers = itertools.count()
    executor.map(str, numbers, buffersize=4)
    executor.shutdown()
    assert 4 == next(numbers)


@pytest.mark.parametrize(("size", "error"), [("2", TypeError), (1.5, TypeError), (0, ValueError), (-1, ValueError)])
def test_a_buffer_has_a_size(executor: PoolExecutor, size: Any, error: type[Exception]) -> None:
    """A whole number from 1."""
    with pytest.raises(error, match="buffersize must be"):
        executor.map(str, [1], buffersize=size)


def test_leaving_a_map_cancels_what_has_not_begun(executor: PoolExecutor, held: Held) -> None:
    """What runs goes on."""
    held_at = held.path
    # The first one takes so long that those behind it wait at the client, and not at the node.
    results = executor.map(lambda name: hold(held_at, name) if name else time.sleep(0.5), ["", *map(str, range(20))])
    assert next(results) is None
    until(lambda: held.began() == SLOTS)
    results.close()  # type: ignore[attr-defined]  # a generator, as the standard library's
    assert 0 == pool_queued(executor)
    held.go()
    executor.shutdown()
    assert SLOTS == held.began()


def pool_queued(executor: PoolExecutor) -> int:
    """Count the calls that wait for a slot, once they were cancelled."""
    running = executor._running
    until(lambda: not running.dispatch.queued)
    return int(running.dispatch.queued)


class Thing:
    """Have something that can be referred to weakly."""


def make(_: object) -> Thing:
    """Make a thing."""
    return Thing()


def test_results_are_not_kept(executor: PoolExecutor) -> None:
    """By a map, once they were given, nor by anything else."""
    for thing in executor.map(make, range(5)):
        reference = weakref.ref(thing)
        del thing
        until(lambda reference=reference: gc.collect() is not None and reference() is None)  # type: ignore[misc]


# Its end.


def test_nothing_is_submitted_after_a_shutdown(pool: sky.Pool) -> None:
    """The pool stays open, and so do other executors of it."""
    executor, other = pool.executor(), pool.executor()
    executor.shutdown()
    executor.shutdown()
    with pytest.raises(RuntimeError, match="cannot schedule new futures after shutdown"):
        executor.submit(add, 1)
    with pytest.raises(RuntimeError, match="after shutdown"):
        list(executor.map(add, [1]))
    assert 2 == other.submit(add, 1).result()
    assert 2 == pool.run(sky.function(add)(1))
    other.shutdown()


def test_a_shutdown_waits_for_what_was_submitted(pool: sky.Pool) -> None:
    """Leaving its block is one; its thread ends with it."""
    with pool.executor() as executor:
        futures = [executor.submit(add, number) for number in range(50)]
    assert list(range(1, 51)) == [one.result(timeout=0) for one in futures]
    assert not any(thread.name == "skyward-executor" for thread in threading.enumerate())


def test_a_shutdown_need_not_wait(pool: sky.Pool, held: Held) -> None:
    """What was submitted ends all the same."""
    executor = pool.executor()
    future = executor.submit(hold, held.path, "end")
    executor.shutdown(wait=False)
    assert not future.done()
    held.go()
    assert "end" == future.result(timeout=30)
    until(lambda: not any(thread.name == "skyward-executor" for thread in threading.enumerate()))


def test_a_shutdown_cancels_what_has_not_begun(pool: sky.Pool, held: Held) -> None:
    """Those for which there were slots end well, although it comes right after them."""
    executor = pool.executor()
    futures = [executor.submit(hold, held.path, str(number)) for number in range(50)]
    executor.shutdown(wait=False, cancel_futures=True)
    held.go()
    executor.shutdown()
    cancelled = [one for one in futures if one.cancelled()]
    assert all(one.done() for one in futures)
    assert len(cancelled) >= 50 - 2 * SLOTS
    ended = [one for one in futures if not one.cancelled()]
    assert len(ended) >= SLOTS
    assert [None] * len(ended) == [one.exception() for one in ended]


def test_one_that_is_forgotten_lets_its_calls_end(pool: sky.Pool) -> None:
    """And then its thread."""
    future = pool.executor().submit(add, 1)
    gc.collect()
    assert 2 == future.result(timeout=30)
    until(lambda: not any(thread.name == "skyward-executor" for thread in threading.enumerate()))


def test_an_executor_of_a_closed_pool_is_broken(held: Held) -> None:
    """Its open futures have the pool's own error, or were cancelled if the pool was left by one."""
    with sky.Compute(console="silent") as pool:
        executor = pool.executor()
        assert 2 == executor.submit(add, 1).result()
    with pytest.raises(BrokenExecutor, match="is closed"):
        executor.submit(add, 1)
    executor.shutdown()
    futures = left_by_an_error(held)
    assert [] == [one for one in futures if not (one.cancelled() or isinstance(one.exception(), sky.PoolClosedError))]


def left_by_an_error(held: Held) -> list[concurrent.futures.Future[str]]:
    """Give futures of a pool that was left so."""
    futures = []
    with contextlib.suppress(KeyError), sky.Compute(console="silent") as pool:
        executor = pool.executor()
        futures = [executor.submit(hold, held.path, str(number)) for number in range(5)]
        raise KeyError
    executor.shutdown()
    return futures


# With others.


def test_event_loops_run_in_it(executor: PoolExecutor) -> None:
    """As in any executor; awaited futures of a call that failed raise."""

    async def main() -> list[int]:
        loop = asyncio.get_running_loop()
        with pytest.raises(ZeroDivisionError):
            await loop.run_in_executor(executor, inverse, 0)
        return await asyncio.gather(*(loop.run_in_executor(executor, add, number) for number in range(10)))

    assert list(range(1, 11)) == asyncio.run(main())


def test_several_threads_submit(executor: PoolExecutor) -> None:
    """At once, each its own."""
    with concurrent.futures.ThreadPoolExecutor(4) as threads:
        futures = list(threads.map(lambda number: executor.submit(add, number), range(100)))
    assert list(range(1, 101)) == [one.result() for one in futures]
