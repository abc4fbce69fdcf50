"""Locks that a process has until it dies, whatever it dies of: the kernel releases them."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import threading
import weakref
from collections.abc import Callable
from pathlib import Path

from skyward import private

__all__ = ["ProcessLocks"]

_all: weakref.WeakSet[ProcessLocks] = weakref.WeakSet()


class ProcessLocks:
    """
    Hold locks by name, each of them a file.

    Args:
        path: Returns the file of a lock.
        hint: What to do where the folder is not this user's alone.
    """

    def __init__(self, path: Callable[[str], Path], hint: str) -> None:
        self._path = path
        self._hint = hint
        self._held: dict[str, int] = {}
        self._guard = threading.Lock()
        _all.add(self)

    def acquire(self, name: str) -> bool:
        """
        Take a lock, until `release` or the end of this process; return whether it was free.

        Args:
            name: The lock.

        Raises:
            OSError: If there is no room for it on the disk, or the disk has no locks.
            ConfigError: If the folder is not this user's alone.
        """
        with self._guard:
            if name in self._held:
                return False
            private.directory(self._path(name).parent, hint=self._hint)
            descriptor = private.opened(self._path(name), os.O_RDWR | os.O_CREAT)
            # Of the process, and not of the file's descriptor, which a child that it forks would keep open.
            try:
                fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                os.close(descriptor)
                if error.errno in (errno.EACCES, errno.EAGAIN):
                    return False
                raise
            self._held[name] = descriptor
            return True

    def release(self, name: str, *, over: bool) -> None:
        """
        Release a lock; harmless for one that this process has not.

        Args:
            name: The lock.
            over: Whether nothing takes it any more, so that its file is removed.
        """
        with self._guard:
            descriptor = self._held.pop(name, None)
            if descriptor is None:
                return
            if over:
                with contextlib.suppress(OSError):
                    self._path(name).unlink()
            os.close(descriptor)

    def held(self, name: str) -> bool:
        """Return whether a process has a lock: this one, or another."""
        with self._guard:
            if name in self._held:
                return True
            try:
                descriptor = os.open(self._path(name), os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
            except OSError:
                return False
            try:
                fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                return True
            finally:
                os.close(descriptor)
            return False

    def _forked(self) -> None:
        # A thread of the parent may have it; the locks themselves stay with the parent.
        self._guard = threading.Lock()
        self._held.clear()


def _forked() -> None:
    for locks in _all:
        locks._forked()


os.register_at_fork(after_in_child=_forked)
