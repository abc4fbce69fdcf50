"""Globals, closures and arguments as they are at dispatch, and no other call's."""

from __future__ import annotations

import functools
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import skyward as sky

OFFSET = 1


def _counter() -> Any:
    seen: list[int] = []

    def count() -> int:
        seen.append(1)
        return len(seen)

    return count


def test_closure_is_seen_as_it_is_at_dispatch(pool: sky.Pool) -> None:
    """A variable changed between two calls is changed for the second."""
    offset = 1

    def shifted(x: int) -> int:
        return x + offset

    call = sky.function(shifted)
    assert call(1) >> pool == 2
    offset = 10
    assert call(1) >> pool == 11


def test_mutable_closure_is_seen_as_it_is_at_dispatch(pool: sky.Pool) -> None:
    """Also a list that is changed in place."""
    names: list[str] = []

    def known() -> list[str]:
        return names

    call = sky.function(known)
    assert call() >> pool == []
    names.append("a")
    assert call() >> pool == ["a"]


def test_what_a_call_changes_is_not_there_for_the_next(pool: sky.Pool) -> None:
    """Each call gets the closure anew."""
    count = sky.function(_counter())
    assert [count() >> pool for _ in range(4)] == [1, 1, 1, 1]


def test_rebound_global_does_not_leak_into_the_next_call(pool: sky.Pool) -> None:
    """A function sent by value that assigns a global of its own starts anew each time."""
    space: dict[str, Any] = {"__name__": "__main__"}
    exec("n = 0\ndef bump():\n    global n\n    n += 1\n    return n", space)
    bump = sky.function(space["bump"])
    assert [bump() >> pool for _ in range(4)] == [1, 1, 1, 1]


def test_map_captures_its_function_once(pool: sky.Pool) -> None:
    """The whole map sees what was there when it began."""
    offset = 0

    def shifted(x: int) -> int:
        return x + offset

    def items() -> Any:
        nonlocal offset
        for item in range(5):
            offset += 100
            yield item

    assert pool.map(shifted, items()) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("size", [10, 200_000, 2_000_000])
def test_arguments_are_the_callees_own(pool: sky.Pool, size: int) -> None:
    """They can be written to, and nothing changes elsewhere; also when sent again by their digest."""

    @sky.function
    def scribble(array: Any) -> float:
        array += 1
        return float(array[0])

    array = np.zeros(size)
    assert [scribble(array) >> pool for _ in range(4)] == [1.0] * 4
    assert array[0] == 0.0


def _memory_of(array: Any) -> str:
    """Name the file in memory that an array lies in, as this process sees it."""
    address = array.ctypes.data
    for line in Path("/proc/self/maps").read_text().splitlines():
        span, _, _, _, inode, *_ = line.split()
        start, end = (int(bound, 16) for bound in span.split("-"))
        if start <= address < end:
            return inode
    raise AssertionError("The array is nowhere.")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells which pages were written to")
def test_array_that_goes_on_as_it_came_is_not_copied(pool: sky.Pool) -> None:
    """Back to the caller, and from there to the next call; what the caller writes to it stays the caller's."""

    @sky.function
    def look(array: Any) -> tuple[str, Any]:
        return _memory_of(array), array

    @sky.function
    def make() -> Any:
        return np.arange(1_000_000)

    made = make() >> pool
    seen, back = look(made) >> pool
    assert _memory_of(made) == seen == _memory_of(back)
    back += 1
    seen_changed, back_again = look(back) >> pool
    assert _memory_of(back_again) == seen_changed != seen
    assert (made[-1], back[-1], back_again[-1]) == (999_999, 1_000_000, 1_000_000)


def test_array_changed_between_calls_is_sent_as_it_is(pool: sky.Pool) -> None:
    """A buffer is named by its content and not by its place."""

    @sky.function
    def first(array: Any) -> float:
        return float(array[0])

    array = np.zeros(1_000_000)
    seen = []
    for value in (1.0, 2.0, 2.0, 3.0):
        array[0] = value
        seen.append(first(array) >> pool)
    assert seen == [1.0, 2.0, 2.0, 3.0]


def test_large_results_are_the_callers_own(pool: sky.Pool) -> None:
    """A later result is not written over an earlier one that is still held."""

    @sky.function
    def full(value: int) -> Any:
        return np.full(3_000_000, value)

    held = [full(value) >> pool for value in range(6)]
    held[0][:] = 9
    assert [int(array[-1]) for array in held] == [9, 1, 2, 3, 4, 5]
    assert pool.map(lambda value: bytes([value]) * 3_000_000, range(4)) == [bytes([v]) * 3_000_000 for v in range(4)]


def test_broadcast_sends_a_large_argument_to_every_node(pool: sky.Pool) -> None:
    """One memory serves all of them."""

    @sky.function
    def last(data: bytes) -> int:
        return data[-1]

    assert last(b"x" * 5_000_000) @ pool == [ord("x")] * 2


def test_a_cached_function_of_a_program_keeps_what_it_found(pool: sky.Pool) -> None:
    """Loaded once in each worker, and anew once what it captures has changed; Python has only its name for it."""
    source = """
import functools, os
size = 1
@functools.cache
def load(name):
    return name, size, os.urandom(8)
def use():
    return load("model")
"""
    space: dict[str, Any] = {"__name__": "__main__"}
    exec(source, space)
    use = sky.function(space["use"])
    loaded = {use() >> pool for _ in range(8)}
    assert {row[:2] for row in loaded} == {("model", 1)}
    assert len(loaded) <= 2
    space["size"] = 2
    assert (use() >> pool)[:2] == ("model", 2)


def test_a_cached_function_calls_itself(pool: sky.Pool) -> None:
    """Its cache holds on the way."""

    @functools.cache
    def fib(n: int) -> int:
        return n if n < 2 else fib(n - 1) + fib(n - 2)

    assert sky.function(lambda: fib(60))() >> pool == 1548008755920
