"""A refusal that says what was hoped for, such as that something is gone already."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from skyward.errors import SkywardError

__all__ = ["unless"]

T = TypeVar("T")


async def unless(refused: Callable[[SkywardError], bool], call: Awaitable[T]) -> T | None:
    """
    Return what a call returns; None where it was refused in a way that is no failure.

    Args:
        refused: Returns whether an error is such a refusal.
        call: The call.

    Raises:
        SkywardError: If it was refused in another way.

    >>> import asyncio
    >>> async def delete():
    ...     raise SkywardError("There is no such machine.")
    >>> asyncio.run(unless(lambda error: "no such" in error.message, delete()))
    """
    try:
        return await call
    except SkywardError as error:
        if not refused(error):
            raise
        return None
