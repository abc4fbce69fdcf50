"""All pages of a list are read, and a list that does not end is an error."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from skyward.errors import ProvisionError
from skyward.rest.pages import PAGES, paged


def test_all_pages_are_read_in_their_order() -> None:
    """An empty one in between ends nothing."""

    async def page(cursor: int | None) -> tuple[Sequence[int], int | None]:
        number = cursor or 0
        return ([] if number == 1 else [number], number + 1 if number < 3 else None)

    assert [0, 2, 3] == asyncio.run(paged(page, provider="sample"))


def test_a_cursor_that_comes_twice_is_an_error() -> None:
    """The list would never end."""

    async def page(cursor: str | None) -> tuple[Sequence[int], str | None]:
        return [1], "again"

    with pytest.raises(ProvisionError, match="A list of sample does not end: page 2 leads to 'again'"):
        asyncio.run(paged(page, provider="sample"))


def test_a_list_without_end_is_an_error() -> None:
    """However many cursors there are."""
    asked: list[int | None] = []

    async def page(cursor: int | None) -> tuple[Sequence[int], int | None]:
        asked.append(cursor)
        return [1], (cursor or 0) + 1

    with pytest.raises(ProvisionError, match="does not end"):
        asyncio.run(paged(page, provider="sample"))
    assert PAGES + 1 == len(asked)
