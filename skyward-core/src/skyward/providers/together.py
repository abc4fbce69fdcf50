"""Calls of a cloud that are made side by side, of which none is left under way when one fails."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

__all__ = ["together"]


async def together(*calls: Awaitable[Any]) -> list[Any]:
    """
    Wait for all calls, and return their answers.

    Args:
        calls: The calls.

    Raises:
        SkywardError: The first that one of them raised, once all have ended.

    >>> async def call(number):
    ...     return number
    >>> asyncio.run(together(call(1), call(2)))
    [1, 2]
    """
    answers = await asyncio.gather(*calls, return_exceptions=True)
    for answer in answers:
        if isinstance(answer, BaseException):
            raise answer
    return answers
