"""Many calls, dealt with some at a time: nothing else in the engine's loop waits for all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")

PART = 256
"""Calls that are dealt with in one go, which takes some milliseconds."""


def post_in_parts(post: Callable[..., None], do: Callable[[Sequence[T]], None], things: Sequence[T]) -> None:
    """
    Have something done with every piece of a sequence, one after the other, with room for others between them.

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
    Do something with the first piece of a sequence at once, and with the others as `post_in_parts` does.

    Args:
        post: Has something done in the loop soon.
        do: What is done with each piece.
        things: All of them.
    """
    do(things[:PART])
    post_in_parts(post, do, things[PART:])
