"""What each operator gives, and what it does when a call fails."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import itertools
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import skyward as sky


@sky.function
def double(x: int) -> int:
    return 2 * x


@sky.function
def fail(x: int) -> int:
    raise KeyError(x)


@sky.function
def wait(seconds: float) -> float:
    time.sleep(seconds)
    return seconds


@sky.function
def place() -> int:
    return sky.instance_info().node


@sky.function
def count(n: int) -> Iterator[int]:
    yield from range(n)


@sky.function
def total(numbers: Iterator[int]) -> int:
    return sum(numbers)


@sky.function
def total_by_text(numbers: Iterator[int]) -> int:
    return sum(numbers)


@sky.function
async def later(x: int) -> int:
    await asyncio.sleep(0.001)
    return x + 1


@sky.function
async def letters() -> Any:
    for letter in "abc":
        yield letter


def test_run_gives_the_value(pool: sky.Pool) -> None:
    """`p >> pool` is the result."""
    assert double(4) >> pool == 8


def test_calls_go_round_robin(pool: sky.Pool) -> None:
    """Free nodes take turns."""
    assert {place() >> pool for _ in range(4)} == {0, 1}


def test_broadcast_gives_one_result_a_rank_in_order(pool: sky.Pool) -> None:
    """`p @ pool` reaches every node."""
    assert place() @ pool == [0, 1]


def test_broadcast_raises_the_failure_as_itself(pool: sky.Pool) -> None:
    """The first failure in time is raised."""
    with pytest.raises(KeyError, match="3"):
        fail(3) @ pool


def test_broadcast_can_keep_failures(pool: sky.Pool) -> None:
    """What is raised takes its place among the results."""
    assert [type(error) for error in pool.broadcast(fail(1), return_exceptions=True)] == [KeyError, KeyError]


def test_future_gives_the_value_later(pool: sky.Pool) -> None:
    """`p > pool` does not wait."""
    future = double(4) > pool
    assert isinstance(future, concurrent.futures.Future)
    assert future.result(timeout=10) == 8
    assert concurrent.futures.wait([double(1) > pool, fail(1) > pool], timeout=10).not_done == set()


def test_future_carries_the_failure(pool: sky.Pool) -> None:
    """`result` raises it and `exception` gives it."""
    future = fail(1) > pool
    assert isinstance(future.exception(timeout=10), KeyError)
    with pytest.raises(KeyError):
        future.result()


def test_future_can_be_awaited(pool: sky.Pool) -> None:
    """In any event loop."""

    async def main() -> list[int]:
        return await asyncio.gather(*(double(i) > pool for i in range(4)))

    assert asyncio.run(main()) == [0, 2, 4, 6]


def test_cancelled_future_frees_its_slot(pool: sky.Pool) -> None:
    """A sleeping call is interrupted, not waited for."""
    futures = [wait(60) > pool for _ in range(2)]
    assert (double(1) > pool).cancel()
    assert all(future.cancel() for future in futures)
    began = time.monotonic()
    assert double(1) @ pool == [2, 2]
    assert time.monotonic() - began < 30


def test_group_gives_a_tuple_in_input_order(pool: sky.Pool) -> None:
    """`&` and `gather` mean the same."""
    assert (double(1) & later(1) & double(3)) >> pool == (2, 2, 6)
    assert sky.gather(*(double(i) for i in range(20))) >> pool == tuple(range(0, 40, 2))


def test_first_failure_in_input_order_is_raised_and_the_rest_stopped(pool: sky.Pool) -> None:
    """What was done until then is in `sky.partial`."""
    began = time.monotonic()
    with pytest.raises(KeyError, match="7") as caught:
        sky.gather(double(1), fail(7), wait(60)) >> pool
    assert time.monotonic() - began < 30
    done = sky.partial(caught.value)
    assert done[0] == 2
    assert isinstance(done[1], KeyError)


def test_group_can_keep_failures(pool: sky.Pool) -> None:
    """`return_exceptions=True` puts them in their places."""
    first, second = sky.gather(double(1), fail(2), return_exceptions=True) >> pool
    assert first == 2
    assert isinstance(second, KeyError)


def test_streamed_group_gives_results_as_they_come(pool: sky.Pool) -> None:
    """In order of the calls, or of their ends."""
    calls = [wait(0.3), wait(0.0)]
    assert list(sky.gather(*calls, stream=True) >> pool) == [0.3, 0.0]
    assert list(sky.gather(*calls, stream=True, ordered=False) >> pool) == [0.0, 0.3]


def test_map_gives_results_in_input_order(pool: sky.Pool) -> None:
    """Plain functions are taken too."""
    assert pool.map(double, range(500)) == list(range(0, 1000, 2))
    assert pool.map(lambda x: x + 1, [1, 2]) == [2, 3]
    assert pool.map(double, []) == []


def test_map_takes_from_an_endless_iterator_only_what_it_needs(pool: sky.Pool) -> None:
    """It is never more than a window ahead."""
    taken = itertools.count()
    numbers = (next(taken) for _ in itertools.repeat(None))
    results = pool.map(double, numbers, stream=True)
    assert list(itertools.islice(results, 10)) == list(range(0, 20, 2))
    results.close()  # type: ignore[attr-defined]
    assert next(taken) < 3000


def test_map_raises_the_first_failure_in_input_order(pool: sky.Pool) -> None:
    """And remembers what was done."""

    def odd(x: int) -> int:
        if x % 2:
            return x
        raise ValueError(x)

    with pytest.raises(ValueError, match="2") as caught:
        pool.map(odd, [1, 2, 3, 4])
    assert sky.partial(caught.value)[0] == 1
    kept = pool.map(odd, [1, 2], return_exceptions=True)
    assert kept[0] == 1
    assert isinstance(kept[1], ValueError)


def test_generator_streams(pool: sky.Pool) -> None:
    """Items come one by one, also of async generators and in broadcasts."""
    assert list(count(1000) >> pool) == list(range(1000))
    assert list(letters() >> pool) == ["a", "b", "c"]
    assert [list(stream) for stream in count(3) @ pool] == [[0, 1, 2]] * 2
    assert list((count(3) > pool).result()) == [0, 1, 2]


def test_leaving_the_loop_ends_the_generator(pool: sky.Pool, tmp_path: Path) -> None:
    """Its `finally` runs, and its slot is free."""

    @sky.function
    def endless(mark: str) -> Iterator[int]:
        try:
            yield from itertools.count()
        finally:
            Path(mark).touch()

    for item in endless(str(tmp_path / "left")) >> pool:
        if item == 30:
            break
    assert double(1) @ pool == [2, 2]
    assert (tmp_path / "left").exists()


def test_generator_that_raises_gives_its_items_first(pool: sky.Pool) -> None:
    """Then the exception, as itself."""

    @sky.function
    def broken() -> Iterator[int]:
        yield 1
        raise LookupError("no more")

    stream = broken() >> pool
    assert next(stream) == 1
    with pytest.raises(LookupError, match="no more"):
        next(stream)


def test_iterator_parameter_streams_in(pool: sky.Pool) -> None:
    """Also where annotations are text."""
    assert total(iter(range(5000))) >> pool == sum(range(5000))
    assert total_by_text(iter(range(10))) >> pool == 45


def test_iterator_that_raises_raises_in_the_function(pool: sky.Pool) -> None:
    """And through it here."""

    def broken() -> Iterator[int]:
        yield 1
        raise OSError("disk gone")

    with pytest.raises(OSError, match="disk gone"):
        total(broken()) >> pool


def test_placement_targets(pool: sky.Pool) -> None:
    """The head, or a node by its index."""
    assert pool.run(place(), target="head") == 0
    assert pool.run(place(), target=1) == 1
    with pytest.raises(sky.ConfigError, match='target must be "head" or a node from 0 to 1, not 2'):
        pool.run(place(), target=2)


def test_sky_means_the_innermost_pool(pool: sky.Pool) -> None:
    """Also in asyncio tasks and copied contexts, and nowhere in a plain new thread."""
    with sky.Compute(console="silent") as inner:
        assert place() @ sky == [0]

        async def main() -> list[int]:
            return await asyncio.gather(asyncio.ensure_future(_two()))

        async def _two() -> int:
            return double(1) >> sky

        assert asyncio.run(main()) == [2]
        assert contextvars.copy_context().run(lambda: place() @ sky) == [0]
        errors: list[BaseException] = []

        def alone() -> None:
            try:
                double(1) >> sky
            except BaseException as error:
                errors.append(error)
            errors.append(RuntimeError(str(double(2) >> inner)))

        thread = threading.Thread(target=alone)
        thread.start()
        thread.join()
        assert isinstance(errors[0], sky.NoPoolError)
        assert str(errors[1]) == "4"


def test_many_threads_use_one_pool(pool: sky.Pool) -> None:
    """Each gets its own answers."""
    with concurrent.futures.ThreadPoolExecutor(8) as threads:
        assert list(threads.map(lambda i: double(i) >> pool, range(200))) == list(range(0, 400, 2))


@pytest.mark.slow
def test_pools_side_by_side() -> None:
    """MultiPool opens both, and neither stays if one fails."""
    with sky.MultiPool(sky.Compute(console="silent"), sky.Compute(nodes=2, console="silent")) as (one, two):
        assert (place() @ one, place() @ two) == ([0], [0, 1])
    good = sky.Compute(console="silent")
    bad = sky.Compute(console="silent", plugins=[sky.Plugin.create("bad").with_validate(_refuse)])
    with pytest.raises(sky.ConfigError, match="not like this"), sky.MultiPool(good, bad):
        raise AssertionError
    assert not good.is_active


def _refuse(cluster: object) -> None:
    raise sky.ConfigError("not like this")


@pytest.mark.slow
def test_decorated_callers_have_a_pool() -> None:
    """Synchronous and asynchronous ones."""

    @sky.pool(console="silent")
    def main() -> int:
        return double(4) >> sky

    @sky.pool(console="silent")
    async def main_async() -> int:
        return await (double(5) > sky)

    assert main() == 8
    assert asyncio.run(main_async()) == 10


@pytest.mark.slow
def test_pool_works_in_async_with() -> None:
    """The loop is not blocked while the nodes come up."""

    async def main() -> int:
        async with sky.Compute(console="silent") as pool:
            return await (double(3) > pool)

    assert asyncio.run(main()) == 6


@pytest.mark.slow
def test_leaving_waits_for_futures_but_not_for_unread_streams() -> None:
    """A stream that no thread reads could never end."""
    with sky.Compute(console="silent") as pool:
        stream = count(10**9) >> pool
        assert next(stream) == 0
        future = wait(0.1) > pool
    assert future.result() == 0.1


@pytest.mark.slow
def test_resize_changes_the_number_of_nodes(pool: sky.Pool) -> None:
    """Up and down, while the pool is open."""
    with sky.Compute(nodes=1, console="silent") as growing:
        growing.resize(3)
        _until(lambda: growing.current_nodes() == 3)
        assert place() @ growing == [0, 1, 2]
        growing.resize(1)
        _until(lambda: growing.current_nodes() == 1)


@sky.function
def wait_for(path: str) -> int:
    while not Path(path).exists():
        time.sleep(0.01)
    return sky.instance_info().node


@pytest.mark.slow
def test_elastic_pool_grows_under_load_and_shrinks_when_idle(tmp_path: Path) -> None:
    """Between its bounds, by what waits."""
    gate = tmp_path / "gate"
    with sky.Compute(
        nodes=(1, 2), console="silent", autoscale_cooldown=0.0, autoscale_idle_timeout=0.1, reconcile_tick_interval=0.05
    ) as pool:
        futures = [wait_for(str(gate)) > pool for _ in range(12)]
        _until(lambda: pool.current_nodes() == 2)
        gate.touch()
        assert {future.result() for future in futures} <= {0, 1}
        _until(lambda: pool.current_nodes() == 1)


def _until(condition: Any) -> None:
    """Wait for a condition, no longer than 20 seconds."""
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.slow
def test_call_with_more_large_arguments_than_a_frame_has_descriptors() -> None:
    """Also when they are known already."""
    import numpy as np

    arrays = [np.full(1 << 17, number, dtype=np.float64) for number in range(70)]
    total = sky.function(lambda *arrays: sum(float(array[0]) for array in arrays))
    with sky.Compute(console="silent") as pool:
        for _ in range(3):
            assert total(*arrays) >> pool == sum(range(70))
