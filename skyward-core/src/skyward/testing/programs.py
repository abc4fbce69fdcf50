"""
The books of a user's programs: each has its own, beside those of the others, unless it names a directory.
"""

from __future__ import annotations

import os
import re
import secrets
import tempfile
import time
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path

from skyward import private
from skyward.model.instances.machine import InstanceState
from skyward.testing import power
from skyward.testing.books import HINT, Books

__all__ = ["account", "holding", "own", "sweep"]

_NAME = re.compile(r"(\d+)-[0-9a-f]+")


def own() -> str:
    """Return where this program's books are; its forked children share them."""
    return str(_root() / _program())


def account(directory: str) -> list[Books]:
    """
    Return the books of all programs that a person would look after, those of a directory first.

    Args:
        directory: Where a program's books are: beside those of others, or alone where the program named a directory.

    Raises:
        ConfigError: If another user could change what is written.
    """
    return [Books(directory), *(Books(str(other)) for other in _others(directory))]


def holding(directory: str, names: Iterable[str]) -> list[tuple[Books, list[str]]]:
    """
    Return the books in which machines are written, and which of them.

    Args:
        directory: As of `account`.
        names: The machines' ids.
    """
    wanted = list(names)
    found = [(books, [name for name in wanted if books.has(name)]) for books in account(directory)]
    return [(books, held) for books, held in found if held]


def sweep(directory: str) -> None:
    """Remove the books of programs that ended and of which no machine is left."""
    for other in _others(directory):
        books, now = Books(str(other)), time.time()
        # Another program may sweep at the same moment.
        with suppress(FileNotFoundError):
            machines = books.machines()
            if _runs(other) or any(machine.state(now) is not InstanceState.ENDED for machine in machines):
                continue
            for machine in machines:
                if os.path.lexists(machine.host):
                    power.remove(machine.host)
            books.clear()


def _root() -> Path:
    # Short, because names of sockets lie below it: a hundred characters are all they may have on macOS.
    return Path(tempfile.gettempdir()) / f"sky-{os.getuid()}"


@cache
def _program() -> str:
    # A number comes around; what is drawn keeps this program from the books of one that had it.
    return f"{os.getpid()}-{secrets.token_hex(2)}"


def _others(directory: str) -> list[Path]:
    root = _root()
    if Path(directory).parent != root or not root.exists():
        return []
    private.directory(root, hint=HINT)
    return sorted(path for path in root.iterdir() if _NAME.fullmatch(path.name) and str(path) != directory)


def _runs(books: Path) -> bool:
    """Return whether the program runs that made these books; one that cannot be asked counts as running."""
    try:
        os.kill(int(books.name.partition("-")[0]), 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
