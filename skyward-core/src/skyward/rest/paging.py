"""What leads from one page of a list to the next, for `Api.pages`: a link, or a cursor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from skyward.rest.checked_answer import optional, text

__all__ = ["by_cursor", "by_link"]


def by_link(name: str) -> Callable[[Any], dict[str, str] | None]:
    """
    Return what reads the next page's parameters out of its link.

    Args:
        name: The field of an answer that holds the link, missing or null on the last page.

    >>> by_link("links.next")({"links": {"next": "https://shed.example/v1/machines?page=2"}})
    {'page': '2'}
    """

    def more(answer: Any) -> dict[str, str] | None:
        link = optional(answer, name, text)
        return dict(parse_qsl(urlsplit(link).query)) if link else None

    return more


def by_cursor(name: str, parameter: str) -> Callable[[Any], dict[str, str] | None]:
    """
    Return what reads the next page's cursor.

    Args:
        name: The field of an answer that holds the cursor, missing or null on the last page.
        parameter: The parameter by which it is asked for.

    >>> by_cursor("next", "after")({"next": "c2"}), by_cursor("next", "after")({"next": None})
    ({'after': 'c2'}, None)
    """

    def more(answer: Any) -> dict[str, str] | None:
        cursor = optional(answer, name, text)
        return None if cursor is None else {parameter: cursor}

    return more
