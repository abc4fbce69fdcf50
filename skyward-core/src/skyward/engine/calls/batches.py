"""Many calls or nodes, dealt with some at a time: nothing else in the engine's loop waits for all of them."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeVar

T = TypeVar("T")

PART = 256
"""Calls that are dealt with in one go, which takes some milliseconds."""


def post_in_parts(post: Callable[..., None], do: Callable[[Sequence[T]], None], things: Sequence[T]) -> None:
    """
    Post a call for every piece of a sequence, one after the other, with room for others between them.

    Args:
        post: Has something done in the loop soon.
        do: What is done with each piece.
        things: All of them.

    >>> post_in_parts(lambda do, part: do(part), lambda part: print(len(part)), range(600))
    256
    256
    88
    """
    for at in range(0, len(things), PART):
        post(do, things[at : at + PART])


def in_parts(post: Callable[..., None], do: Callable[[Sequence[T]], None], things: Sequence[T]) -> None:
    """
    Call something with the first piece of a sequence at once, and with the others as `post_in_parts` does.

    Args:
        post: Has something done in the loop soon.
        do: What is done with each piece.
        things: All of them.
    """
    do(things[:PART])
    post_in_parts(post, do, things[PART:])


async def all_of(things: Iterable[Awaitable[T]]) -> list[T]:
    """
    Wait for several things side by side until all of them have ended, and return what they gave, in their order.

    Args:
        things: What is waited for.

    Raises:
        BaseException: What the first of those raised that did.
    """
    ended = await asyncio.gather(*things, return_exceptions=True)
    for one in ended:
        if isinstance(one, BaseException):
            raise one
    return [one for one in ended if not isinstance(one, BaseException)]


class BatchTurns:
    """
    Resume so many coroutines in each turn of the loop, in the order in which they came.

    Args:
        each: How many.

    >>> async def passed(count: int) -> list[int]:
    ...     turns, gone = BatchTurns(each=2), list[int]()
    ...     async def go(number: int) -> None:
    ...         await turns.take()
    ...         gone.append(number)
    ...     tasks = [asyncio.ensure_future(go(number)) for number in range(count)]
    ...     await asyncio.sleep(0)
    ...     at_first = list(gone)
    ...     await asyncio.gather(*tasks)
    ...     return [*at_first, len(gone)]
    >>> asyncio.run(passed(5))
    [0, 1, 5]
    """

    def __init__(self, each: int) -> None:
        self._each = self._left = each
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def take(self) -> None:
        """Wait for a turn."""
        loop = asyncio.get_running_loop()
        if self._left == self._each:
            loop.call_soon(self._next, loop)
        if self._left:
            self._left -= 1
            return
        turn: asyncio.Future[None] = loop.create_future()
        self._waiting.append(turn)
        await turn

    def _next(self, loop: asyncio.AbstractEventLoop) -> None:
        self._left = self._each
        while self._waiting and self._left:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                self._left -= 1
        if self._left < self._each:
            loop.call_soon(self._next, loop)
