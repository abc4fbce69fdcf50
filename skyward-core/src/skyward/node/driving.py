"""Coroutines and async generators, driven from the plain thread that a call has."""

from __future__ import annotations

from collections.abc import AsyncIterator, Coroutine, Iterator
from typing import Any


def run_coroutine(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """
    Run a coroutine to its end.

    Raises:
        Exception: What it raises.
    """
    import asyncio

    return asyncio.run(coroutine)


def items_of(stream: AsyncIterator[Any]) -> Iterator[Any]:
    """
    Give what an async generator gives.

    Raises:
        Exception: What it raises.
    """
    import asyncio

    with asyncio.Runner() as runner:
        while True:
            try:
                yield runner.run(_next_of(stream))
            except StopAsyncIteration:
                return


async def _next_of(stream: AsyncIterator[Any]) -> Any:
    return await stream.__anext__()
