"""Streams, in both directions: what comes out of a generator function, what goes into an iterator parameter."""

from __future__ import annotations

import contextlib
import itertools
import os
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import skyward as sky
from skyward.engine.calls import mapping
from skyward.engine.calls.result_overflow import Overflow
from skyward.engine.source.environment import cache_directory
from skyward.node.worker.streams import WINDOW_BYTES, WINDOW_ITEMS
from skyward.plan.pool.map_flow import Bounds

AHEAD = 2 * WINDOW_ITEMS
"""How far a sender may be ahead of what its consumer asked for: the window, and what is made but not yet sent."""


@sky.function
def count(n: int) -> Iterator[int]:
    yield from range(n)


@sky.function
def total(numbers: Iterator[int]) -> int:
    return sum(numbers)


@sky.function
def first_of(numbers: Iterator[int], n: int) -> list[int]:
    return list(itertools.islice(numbers, n))


@sky.function
def doubled(numbers: Iterator[int]) -> Iterator[int]:
    for number in numbers:
        yield 2 * number


@sky.function
def logged(log: str, size: int = 0) -> Iterator[bytes]:
    """Give items for ever; a file grows by a byte with each."""
    try:
        with open(log, "ab", buffering=0) as file:
            while True:
                file.write(b"x")
                yield bytes(size)
    finally:
        Path(log + ".left").touch()


@sky.function
def when(gate: str, value: str) -> str:
    """Give a value once a file is there."""
    deadline = time.monotonic() + 30
    while not Path(gate).exists():
        assert time.monotonic() < deadline
        time.sleep(0.005)
    return value


@sky.function
def ok() -> str:
    return "ok"


@pytest.fixture(autouse=True)
def _goes_on(pool: sky.Pool) -> Iterator[None]:
    """
    Whatever became of a stream: both slots are free afterwards, and work.

    Before, both workers import this module, so that no timeout is spent on that.
    """
    assert ok() @ pool == ["ok", "ok"]
    yield
    assert ok() @ pool == ["ok", "ok"]


# Out of a node.


@pytest.mark.parametrize("n", [0, 1, WINDOW_ITEMS, WINDOW_ITEMS + 1, 2000])
def test_items_come_in_order_and_all_of_them(pool: sky.Pool, n: int) -> None:
    """Also where there is none, and where the window is just full."""
    stream = count(n) >> pool
    assert list(stream) == list(range(n))
    assert next(stream, "over") == "over"


def test_large_items_keep_their_order(pool: sky.Pool) -> None:
    """They travel beside the small ones, and overtake none."""

    @sky.function
    def mixed() -> Iterator[bytes]:
        for number in range(60):
            yield bytes([number]) * (300_000 if number % 3 else 3)

    assert [item[0] for item in mixed() >> pool] == list(range(60))


def test_two_streams_are_read_in_turns(pool: sky.Pool) -> None:
    """Each has a window of its own."""
    one, other = count(200) >> pool, count(200) >> pool
    assert list(zip(one, other, strict=True)) == [(number, number) for number in range(200)]


def test_broadcast_gives_one_stream_a_rank(pool: sky.Pool) -> None:
    """In the order of the ranks; each ends by itself."""

    @sky.function
    def mine(n: int) -> Iterator[tuple[int, int]]:
        for number in range(n):
            yield sky.instance_info().node, number

    first, second = mine(50) @ pool
    assert list(second) == [(1, number) for number in range(50)]
    assert list(first) == [(0, number) for number in range(50)]


def test_timeout_is_for_the_whole_stream(pool: sky.Pool, tmp_path: Path) -> None:
    """No item takes that long; the consumer gets those that were made, then the error."""

    @sky.function(timeout=1.0)
    def steady(left: str) -> Iterator[int]:
        try:
            for number in itertools.count():
                threading.Event().wait(0.05)
                yield number
        finally:
            Path(left).touch()

    began = time.monotonic()
    items: list[int] = []
    with pytest.raises(sky.TaskTimeoutError, match=r"steady\(\) .* longer than its timeout of 1 s"):
        items.extend(steady(str(tmp_path / "left")) >> pool)
    assert 1.0 <= time.monotonic() - began < 20
    assert items == list(range(len(items)))
    # A little more than a second's: where it is, is found out before it is stopped.
    assert 1 <= len(items) <= 30
    _until((tmp_path / "left").exists)


def test_timeout_goes_on_while_the_consumer_lets_it_wait(pool: sky.Pool, tmp_path: Path) -> None:
    """Time in which the consumer takes no item is time of the stream."""
    log = tmp_path / "log"
    stream = logged(str(log)).with_timeout(0.3) >> pool
    assert next(stream) == b""
    _until((tmp_path / "log.left").exists)
    items: list[bytes] = []
    with pytest.raises(sky.TaskTimeoutError):
        items.extend(stream)
    assert len(items) < AHEAD
    assert next(stream, "over") == "over"


def test_stream_within_its_timeout_is_not_touched(pool: sky.Pool) -> None:
    """The clock is of one call; the next one has its own."""

    @sky.function(timeout=1.5)
    def slow() -> Iterator[int]:
        for number in range(3):
            threading.Event().wait(0.2)
            yield number

    assert [list(slow() >> pool) for _ in range(2)] == [[0, 1, 2]] * 2


@pytest.mark.parametrize("leave", ["break", "close", "with", "raise", "let go"])
def test_leaving_the_loop_runs_the_finally_there(pool: sky.Pool, tmp_path: Path, leave: str) -> None:
    """However it is left, the generator ends."""
    log = tmp_path / "log"
    stream = logged(str(log)) >> pool
    if leave == "break":
        for _ in stream:
            break
    elif leave == "close":
        next(stream)
        stream.close()  # type: ignore[attr-defined]
        assert next(stream, "over") == "over"
    elif leave == "with":
        with stream as items:  # type: ignore[attr-defined]
            next(items)
    elif leave == "raise":
        with contextlib.suppress(ZeroDivisionError), stream as items:  # type: ignore[attr-defined]
            raise ZeroDivisionError(next(items))
    else:
        next(stream)
    if leave in {"break", "let go"}:
        del stream
    _until((tmp_path / "log.left").exists)
    _until(lambda: pool.snapshot()["running"] == 0)


def test_leaving_ends_a_generator_in_the_middle_of_an_item(pool: sky.Pool, tmp_path: Path) -> None:
    """It does not have to come to its next `yield`."""

    @sky.function
    def stuck(left: str) -> Iterator[int]:
        try:
            yield 1
            threading.Event().wait(60)
            yield 2
        finally:
            Path(left).touch()

    for _ in stuck(str(tmp_path / "left")) >> pool:
        break
    _until((tmp_path / "left").exists, 4)


def test_leaving_ends_an_async_generator(pool: sky.Pool, tmp_path: Path) -> None:
    """Its `finally` runs, with an `await` in it."""

    @sky.function
    async def ticks(left: str) -> AsyncIterator[int]:
        import asyncio

        try:
            for number in itertools.count():
                await asyncio.sleep(0)
                yield number
        finally:
            await asyncio.sleep(0)
            os.close(os.open(left, os.O_CREAT))

    for item in ticks(str(tmp_path / "left")) >> pool:
        if item == 3:
            break
    _until((tmp_path / "left").exists)


def test_large_results_that_wait_are_on_the_disk(pool: sky.Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    """As they were, and in order; nothing is left of them."""
    monkeypatch.setattr(mapping, "BOUNDS", Bounds(results=3 << 20))
    moved: list[int] = []
    written = Overflow._write

    def write(self: Overflow, item: int, answer: Any) -> None:
        written(self, item, answer)
        moved.append(item)

    monkeypatch.setattr(Overflow, "_write", write)

    def made(number: int) -> bytes:
        time.sleep(0.2)
        return bytes([number]) * (2 << 20)

    results = pool.map(made, range(8), stream=True)
    first = next(results)
    _until(lambda: moved)
    assert [bytes([number]) * (2 << 20) for number in range(8)] == [first, *results]
    assert not any((cache_directory() / "results").iterdir())


def test_generator_is_never_further_ahead_than_its_window(pool: sky.Pool, tmp_path: Path) -> None:
    """However long the consumer waits, and wherever in the stream."""
    log = tmp_path / "log"
    stream = logged(str(log)) >> pool
    taken = 0
    for goal in (1, 2, 10, 100, 300):
        for _ in range(goal - taken):
            next(stream)
        taken = goal
        made = _settled(lambda: log.stat().st_size)
        assert taken <= made <= taken + AHEAD
    stream.close()  # type: ignore[attr-defined]


def test_generator_of_large_items_is_bounded_by_their_bytes(pool: sky.Pool, tmp_path: Path) -> None:
    """So many of them would be far more than the window of bytes."""
    log = tmp_path / "log"
    size = WINDOW_BYTES // 4
    stream = logged(str(log), size) >> pool
    assert len(next(stream)) == size
    assert _settled(lambda: log.stat().st_size) <= 1 + WINDOW_BYTES // size + 2
    stream.close()  # type: ignore[attr-defined]


def test_streams_in_threads_behave_the_same(tmp_path: Path) -> None:
    """Nothing of it hangs on the main thread of the worker, where alone signals arrive."""
    with sky.Compute(console="silent", concurrency=3) as pool:
        assert ok() >> pool == "ok"
        logs = [tmp_path / f"log{number}" for number in range(3)]
        streams = [logged(str(log)) >> pool for log in logs[:2]]
        streams.append(logged(str(logs[2])).with_timeout(0.3) >> pool)
        assert [next(stream) for stream in streams] == [b""] * 3
        assert max(_settled(lambda log=log: log.stat().st_size) for log in logs) <= 1 + AHEAD  # type: ignore[misc]
        with pytest.raises(sky.TaskTimeoutError):
            list(streams[2])
        assert [Path(f"{log}.left").exists() for log in logs] == [False, False, True]
        streams[0].close()  # type: ignore[attr-defined]
        _until(Path(f"{logs[0]}.left").exists)
        assert list(itertools.islice(streams[1], 100)) == [b""] * 100
        streams[1].close()  # type: ignore[attr-defined]
        _until(Path(f"{logs[1]}.left").exists)
        assert ok() >> pool == "ok"


def test_other_calls_run_while_a_stream_waits(pool: sky.Pool, tmp_path: Path) -> None:
    """It keeps one slot, and nothing else."""
    stream = logged(str(tmp_path / "log")) >> pool
    next(stream)
    assert pool.map(lambda x: x + 1, range(100)) == list(range(1, 101))
    stream.close()  # type: ignore[attr-defined]


@pytest.mark.parametrize("n", [0, 1, 7, 100])
def test_exception_comes_after_the_items_before_it(pool: sky.Pool, n: int) -> None:
    """As itself; then the stream is over."""

    @sky.function
    def broken() -> Iterator[int]:
        yield from range(n)
        raise LookupError(f"no {n}")

    stream = broken() >> pool
    items: list[int] = []
    with pytest.raises(LookupError, match=f"no {n}") as caught:
        items.extend(stream)
    assert items == list(range(n))
    assert any("broken" in note for note in caught.value.__notes__)
    assert next(stream, "over") == "over"


def test_exception_waits_for_a_consumer_that_takes_its_time(pool: sky.Pool, tmp_path: Path) -> None:
    """The generator has long failed when the first item is taken."""

    @sky.function
    def broken(left: str) -> Iterator[int]:
        yield 1
        yield 2
        Path(left).touch()
        raise LookupError("no more")

    stream = broken(str(tmp_path / "left")) >> pool
    _until((tmp_path / "left").exists)
    assert (next(stream), next(stream)) == (1, 2)
    with pytest.raises(LookupError, match="no more"):
        next(stream)


def test_death_of_the_worker_comes_after_the_items_before_it(pool: sky.Pool) -> None:
    """None of those that were sent is lost."""

    @sky.function
    def dies() -> Iterator[int]:
        yield from range(5)
        os._exit(3)

    stream = dies() >> pool
    assert [next(stream) for _ in range(5)] == list(range(5))
    with pytest.raises(sky.WorkerDiedError, match="exited with code 3"):
        next(stream)


def test_retries_give_no_item_twice(pool: sky.Pool, tmp_path: Path) -> None:
    """A stream that failed after an item was given cannot begin anew behind the consumer's back."""

    @sky.function(retries=1)
    def flaky(mark: str) -> Iterator[int]:
        yield 0
        yield 1
        if not Path(mark).exists():
            Path(mark).touch()
            raise ConnectionError("once")
        yield 2

    items: list[int] = []
    try:
        items.extend(flaky(str(tmp_path / "mark")) >> pool)
    except (ConnectionError, sky.UsageError):
        assert items in ([], [0, 1])
    else:
        assert items == [0, 1, 2]


def test_item_that_cannot_be_pickled(pool: sky.Pool) -> None:
    """Is the error that such a result is."""

    @sky.function
    def locks() -> Iterator[Any]:
        yield 1
        yield threading.Lock()

    stream = locks() >> pool
    assert next(stream) == 1
    with pytest.raises(sky.ResultError, match=r"_thread\.lock"):
        next(stream)


def test_item_that_cannot_be_unpickled_here(pool: sky.Pool) -> None:
    """Is the error that such a result is."""

    class Broken:
        def __reduce__(self) -> Any:
            return (int, ("not a number",))

    @sky.function
    def items() -> Iterator[Any]:
        yield 1
        yield Broken()

    stream = items() >> pool
    assert next(stream) == 1
    with pytest.raises(sky.ResultError, match="cannot be unpickled here: ValueError"):
        next(stream)


# Groups whose results come one by one.


def test_ordered_group_keeps_the_order_of_the_calls(pool: sky.Pool, tmp_path: Path) -> None:
    """The second call has ended when the first may."""
    gate = tmp_path / "gate"

    @sky.function
    def after() -> str:
        gate.touch()
        return "second"

    results = sky.gather(when(str(gate), "first"), after(), stream=True, ordered=True) >> pool
    assert list(results) == ["first", "second"]


def test_unordered_group_gives_each_result_as_its_call_ends(pool: sky.Pool, tmp_path: Path) -> None:
    """The first call can only end once the consumer has the results of the others."""
    gate = tmp_path / "gate"
    calls = [when(str(gate), "held"), *(sky.function(str)(number) for number in range(5))]
    results = sky.gather(*calls, stream=True, ordered=False) >> pool
    assert sorted(next(results) for _ in range(5)) == ["0", "1", "2", "3", "4"]
    gate.touch()
    assert list(results) == ["held"]


def test_ordered_group_gives_what_is_ready_before_the_rest(pool: sky.Pool, tmp_path: Path) -> None:
    """Order does not mean to wait for all."""
    gate = tmp_path / "gate"
    results = sky.gather(ok(), ok(), when(str(gate), "last"), stream=True) >> pool
    assert (next(results), next(results)) == ("ok", "ok")
    gate.touch()
    assert list(results) == ["last"]


def test_failure_in_an_ordered_group_comes_in_its_place(pool: sky.Pool, tmp_path: Path) -> None:
    """It happened first, and is raised second."""
    gate = tmp_path / "gate"

    @sky.function
    def fail() -> str:
        gate.touch()
        raise KeyError("second")

    results = sky.gather(when(str(gate), "first"), fail(), ok(), stream=True) >> pool
    assert next(results) == "first"
    with pytest.raises(KeyError, match="second"):
        next(results)
    kept = list(sky.gather(ok(), fail(), ok(), stream=True, return_exceptions=True) >> pool)
    assert (kept[0], type(kept[1]), kept[2]) == ("ok", KeyError, "ok")


def test_leaving_a_group_stops_what_is_left_of_it(pool: sky.Pool, tmp_path: Path) -> None:
    """Both what runs and what waits."""
    never = str(tmp_path / "never")
    results = sky.gather(ok(), *(when(never, "") for _ in range(6)), stream=True, ordered=False) >> pool
    for result in results:
        assert result == "ok"
        break
    del results
    _until(lambda: pool.snapshot()["running"] == pool.snapshot()["queued"] == 0, 4)


# Into a node.


def test_endless_iterator_is_taken_only_as_far_as_needed(pool: sky.Pool) -> None:
    """It is closed where the function is done with it."""
    taken: list[int] = []
    closed = threading.Event()

    def numbers() -> Iterator[int]:
        try:
            for number in itertools.count():
                taken.append(number)
                yield number
        finally:
            closed.set()

    assert first_of(numbers(), 50) >> pool == list(range(50))
    assert closed.wait(10)
    assert 50 <= len(taken) <= 50 + AHEAD


def test_iterator_is_not_taken_further_ahead_than_its_window(pool: sky.Pool, tmp_path: Path) -> None:
    """A function that takes nothing leaves all but the first items where they are."""
    gate = tmp_path / "gate"
    taken: list[int] = []

    def numbers() -> Iterator[int]:
        for number in range(500):
            taken.append(number)
            yield number

    @sky.function
    def patient(numbers: Iterator[int], gate: str) -> int:
        when.local(gate, "")
        return sum(numbers)

    future = patient(numbers(), str(gate)) > pool
    _until(lambda: taken)
    assert _settled(lambda: len(taken)) <= AHEAD
    gate.touch()
    assert future.result(timeout=20) == sum(range(500))


def test_iterator_feeds_a_generator(pool: sky.Pool) -> None:
    """Both ways at once, endless on both sides."""
    stream = doubled(itertools.count()) >> pool
    assert list(itertools.islice(stream, 200)) == list(range(0, 400, 2))
    stream.close()  # type: ignore[attr-defined]


def test_items_are_made_while_the_function_takes_them(pool: sky.Pool) -> None:
    """The next item may depend on what came back for the last."""
    answers: list[int] = []

    def numbers() -> Iterator[int]:
        yield 1
        for _ in range(5):
            _until(lambda: answers)
            yield answers.pop()

    for answer in doubled(numbers()) >> pool:
        answers.append(answer)  # noqa: PERF402  # the iterator above reads it
    assert answers == [64]


def test_several_iterators_in_one_call(pool: sky.Pool) -> None:
    """By position and by keyword; whatever can be iterated is taken."""

    @sky.function
    def pairs(left: Iterator[int], right: Iterator[str]) -> list[tuple[int, str]]:
        return list(zip(left, right, strict=False))

    assert total(range(10)) >> pool == 45  # type: ignore[arg-type]
    assert total(numbers=iter([1, 2])) >> pool == 3
    assert pairs(itertools.count(), right=iter("abc")) >> pool == [(0, "a"), (1, "b"), (2, "c")]


def test_quoted_annotation_in_a_module_of_quoted_annotations(pool: sky.Pool) -> None:
    """Quoted twice over, it still says `Iterator`."""

    @sky.function
    def head(numbers: "Iterator[int]") -> int:  # noqa: UP037
        return next(numbers)

    assert head(number for number in itertools.count(7)) >> pool == 7


def test_function_that_waits_for_an_item_can_time_out(pool: sky.Pool) -> None:
    """The item never comes, and the timeout holds."""
    never = threading.Event()

    def numbers() -> Iterator[int]:
        yield 1
        never.wait(30)

    try:
        with pytest.raises(sky.TaskTimeoutError):
            total(numbers()).with_timeout(0.2) >> pool
    finally:
        never.set()


def test_iterator_cannot_be_tried_again(pool: sky.Pool) -> None:
    """Whichever way the retries were asked for; not one item is taken."""
    numbers = iter(range(3))

    @sky.function(retries=1)
    def insistent(numbers: Iterator[int]) -> int:
        return sum(numbers)

    with pytest.raises(sky.UsageError, match="retries must be 0, not 2"):
        total(numbers).with_retries(2) >> pool
    with pytest.raises(sky.UsageError, match="retries must be 0, not 1"):
        insistent(numbers) >> pool
    with pytest.raises(sky.UsageError, match="retries must be 0, not 1"):
        _ = pool.run_async(insistent(numbers))
    with pytest.raises(sky.UsageError, match="retries must be 0, not 1"):
        sky.gather(ok(), insistent(numbers)) >> pool
    assert list(numbers) == [0, 1, 2]
    assert insistent(iter([4])).with_retries(0) >> pool == 4


def _until(condition: Callable[[], object], seconds: float = 20.0) -> None:
    """Wait for a condition."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def _settled(value: Callable[[], int]) -> int:
    """Wait until a number has stopped to grow, and give it."""
    deadline = time.monotonic() + 10
    before, since = -1, 0
    while since < 20:
        now = value()
        before, since = now, since + 1 if now == before else 0
        assert time.monotonic() < deadline
        time.sleep(0.005)
    return before
