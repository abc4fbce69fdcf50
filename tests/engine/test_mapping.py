"""A map is lazy, bounded and in order, with nodes that answer as scripted."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

import skyward as sky
from skyward.engine import mapping
from tests.simulated import plan
from tests.simulated.node import Task
from tests.simulated.plan import HANGS, Plan, raises, returns
from tests.simulated.scripted_pool import ScriptedPool, idle, until

act = sky.function(plan.act)
OPTIONS: dict[str, Any] = {"keep_errors": False}


@pytest.fixture
def pool() -> Iterator[ScriptedPool]:
    """Two nodes of two slots each."""
    with ScriptedPool([2], [2]) as pool:
        yield pool


class Taken:
    """Count what is taken of endless plans."""

    def __init__(self, made: Plan | None = None) -> None:
        self.count = 0
        self._made = made

    def __iter__(self) -> Iterator[Plan]:
        while True:
            self.count += 1
            yield self._made or returns(self.count - 1)


def test_results_are_in_the_order_of_items(pool: ScriptedPool) -> None:
    """Whatever the order of their ends; also more of them than a window."""
    items = [returns(number, (number * 7) % 5 + 0.1) for number in range(300)]
    assert list(range(300)) == mapping.collect(pool, act, items, **OPTIONS)
    assert [] == mapping.collect(pool, act, [], **OPTIONS)


def test_more_items_than_a_window(monkeypatch: pytest.MonkeyPatch, pool: ScriptedPool) -> None:
    """Each runs once."""
    monkeypatch.setattr(mapping, "WINDOW", count := 70)
    count += 10
    assert [None] * count == mapping.collect(pool, act, [Plan()] * count, **OPTIONS)
    assert count == sum(len(node.begun) for node in pool.scripted.values())


@pytest.mark.parametrize(("ordered", "expected"), [(True, [0, 1, 2, 3]), (False, [3, 2, 1, 0])])
def test_a_streamed_map_gives_results_as_they_come(pool: ScriptedPool, expected: list[int], *, ordered: bool) -> None:
    """In order of the items, or of their ends."""
    items = [returns(number, 4.0 - number) for number in range(4)]
    assert expected == list(mapping.stream(pool, act, items, ordered=ordered, **OPTIONS))


def test_an_endless_source_is_taken_from_no_further_than_a_window(pool: ScriptedPool) -> None:
    """Nothing is taken before the first result is asked for."""
    taken = Taken()
    results = mapping.stream(pool, act, taken, ordered=True, **OPTIONS)
    assert 0 == taken.count
    assert list(range(100)) == list(itertools.islice(results, 100))
    assert 100 <= taken.count <= 100 + mapping.WINDOW
    results.close()  # type: ignore[attr-defined]  # a generator
    until(lambda: idle(pool))


def test_calls_that_hang_fill_the_window_and_no_more(monkeypatch: pytest.MonkeyPatch, pool: ScriptedPool) -> None:
    """A slow head holds all others back, so that results which wait for it are bounded too."""
    monkeypatch.setattr(mapping, "WINDOW", 50)
    items = Taken(returns("quick"))
    results = mapping.stream(pool, act, itertools.chain([returns("slow", 3600.0)], items), ordered=True, **OPTIONS)
    assert "slow" == next(results)
    # An hour is enough for any number of quick ones; those that were let through filled windows one after the other.
    assert ["quick"] * 10 == list(itertools.islice(results, 10))
    results.close()  # type: ignore[attr-defined]  # a generator
    until(lambda: idle(pool))
    hanging = Taken(HANGS)
    results = mapping.stream(pool, act, itertools.chain([returns(1)], hanging), ordered=True, **OPTIONS)
    assert 1 == next(results)
    assert hanging.count <= 50
    results.close()  # type: ignore[attr-defined]  # a generator
    until(lambda: idle(pool))


def test_large_items_are_bounded_by_their_bytes(monkeypatch: pytest.MonkeyPatch, pool: ScriptedPool) -> None:
    """So many of them would be more than the window of bytes."""
    monkeypatch.setattr(mapping, "WINDOW_BYTES", 100_000)
    items = Taken(returns(bytes(10_000)))
    results = mapping.stream(pool, act, itertools.chain([returns(0)], items), ordered=True, **OPTIONS)
    next(results)
    assert items.count <= 12
    results.close()  # type: ignore[attr-defined]  # a generator
    until(lambda: idle(pool))


def test_the_first_failure_in_the_order_of_items_is_raised(pool: ScriptedPool) -> None:
    """The rest is stopped, and what was done until then is remembered."""
    items = [returns(0, 2.0), raises(KeyError("one"), 1.0), raises(ValueError()), *[HANGS] * 20]
    with pytest.raises(KeyError, match="one") as caught:
        mapping.collect(pool, act, items, **OPTIONS)
    assert [0, KeyError] == [one if one == 0 else type(one) for one in sky.partial(caught.value)]
    until(lambda: idle(pool))


def test_failures_can_be_kept(pool: ScriptedPool) -> None:
    """Each in its place, as a list or a stream."""
    items = [returns(0), raises(KeyError()), returns(2)]
    kept = mapping.collect(pool, act, items, keep_errors=True)
    streamed = list(mapping.stream(pool, act, items, ordered=True, keep_errors=True))
    for found in (kept, streamed):
        assert [0, "KeyError", 2] == [type(one).__name__ if isinstance(one, Exception) else one for one in found]


def test_each_item_has_the_retries_of_the_function() -> None:
    """One call's failures cost the others nothing."""

    def script(task: Task) -> Plan:
        return raises(OSError()) if task.attempt == 1 else returns((task.arguments[0], task.attempt))

    with ScriptedPool([2], [2], script=script) as pool:
        again = sky.function(retries=1)(plan.act)
        assert [(name, 2) for name in "abc"] == mapping.collect(pool, again, "abc", **OPTIONS)


def test_a_source_that_raises_stops_what_is_under_way(pool: ScriptedPool) -> None:
    """Its exception is the map's."""

    def source() -> Iterator[Plan]:
        yield from [HANGS] * 5
        raise OSError("disk gone")

    with pytest.raises(OSError, match="disk gone"):
        mapping.collect(pool, act, source(), **OPTIONS)
    until(lambda: idle(pool))


def test_a_generator_function_is_refused(pool: ScriptedPool) -> None:
    """There is one result for each item."""
    with pytest.raises(sky.UsageError, match="wants one result for each item"):
        mapping.collect(pool, sky.function(plan.act_and_yield), [returns(1)], **OPTIONS)


def test_progress_is_told(pool: ScriptedPool) -> None:
    """With the total, where that is known."""
    mapping.collect(pool, act, [returns(1)] * 3, **OPTIONS)
    assert ("act", 3, 3) == pool.told[-1]
    mapping.collect(pool, act, iter([returns(1)] * 3), **OPTIONS)
    assert ("act", None, 3) == pool.told[-1]
