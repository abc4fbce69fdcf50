"""Tags within the limits of a cloud's names, labels and tags."""

from __future__ import annotations

import re
from collections.abc import Callable

__all__ = ["escaped", "fitting", "node_number", "unescaped"]


def fitting(text: str, room: int, encode: Callable[[str], str]) -> str:
    """
    Return as much of the beginning of a text, encoded, as there is room for; no character is cut in two.

    Args:
        text: The text.
        room: Characters that there is room for.
        encode: Writes a text with the characters that the cloud allows.

    >>> fitting("ann@laptop", 8, escaped)
    'ann_40la'
    """
    written = ""
    for character in text:
        more = encode(character)
        if len(written) + len(more) > room:
            break
        written += more
    return written


def escaped(text: str) -> str:
    """
    Write a text in small letters, digits, hyphens and low lines: each other byte as two digits after a low line.

    >>> escaped("me@Box"), unescaped("me_40_42ox")
    ('me_40_42ox', 'me@Box')
    """
    return re.sub(rb"[^a-z0-9-]", lambda found: b"_%02x" % found[0][0], text.encode()).decode()


def unescaped(text: str) -> str:
    """Return the text that `escaped` has written."""
    raw = re.sub(rb"_([0-9a-f]{2})", lambda found: bytes([int(found[1], 16)]), text.encode())
    return raw.decode("utf-8", "replace")


def node_number(text: str) -> int | None:
    """
    Return the node that a text names; None if it is no number of one.

    >>> node_number("12"), node_number("")
    (12, None)
    """
    return int(text) if text.isascii() and text.isdigit() else None
