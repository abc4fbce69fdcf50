"""What commands write: plain text, so that it can be read, cut and searched by other programs."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

from skyward.plain import plain_line, plain_text


def say(text: str) -> None:
    """Print what was asked for."""
    sys.stdout.write(f"{plain_text(text)}\n")


def complain(text: str) -> None:
    """Print what went wrong, apart from what was asked for."""
    text = plain_text(text)
    sys.stderr.write(text if text.endswith("\n") else f"sky: {text}\n")


def table(rows: Iterable[Sequence[str]], *, indent: str = "  ") -> str:
    """
    Align the columns of rows.

    Args:
        rows: One text for each column; the last column may be of any length.
        indent: What each line begins with.

    >>> print(table([("clean", "Empty it."), ("providers", "List them.")]))
      clean      Empty it.
      providers  List them.
    """
    listed = [list(map(plain_line, row)) for row in rows]
    widths = [max(map(len, column)) for column in zip(*listed, strict=True)]
    lines = ("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)) for row in listed)
    return "\n".join(f"{indent}{line}".rstrip() for line in lines)
