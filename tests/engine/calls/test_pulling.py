"""Arguments come from iterators side by side, also from asynchronous ones, and what can be ended is ended."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import CancelledError
from typing import Any

import pytest

from skyward.engine.calls.pulling import ItemSource
from skyward.errors import UsageError


async def later(*items: Any) -> AsyncIterator[Any]:
    """Give items from an event loop."""
    for item in items:
        await asyncio.sleep(0)
        yield item


@pytest.mark.parametrize(
    ("iterables", "star", "expected"),
    [
        ([[1, 2]], False, [(1,), (2,)]),
        ([[1, 2, 3], "ab"], False, [(1, "a"), (2, "b")]),
        ([[(1, 2), [3], "ab"]], True, [(1, 2), (3,), ("a", "b")]),
        ([[]], True, []),
    ],
)
def test_arguments_of_calls(iterables: list[Any], star: bool, expected: list[Any]) -> None:
    """The shortest iterable ends them."""
    assert expected == list(ItemSource(iterables, star=star))


def test_asynchronous_iterables_beside_others() -> None:
    """Without a running event loop they have one of their own."""
    for source, expected in (
        (ItemSource([later(1, 2, 3), "ab"]), [(1, "a"), (2, "b")]),
        (ItemSource([later((1, 2))], star=True), [(1, 2)]),
    ):
        assert expected == list(source)
        source.close()


@pytest.mark.parametrize(
    ("iterables", "total"), [([[1, 2]], 2), ([[1, 2, 3], "ab"], 2), ([iter([1])], None), ([[1], iter([1])], None)]
)
def test_how_many_there_will_be(iterables: list[Any], total: int | None) -> None:
    """Where each iterable has a length."""
    assert total == ItemSource(iterables).total


def test_what_is_refused() -> None:
    """No iterable, something else, and of strict ones those of different lengths."""
    with pytest.raises(TypeError, match="at least one iterable"):
        ItemSource([])
    with pytest.raises(TypeError, match="not iterable"):
        ItemSource([3])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="shorter than"):
        list(ItemSource([[1, 2], [1]], strict=True))


def test_generators_are_closed_and_files_are_not() -> None:
    """A file is the user's, who may go on reading."""
    ended = []

    def source() -> Iterator[int]:
        try:
            yield from range(10)
        finally:
            ended.append("sync")

    async def other() -> AsyncIterator[int]:
        try:
            yield 1
            yield 2
        finally:
            ended.append("async")

    with open(__file__, encoding="utf-8") as file:
        pulled = ItemSource([source(), file, other()])
        assert (0, '"""Arguments', 1) == tuple(one if isinstance(one, int) else one[:12] for one in next(pulled))
        pulled.close()
        assert not file.closed
    assert ["async", "sync"] == sorted(ended)


def test_one_that_waits_in_an_event_loop_can_be_interrupted() -> None:
    """In its own loop, and in that of the program."""

    async def stuck() -> AsyncIterator[int]:
        waits.set()
        await asyncio.Event().wait()
        yield 1

    waits = threading.Event()
    own = ItemSource([stuck()])
    threading.Thread(target=lambda: (waits.wait(10), own.interrupt())).start()
    with pytest.raises(CancelledError):
        next(own)
    own.close()

    async def main() -> None:
        source = ItemSource([stuck()])
        assert source.needs_this_thread
        waits.clear()
        pulling = asyncio.create_task(asyncio.to_thread(next, source))
        await asyncio.to_thread(waits.wait, 10)
        source.interrupt()
        with pytest.raises(asyncio.CancelledError):
            await pulling
        source.close()

    asyncio.run(main())


def test_an_event_loop_that_has_ended_gives_nothing_more() -> None:
    """The error says so, instead of waiting for ever."""

    async def main() -> ItemSource:
        return ItemSource([later(1)])

    source = asyncio.run(main())
    with pytest.raises(UsageError, match="has ended before them"):
        next(source)
    source.close()
