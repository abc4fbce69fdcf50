"""What commands write: plain text, so that it can be read, cut and searched by other programs."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from skyward.plain import plain_line, plain_text

if TYPE_CHECKING:
    from argparse import ArgumentParser


def say(text: str) -> None:
    """Print what was asked for."""
    sys.stdout.write(f"{plain_text(text)}\n")


def add_json(parser: ArgumentParser) -> None:
    """Add the option by which a command prints one JSON value in the place of a table."""
    parser.add_argument("--json", action="store_true", help="print one JSON value, for programs")


def say_json(value: Any) -> None:
    """Print what was asked for as one JSON value, and in ASCII: a terminal acts on nothing that is in it."""
    import json

    sys.stdout.write(f"{json.dumps(value, indent=2)}\n")


@contextmanager
def quiet(*logs: str) -> Iterator[None]:
    """
    Keep warnings of some loggers from standard error: what they say, the command says itself.

    Args:
        logs: Their names.
    """
    import logging

    loggers = [logging.getLogger(name) for name in logs]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)


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
