"""Records of machines without a client, on this user's disk: a file for each pool, that one program takes."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import pickle
import re
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import attrs

from skyward import private
from skyward.engine.guardian.journal import STATE_HINT, journal_path
from skyward.errors import ConfigError

__all__ = ["RecordFolder"]

_log = logging.getLogger(__name__)

VERSION = 1
"""The version of these files; those of another one are left where they are."""

_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_TAKEN = ".taken"
_KEPT = 30 * 24 * 3600.0
_MOST = 16 << 20


class Head(attrs.AttrsInstance, Protocol):
    """What may be read of a record by whatever lists them."""

    @property
    def pool_id(self) -> str:
        """Return the pool's id, which names the file."""


H = TypeVar("H", bound=Head)
B = TypeVar("B")


class RecordFolder(Generic[H, B]):
    """
    Keep records of one kind.

    Args:
        name: The folder's name, beside the journal.
        head: The class of what may be listed; its fields are plain values, and tuples of them.
        body: The class of what it takes to reach the machines.
        dumps: Pickles it.
    """

    def __init__(self, name: str, head: type[H], body: type[B], dumps: Callable[[B], bytes] = pickle.dumps) -> None:
        self._name = name
        self._head = head
        self._body = body
        self._dumps = dumps

    @property
    def path(self) -> Path:
        """Return where the records are."""
        return journal_path().with_name(self._name)

    def write(self, about: H, body: B) -> None:
        """
        Write a record, in place of one of the same pool.

        Args:
            about: What may be read by whatever lists them.
            body: What it takes to reach the machines.

        Raises:
            OSError: If it is not on the disk; nothing is left there then.
            ConfigError: If the directory for state is not this user's alone.
        """
        folder = private.directory(self.path, hint=STATE_HINT)
        _forget_old(folder)
        head = json.dumps({"version": VERSION, **attrs.asdict(about)})
        data = head.encode() + b"\n" + self._dumps(body)
        private.replace(folder / about.pool_id, data)

    def heads(self) -> list[H]:
        """List the records; what cannot be read is passed over."""
        folder = self.path
        try:
            names = sorted(path.name for path in folder.iterdir())
        except OSError:
            return []
        found = (self._read(folder / name) for name in names if _ID.fullmatch(name))
        return [about for about, _ in filter(None, found)]

    def read(self, about: H) -> B | None:
        """
        Return what it takes to reach machines, without taking them.

        Args:
            about: Which ones.

        Returns:
            None if another program has taken them, or it cannot be read.
        """
        return self._opened(self.path / about.pool_id)

    def take(self, about: H) -> B | None:
        """
        Take machines for one pool alone: of several programs that try, one gets them.

        Args:
            about: Which ones.

        Returns:
            What it takes to reach them; None if another program was faster, or it cannot be read.
        """
        path = self.path / about.pool_id
        taken = path.with_name(f"{about.pool_id}-{os.getpid()}{_TAKEN}")
        try:
            private.directory(path.parent, hint=STATE_HINT)
            path.rename(taken)
        except FileNotFoundError:
            return None
        except (OSError, ConfigError) as error:
            _log.warning("%s.unusable path=%s: %s", self._name, path, error)
            return None
        try:
            return self._opened(taken)
        finally:
            with contextlib.suppress(OSError):
                taken.unlink()

    def forget(self, pools: Iterable[str]) -> None:
        """
        Remove what is known of pools whose machines are ended; harmless for others.

        Args:
            pools: The pools' ids.
        """
        for pool_id in filter(_ID.fullmatch, pools):
            with contextlib.suppress(OSError):
                (self.path / pool_id).unlink()

    def _opened(self, path: Path) -> B | None:
        found = self._read(path)
        if found is None:
            return None
        try:
            body = pickle.loads(found[1])
        except Exception as error:
            # What another version of the classes wrote may raise anything.
            _log.warning("%s.unusable path=%s: %s", self._name, path, error)
            return None
        return body if isinstance(body, self._body) else None

    def _read(self, path: Path) -> tuple[H, bytes] | None:
        try:
            with open(private.opened(path, os.O_RDONLY), "rb") as file:
                line, _, rest = file.read(_MOST).partition(b"\n")
            facts: dict[str, Any] = json.loads(line)
            if facts.pop("version") != VERSION:
                _log.warning("%s.other_version path=%s: it is left as it is", self._name, path)
                return None
            plain = {name: tuple(value) if isinstance(value, list) else value for name, value in facts.items()}
            return self._head(**plain), rest
        except FileNotFoundError:
            return None
        except (OSError, ConfigError, ValueError, TypeError, KeyError, AttributeError) as error:
            _log.warning("%s.unusable path=%s: %s", self._name, path, error)
            return None


def _forget_old(folder: Path) -> None:
    """Remove what programs have left that died while they took machines."""
    for path in folder.iterdir():
        with contextlib.suppress(OSError):
            if time.time() - path.lstat().st_mtime > _KEPT:
                path.unlink()
