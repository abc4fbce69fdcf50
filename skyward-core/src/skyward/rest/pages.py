"""Lists that come in pages: every page is read, and a list that does not end is an error."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from skyward.errors import ProvisionError

__all__ = ["PAGES", "paged"]

T = TypeVar("T")
C = TypeVar("C")

PAGES = 1000
"""Pages that one list may have."""


async def paged(page: Callable[[C | None], Awaitable[tuple[Sequence[T], C | None]]], *, provider: str) -> list[T]:
    """
    Return the rows of all pages of a list.

    A machine on a page that is not read would be billed unseen.

    Args:
        page: Reads the page that a cursor leads to, the first one for None; returns its rows, and the cursor of the
            next page, None after the last.
        provider: The provider's name, for the error.

    Raises:
        ProvisionError: If a cursor comes twice, or there are more than `PAGES` pages.

    >>> import asyncio
    >>> async def page(cursor):
    ...     return ([1, 2], "next") if cursor is None else ([3], None)
    >>> asyncio.run(paged(page, provider="sample"))
    [1, 2, 3]
    """
    found: list[T] = []
    seen: list[C] = []
    cursor: C | None = None
    while True:
        rows, cursor = await page(cursor)
        found += rows
        if cursor is None:
            return found
        if cursor in seen or len(seen) >= PAGES:
            raise ProvisionError(
                f"A list of {provider} does not end: page {len(seen) + 1} leads to {cursor!r:.80}.",
                provider=provider,
                hint="See whether there is a newer release of Skyward.",
            )
        seen.append(cursor)
