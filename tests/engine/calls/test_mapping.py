"""A map is lazy, bounded and in order, with nodes that answer as scripted."""

from __future__ import annotations

import asyncio
import gc
import itertools
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from typing import Any

import pytest

import skyward as sky
from skyward.engine.calls import mapping
from skyward.engine.calls.pulling import ItemSource
from skyward.engine.calls.streamed_results import Results
from skyward.plan.pool.map_flow import IN_FLIGHT, STRAGGLER, Bounds
from tests.simulated import plan
from tests.simulated.node import Task
from tests.simulated.plan import HANGS, Plan, raises, returns
from tests.simulated.scripted_pool import ScriptedPool, idle, still
from tests.waiting import until

act = sky.function(plan.act)
SLOTS = 4


@pytest.fixture
def pool() -> Iterator[ScriptedPool]:
    """Two nodes of two slots each."""
    with ScriptedPool([2], [2]) as pool:
        yield pool


def collected(pool: ScriptedPool, items: Any, function: Any = act, *, keep_errors: bool = False) -> list[Any]:
    """Map over items, and wait for all."""
    return mapping.collect(pool, function, ItemSource([items]), keep_errors=keep_errors)


def streamed(pool: ScriptedPool, items: Any, *, ordered: bool = True, keep_errors: bool = False) -> Results[Any]:
    """Map over items, and give results as they come."""
    return mapping.stream(pool, act, ItemSource([items]), ordered=ordered, keep_errors=keep_errors)


class Taken:
    """Count what is taken of endless plans."""

    def __init__(self, made: Plan | None = None) -> None:
        self.count = 0
        self._made = made

    def __iter__(self) -> Iterator[Plan]:
        while True:
            self.count += 1
            yield self._made or returns(self.count - 1)

    def settled(self) -> int:
        """Wait until some were taken and no more are, and tell how many were."""
        while True:
            before = self.count
            threading.Event().wait(0.05)
            if before and before == self.count:
                return before


def then(items: Iterable[Any], do: Callable[[], object]) -> Iterator[Any]:
    """Give items, and do something when there are no more."""
    yield from items
    do()


def begun(pool: ScriptedPool) -> int:
    """Count the calls that nodes began."""
    return sum(len(node.begun) for node in pool.scripted.values())


def test_results_are_in_the_order_of_items(pool: ScriptedPool) -> None:
    """Whatever the order of their ends; also more of them than a window."""
    items = [returns(number, (number * 7) % 5 + 0.1) for number in range(300)]
    assert list(range(300)) == collected(pool, items)
    assert list(range(300)) == list(streamed(pool, items))
    assert [] == collected(pool, [])
    assert [] == list(streamed(pool, []))


def test_each_item_runs_once(pool: ScriptedPool) -> None:
    """Also where the window is moved many times."""
    assert [None] * 500 == collected(pool, [Plan()] * 500)
    assert 500 == begun(pool)


@pytest.mark.parametrize(("ordered", "expected"), [(True, [0, 1, 2]), (False, [2, 1, 0])])
def test_a_streamed_map_gives_results_as_they_come(pool: ScriptedPool, expected: list[int], *, ordered: bool) -> None:
    """In order of the items, or of their ends."""
    items = [returns(number, 3.0 - number) for number in range(3)]
    with still() as moves:
        assert expected == list(streamed(pool, then(items, moves.set), ordered=ordered))


def test_several_iterables_are_taken_side_by_side() -> None:
    """The shortest ends it, and a tuple of arguments is spread where that is asked for."""

    def script(task: Task) -> Plan:
        return returns(task.arguments)

    with ScriptedPool([2], script=script) as pool:
        both = ItemSource([itertools.count(), "abc"])
        assert [(0, "a"), (1, "b"), (2, "c")] == mapping.collect(pool, act, both, keep_errors=False)
        spread = ItemSource([[(1, 2), [3]]], star=True)
        assert [(1, 2), (3,)] == mapping.collect(pool, act, spread, keep_errors=False)


def test_nothing_is_taken_before_the_first_result_is_asked_for(pool: ScriptedPool) -> None:
    """The thread that takes items begins then."""
    taken = Taken()
    results = streamed(pool, taken)
    assert 0 == taken.count
    assert list(range(100)) == list(itertools.islice(results, 100))
    results.close()
    until(lambda: idle(pool))


# What is bounded.


@pytest.mark.parametrize("ordered", [True, False])
def test_a_consumer_that_pauses_pauses_the_iterator_and_the_nodes(pool: ScriptedPool, *, ordered: bool) -> None:
    """Of tasks that take a second, few a slot are under way beside results that wait."""
    taken = Taken(returns(None, 1.0))
    results = streamed(pool, taken, ordered=ordered)
    assert [None] * 20 == list(itertools.islice(results, 20))
    waiting = taken.settled() - 20
    assert SLOTS <= waiting <= 3 * SLOTS + STRAGGLER * SLOTS * ordered
    until(lambda: idle(pool))
    assert begun(pool) == taken.count
    # It goes on where it was.
    assert [None] * 20 == list(itertools.islice(results, 20))
    assert taken.settled() - 40 <= 3 * SLOTS + STRAGGLER * SLOTS * ordered
    results.close()
    until(lambda: idle(pool))


def test_results_that_wait_for_a_slow_first_one_are_bounded(pool: ScriptedPool) -> None:
    """Others go on beside it for a while, and are not taken without end."""
    items = Taken(returns("quick", 1.0))
    results = streamed(pool, itertools.chain([returns("slow", 3600.0)], items))
    assert "slow" == next(results)
    assert 2 * SLOTS <= items.settled() <= (3 + STRAGGLER) * SLOTS
    assert ["quick"] * 10 == list(itertools.islice(results, 10))
    results.close()
    until(lambda: idle(pool))


def test_no_ops_beside_a_slow_first_one_are_few(pool: ScriptedPool) -> None:
    """However many a second there could be: none was taken yet, and all would be held."""
    items = Taken(returns(None))
    results = streamed(pool, itertools.chain([HANGS], items))
    reader = threading.Thread(target=lambda: list(results), daemon=True)
    reader.start()
    assert 2 * SLOTS <= items.settled() <= (2 + STRAGGLER) * SLOTS
    results.close()
    reader.join(10)
    until(lambda: idle(pool))


def test_short_calls_that_hang_fill_the_window_and_no_more(pool: ScriptedPool) -> None:
    """They are many, because they were short so far; and not more than any map may have."""
    hanging = Taken(HANGS)
    results = streamed(pool, itertools.chain([returns(number) for number in range(200)], hanging))
    assert list(range(200)) == list(itertools.islice(results, 200))
    assert 2 * SLOTS < hanging.settled() <= 2 * SLOTS + IN_FLIGHT
    results.close()
    until(lambda: idle(pool))


@pytest.mark.parametrize("listed", [True, False])
def test_large_arguments_are_bounded_by_their_bytes(
    monkeypatch: pytest.MonkeyPatch, pool: ScriptedPool, *, listed: bool
) -> None:
    """So many of them would be more than may be under way."""
    bounds = Bounds(arguments=100_000)
    monkeypatch.setattr(mapping, "LISTED" if listed else "BOUNDS", bounds)
    most = 0

    def items() -> Iterator[Plan]:
        nonlocal most
        for _ in range(300):
            most = max(most, pool.do(lambda: pool.dispatch.running + pool.dispatch.queued))
            yield returns(bytes(10_000))

    got = collected(pool, items()) if listed else list(streamed(pool, items()))
    assert 300 == len(got)
    # How many there are at least depends on the threads; `room` says how many there may be.
    assert most <= 10


def test_one_argument_may_be_larger_than_the_bound(monkeypatch: pytest.MonkeyPatch, pool: ScriptedPool) -> None:
    """Then it is alone under way."""
    monkeypatch.setattr(mapping, "BOUNDS", Bounds(arguments=1_000))
    sizes = [len(one) for one in streamed(pool, [returns(bytes(10_000))] * 10)]
    assert [10_000] * 10 == sizes


@pytest.mark.parametrize("ordered", [True, False])
def test_results_that_are_not_taken_are_bounded_by_their_bytes(
    monkeypatch: pytest.MonkeyPatch, *, ordered: bool
) -> None:
    """But slots that are free go on as long as what waits is within the bound."""
    size = 200_000
    bound = 3 * size + 1_000
    monkeypatch.setattr(mapping, "BOUNDS", Bounds(results=bound))
    with ScriptedPool([2], [2], script=lambda task: returns(bytes(size), 1.0)) as pool:
        taken = Taken(returns(None))
        results = streamed(pool, taken, ordered=ordered)
        assert size == len(next(results))
        assert taken.settled() <= 1 + bound // size + SLOTS
        assert [size] * 7 == [len(one) for one in itertools.islice(results, 7)]
        for _ in range(3):
            before = taken.settled() - 8
            assert 1 <= before <= bound // size + SLOTS
        assert [size] * 20 == [len(one) for one in itertools.islice(results, 20)]
        assert taken.settled() - 28 <= bound // size + SLOTS
        results.close()
        until(lambda: idle(pool))


def test_one_result_may_be_larger_than_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then slots run one each, and no more until all of them are taken."""
    monkeypatch.setattr(mapping, "BOUNDS", Bounds(results=1_000))
    with ScriptedPool([4], script=lambda task: returns(bytes(100_000), 1.0)) as pool:
        assert [100_000] * 12 == [len(one) for one in streamed(pool, [Plan()] * 12)]
        until(lambda: act_pace(pool).result >= 100_000)
        taken = Taken(returns(None))
        results = streamed(pool, taken)
        next(results)
        assert taken.settled() <= 1 + 4
        results.close()
        until(lambda: idle(pool))


def act_pace(pool: ScriptedPool) -> Any:
    """Give what was learnt of calls of the scripted function."""
    return pool.maker.caller(act, None)((), 0).function.learnt.pace


# Iterators.


def test_an_iterator_may_wait_for_earlier_results(pool: ScriptedPool) -> None:
    """As a search does; each call is sent when its item is there."""
    handled = threading.Semaphore(2)

    def search() -> Iterator[Plan]:
        for number in range(30):
            assert handled.acquire(timeout=10)
            yield returns(number, 1.0)

    got = []
    for number in streamed(pool, search()):
        got.append(number)
        handled.release()
    assert list(range(30)) == got


@pytest.mark.parametrize("listed", [True, False])
def test_a_call_is_sent_when_its_item_is_there(pool: ScriptedPool, *, listed: bool) -> None:
    """However long the next one takes: it begins before the iterator goes on."""

    def items() -> Iterator[Plan]:
        for number in range(10):
            yield returns(number)
            until(lambda number=number: begun(pool) == number + 1)  # type: ignore[misc]

    assert list(range(10)) == (collected(pool, items()) if listed else list(streamed(pool, items())))


def test_items_are_taken_in_the_context_of_the_map(pool: ScriptedPool) -> None:
    """As they would be in its thread."""
    import contextvars

    mode = contextvars.ContextVar("mode", default="none")
    mode.set("deep")
    assert ["deep"] == list(streamed(pool, (returns(mode.get()) for _ in range(1))))


def test_a_source_that_raises_stops_a_list(pool: ScriptedPool) -> None:
    """Its exception is the map's, and says where it comes from."""

    def source() -> Iterator[Plan]:
        yield from [HANGS] * 5
        raise OSError("disk gone")

    with pytest.raises(OSError, match="disk gone") as caught:
        collected(pool, source())
    assert ["Raised by the iterator that `map` takes its items from, after 5 items."] == caught.value.__notes__
    until(lambda: idle(pool))


@pytest.mark.parametrize("ordered", [True, False])
def test_a_source_that_raises_ends_a_stream_after_its_results(pool: ScriptedPool, *, ordered: bool) -> None:
    """Those of the items before come first."""

    def source() -> Iterator[Plan]:
        yield from [returns(number, 5.0 - number) for number in range(5)]
        raise OSError("disk gone")

    results = streamed(pool, source(), ordered=ordered)
    assert [0, 1, 2, 3, 4] == sorted(itertools.islice(results, 5))
    with pytest.raises(OSError, match="disk gone"):
        next(results)
    assert [] == list(results)


def test_an_item_that_cannot_be_pickled_ends_a_stream_as_a_source_that_raises(pool: ScriptedPool) -> None:
    """The error says which item it is."""
    results = streamed(pool, iter([returns(0), threading.Lock()]))
    assert 0 == next(results)
    with pytest.raises(sky.SerializationError, match="lock") as caught:
        next(results)
    assert "Raised for the item at 1 of a `map`." in caught.value.__notes__


@pytest.mark.parametrize("leave", ["close", "with", "forget", "error"])
def test_a_consumer_that_leaves_ends_calls_and_generator(pool: ScriptedPool, leave: str) -> None:
    """By closing, by a block, by letting go, or by a failure."""
    closed = threading.Event()

    def source() -> Iterator[Plan]:
        try:
            yield returns(0)
            if leave == "error":
                yield raises(KeyError("two"))
            while True:
                yield HANGS
        finally:
            closed.set()

    results = streamed(pool, source())
    assert 0 == next(results)
    match leave:
        case "close":
            results.close()
        case "with":
            with results:
                pass
        case "error":
            with pytest.raises(KeyError, match="two"):
                next(results)
        case _:
            del results
            gc.collect()
    assert closed.wait(10)
    until(lambda: idle(pool))
    until(lambda: not any(thread.name == "skyward-map" for thread in threading.enumerate()))


def test_closing_does_not_wait_for_an_iterator_that_blocks(pool: ScriptedPool) -> None:
    """Its thread ends when the iterator goes on, and closes the generator then."""
    blocks, goes_on, closed = threading.Event(), threading.Event(), threading.Event()

    def source() -> Iterator[Plan]:
        try:
            yield returns(0)
            blocks.set()
            goes_on.wait(10)
            yield returns(1)
        finally:
            closed.set()

    results = streamed(pool, source())
    assert 0 == next(results)
    assert blocks.wait(10)
    results.close()
    assert [] == list(results)
    assert not closed.is_set()
    goes_on.set()
    assert closed.wait(10)
    until(lambda: 1 == begun(pool))


def test_a_waiting_consumer_hears_that_the_stream_was_closed(pool: ScriptedPool) -> None:
    """By another thread, say."""
    results = streamed(pool, [HANGS])
    threading.Timer(0.05, results.close).start()
    assert [] == list(results)
    until(lambda: idle(pool))


def test_a_pool_that_is_closed_ends_a_stream(pool: ScriptedPool) -> None:
    """Also if the iterator blocks, and no call is under way that could be answered."""
    blocks = threading.Event()

    def source() -> Iterator[Plan]:
        yield returns(0)
        blocks.wait(10)

    results = streamed(pool, source())
    assert 0 == next(results)
    pool.leave()
    with pytest.raises(sky.PoolClosedError, match="'train' is closed"):
        next(results)
    blocks.set()


# Failures.


def test_the_first_failure_in_the_order_of_items_is_raised(pool: ScriptedPool) -> None:
    """The rest is stopped, and what was done until then is remembered."""
    items = [returns(0, 2.0), raises(KeyError("one"), 1.0), raises(ValueError()), *[HANGS] * 20]
    with pytest.raises(KeyError, match="one") as caught:
        collected(pool, items)
    assert [0, KeyError] == [one if one == 0 else type(one) for one in sky.partial(caught.value)]
    until(lambda: idle(pool))


def test_failures_can_be_kept(pool: ScriptedPool) -> None:
    """Each in its place, as a list or a stream."""
    items = [returns(0), raises(KeyError()), returns(2)]
    for found in (collected(pool, items, keep_errors=True), list(streamed(pool, items, keep_errors=True))):
        assert [0, "KeyError", 2] == [type(one).__name__ if isinstance(one, Exception) else one for one in found]


def test_each_item_has_the_retries_of_the_function() -> None:
    """One call's failures cost the others nothing."""

    def script(task: Task) -> Plan:
        return raises(OSError()) if task.attempt == 1 else returns((task.arguments[0], task.attempt))

    with ScriptedPool([2], [2], script=script) as pool:
        again = sky.function(retries=1)(plan.act)
        assert [(name, 2) for name in "abc"] == collected(pool, "abc", again)


def test_a_generator_function_is_refused(pool: ScriptedPool) -> None:
    """There is one result for each item."""
    with pytest.raises(sky.UsageError, match="wants one result for each item"):
        collected(pool, [returns(1)], sky.function(plan.act_and_yield))


def test_progress_is_told(pool: ScriptedPool) -> None:
    """With the total, where that is known."""
    collected(pool, [returns(1)] * 3)
    assert ("act", 3, 3) == pool.told[-1]
    collected(pool, iter([returns(1)] * 3))
    assert ("act", None, 3) == pool.told[-1]


# Event loops.


async def later(count: int) -> AsyncIterator[Plan]:
    """Give plans from an event loop."""
    for number in range(count):
        await asyncio.sleep(0)
        yield returns(number, 0.1)


def test_asynchronous_items_and_results(pool: ScriptedPool) -> None:
    """In the event loop of the consumer, which is never blocked."""

    async def main() -> list[int]:
        return [result async for result in streamed(pool, later(50))]

    assert list(range(50)) == asyncio.run(main())
    # Without one they have a loop of their own.
    assert list(range(5)) == collected(pool, later(5))
    assert list(range(5)) == list(streamed(pool, later(5)))


def test_an_event_loop_runs_on_while_results_are_awaited(pool: ScriptedPool) -> None:
    """Another coroutine has its turns meanwhile; the first result comes only after it had them."""
    turns = 0

    async def main() -> int:
        nonlocal turns
        goes = threading.Event()

        async def other() -> None:
            nonlocal turns
            for _ in range(5):
                await asyncio.sleep(0.01)
                turns += 1
            goes.set()

        def source() -> Iterator[Plan]:
            assert goes.wait(10)
            yield returns(turns)

        task = asyncio.create_task(other())
        [result] = [result async for result in streamed(pool, source())]
        await task
        return int(result)

    assert 5 == asyncio.run(main())


def test_an_awaited_result_that_is_given_up_is_not_lost(pool: ScriptedPool) -> None:
    """A timeout ends the waiting; the next one gets the result."""
    goes = threading.Event()

    def source() -> Iterator[Plan]:
        assert goes.wait(10)
        yield returns(bytes(200_000))

    async def main() -> None:
        results = streamed(pool, source())
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(anext(results), 0.05)
        goes.set()
        assert [200_000] == [len(result) async for result in results]

    asyncio.run(main())


def test_a_list_is_not_waited_for_in_the_event_loop_of_its_items(pool: ScriptedPool) -> None:
    """It would wait for ever; the error names the other form."""

    async def main() -> None:
        items = later(1)
        with pytest.raises(sky.UsageError, match="would wait") as caught:
            collected(pool, items)
        assert "async for" in str(caught.value.hint)
        await items.aclose()  # type: ignore[attr-defined]  # a generator

    asyncio.run(main())


def test_leaving_ends_an_asynchronous_generator(pool: ScriptedPool) -> None:
    """In its own event loop, also while it waits there."""

    async def main() -> None:
        ended = asyncio.Event()

        async def source() -> AsyncIterator[Plan]:
            try:
                yield returns(0)
                await asyncio.Event().wait()
            finally:
                ended.set()

        async with streamed(pool, source()) as results:
            assert 0 == await anext(results)
        await asyncio.wait_for(ended.wait(), 10)

    asyncio.run(main())
