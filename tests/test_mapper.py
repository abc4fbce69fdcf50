"""
What pools do with many items: maps of several iterables, of tuples, and from and for event loops.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import time
from collections.abc import AsyncIterator, Iterator

import pytest

import skyward as sky


@sky.function
def power(x: int, y: int) -> int:
    """Raise to a power."""
    return x**y


def nap(x: int) -> int:
    """Take a while."""
    time.sleep(0.05)
    return x


@pytest.fixture(scope="module")
def pool() -> Iterator[sky.Pool]:
    """One Local node of two slots."""
    with sky.Compute(concurrency=2, console="silent") as pool:
        yield pool


def test_several_iterables(pool: sky.Pool) -> None:
    """Side by side, as `map` has them; decorated functions and plain ones."""
    assert [1, 2, 9] == pool.map(power, [1, 2, 3], itertools.count())
    assert [6, 9] == pool.map(lambda x, y, z: x + y + z, [1, 2], [2, 3, 4], (3, 4))
    assert [1, 1, 2] == list(pool.map(power, [1, 1, 2], [1, 1, 1], stream=True))
    assert [2, 3] == pool.map(power, [2, 3], [1, 1], strict=True)
    with pytest.raises(ValueError, match="shorter than"):
        pool.map(power, [2, 3], [1], strict=True)
    with pytest.raises(TypeError, match="at least one iterable"):
        pool.map(power)  # type: ignore[call-overload]


def test_tuples_of_arguments(pool: sky.Pool) -> None:
    """As `itertools.starmap` has them."""
    assert [8, 9] == pool.starmap(power, [(2, 3), (3, 2)])
    assert [8] == list(pool.starmap(pow, iter([[2, 3]]), stream=True))
    kept = pool.starmap(divmod, [(1, 0), (1, 1)], return_exceptions=True)
    assert [ZeroDivisionError, tuple] == [type(one) for one in kept]


def test_arguments_are_checked_where_the_call_runs(pool: sky.Pool) -> None:
    """As many as the function takes."""
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        pool.map(power, [1])


def test_event_loops_on_both_sides(pool: sky.Pool) -> None:
    """Items come from one, results go to it, and it has its turns meanwhile."""

    async def main() -> tuple[list[int], int]:
        turns = 0

        async def other() -> None:
            nonlocal turns
            while True:
                await asyncio.sleep(0.005)
                turns += 1

        async def items() -> AsyncIterator[int]:
            for number in range(4):
                await asyncio.sleep(0)
                yield number

        task = asyncio.create_task(other())
        found = [result async for result in pool.map(nap, items(), stream=True)]
        task.cancel()
        return found, turns

    found, turns = asyncio.run(main())
    assert [0, 1, 2, 3] == found
    assert turns >= 2


def test_a_stream_that_is_left_open_does_not_keep_the_pool_open() -> None:
    """Its iterator may even block; what it was to give then is refused."""

    def endless() -> Iterator[int]:
        yield 1
        time.sleep(0.5)
        yield 2

    with sky.Compute(console="silent") as pool:
        results = pool.map(nap, endless(), stream=True)
        assert 1 == next(results)
    with pytest.raises(sky.PoolClosedError, match="closed"):
        next(results)


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_child_gets_no_results(pool: sky.Pool) -> None:
    """They come to the parent; the child is not left waiting."""
    results = pool.map(nap, iter(range(3)), stream=True)
    assert 0 == next(results)
    child = os.fork()
    if not child:
        try:
            next(results)
            next(results)
            os._exit(1)
        except sky.PoolClosedError:
            del results
            os._exit(7)
        finally:
            os._exit(2)
    assert 7 == os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert [1, 2] == list(results)
