"""
What stands around a function is of its kind, and lasts as long as its call.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from skyward.wrapping import during

KINDS = (inspect.isgeneratorfunction, inspect.iscoroutinefunction, inspect.isasyncgenfunction)
SEEN: list[str] = []


@contextmanager
def recorded() -> Iterator[None]:
    """Record when a call begins and ends."""
    SEEN.append("begin")
    try:
        yield
    finally:
        SEEN.append("end")


def plain(word: str) -> list[str]:
    SEEN.append("run")
    return [word]


def generator(word: str) -> Iterator[str]:
    SEEN.append("run")
    yield word


async def coroutine(word: str) -> list[str]:
    SEEN.append("run")
    return [word]


async def items(word: str) -> AsyncIterator[str]:
    SEEN.append("run")
    yield word


async def collected(stream: AsyncIterator[str]) -> list[str]:
    return [item async for item in stream]


@pytest.mark.parametrize(
    ("function", "run"),
    [
        (plain, list),
        (generator, list),
        (coroutine, asyncio.run),
        (items, lambda stream: asyncio.run(collected(stream))),
    ],
    ids=lambda one: getattr(one, "__name__", ""),
)
def test_a_context_lasts_as_long_as_the_call(function: Callable[..., Any], run: Callable[[Any], list[str]]) -> None:
    """The context is entered before a function of any kind runs, left after it, and the kind is kept."""
    SEEN.clear()
    wrapped = during(recorded)(function)
    assert [is_kind(function) for is_kind in KINDS] == [is_kind(wrapped) for is_kind in KINDS]
    assert function.__qualname__ == wrapped.__qualname__
    assert ["word"] == run(wrapped("word"))
    assert ["begin", "run", "end"] == SEEN


def test_leaving_a_generator_leaves_its_context() -> None:
    """A stream that is given up ends the context at once."""
    SEEN.clear()
    stream = during(recorded)(generator)("word")
    next(stream)
    stream.close()
    assert ["begin", "run", "end"] == SEEN


def test_what_is_sent_into_a_generator_arrives() -> None:
    """A wrapped generator is still spoken to as a generator, and returns what it returns."""

    def echo() -> Any:
        return (yield (yield "first"))

    stream = during(recorded)(echo)()
    assert ["first", "second"] == [next(stream), stream.send("second")]
    with pytest.raises(StopIteration, match="third"):
        stream.send("third")
