"""
Pools that another program ends: how their own programs are notified, before their machines are terminated.

On this computer that is a mark on the disk; on another one, where clouds have tags that can be changed, an expiry of 0.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import sys
import time
from collections.abc import Iterable
from pathlib import Path

from skyward import private
from skyward.blocking import in_thread
from skyward.engine.guardian.journal import STATE_HINT, journal_path
from skyward.errors import PoolEndedError
from skyward.model.instances.machine import Instance

__all__ = ["CallOff", "call_off"]

_log = logging.getLogger(__name__)

KEPT = 30 * 24 * 3600.0
"""Seconds for which a mark is kept that its pool's program has not removed: it is dead."""

_LONGEST = 400
# Room for the process and the time.
_COMMAND = 300
# It becomes the name of a file, and a cloud may send anything.
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


def call_off(pools: Iterable[str]) -> None:
    """
    Order the programs of pools to rent nothing more and end these pools; to be called before machines are terminated.

    Args:
        pools: The pools' ids.

    Raises:
        ConfigError: If the directory for state is not this user's alone.
        OSError: If it cannot be written down.
    """
    folder = private.directory(_folder(), hint=STATE_HINT)
    _forget_old(folder)
    command = " ".join(["sky", *sys.argv[1:]])
    if len(command) > _COMMAND:
        command = f"{command[:_COMMAND]}…"
    text = f"{command} (process {os.getpid()}, {time.strftime('%Y-%m-%d %H:%M:%S')})"
    for pool_id in filter(_ID.fullmatch, pools):
        descriptor = private.opened(folder / pool_id, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(text)


class CallOff:
    """
    Find out whether a pool was ended by another program; lives in the engine's loop.

    Args:
        pool_id: The pool.
        name: What the user calls it.
    """

    def __init__(self, pool_id: str, name: str) -> None:
        self._path = _folder() / pool_id
        self._name = name
        self._found = False

    async def check(self) -> None:
        """
        Look for the mark; a disk that cannot be read has none.

        Raises:
            PoolEndedError: If it is there.
        """
        if (by := await in_thread(_read, self._path)) is not None:
            self._found = True
            raise self._error(by)

    def check_listed(self, listed: Iterable[Instance]) -> None:
        """
        Look whether machines bear that their pool is being ended.

        Args:
            listed: The pool's machines.

        Raises:
            PoolEndedError: If one does.
        """
        if any(one.tags is not None and one.tags.called_off for one in listed):
            raise self._error("sky down, on another computer")

    async def close(self) -> None:
        """Remove the mark, when all that it asked for is done."""
        if self._found:
            with contextlib.suppress(OSError):
                await in_thread(self._path.unlink)

    def _error(self, by: str) -> PoolEndedError:
        return PoolEndedError(
            f"The pool {self._name!r} was ended from outside, by: {by}.",
            pool=self._name,
            hint="Nothing is rented in place of its machines. Open a new pool to continue.",
        )


def _folder() -> Path:
    return journal_path().with_name("ended")


def _read(path: Path) -> str | None:
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), encoding="utf-8", errors="replace") as file:
            return "".join(each if each.isprintable() else "?" for each in file.read(_LONGEST))
    except FileNotFoundError:
        return None
    except OSError as error:
        _log.info("called_off.unreadable path=%s: %s", path, error)
        return None


def _forget_old(folder: Path) -> None:
    """Remove marks that nothing looks for any more."""
    for path in folder.iterdir():
        with contextlib.suppress(OSError):
            if time.time() - path.lstat().st_mtime > KEPT:
                path.unlink()
