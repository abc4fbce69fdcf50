"""The lock that a client has on a pool that outlives it: the kernel releases it when the client's process dies."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import threading
from pathlib import Path

from skyward import private
from skyward.engine.guardian.journal import STATE_HINT, journal_path
from skyward.engine.instances.detached_records import DETACHED
from skyward.plan.instances.detached_pool import Detached

__all__ = ["acquire", "owner_lives", "release", "without_client"]

_held: dict[str, int] = {}
_guard = threading.Lock()


def acquire(pool_id: str) -> bool:
    """
    Take the lock of a pool, until `release` or the end of this process; return whether it was free.

    Args:
        pool_id: The pool.

    Raises:
        OSError: If there is no room for it on the disk, or the disk has no locks.
        ConfigError: If the directory for state is not this user's alone.
    """
    with _guard:
        if pool_id in _held:
            return False
        private.directory(_path(pool_id).parent, hint=STATE_HINT)
        descriptor = private.opened(_path(pool_id), os.O_RDWR | os.O_CREAT)
        # Of the process, and not of the file's descriptor, which a child that it forks would keep open.
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(descriptor)
            if error.errno in (errno.EACCES, errno.EAGAIN):
                return False
            raise
        _held[pool_id] = descriptor
        return True


def release(pool_id: str, *, over: bool) -> None:
    """
    Release the lock of a pool; harmless for one that this process has not.

    Args:
        pool_id: The pool.
        over: Whether the pool has ended, so that nothing takes the lock any more.
    """
    with _guard:
        descriptor = _held.pop(pool_id, None)
        if descriptor is None:
            return
        if over:
            with contextlib.suppress(OSError):
                _path(pool_id).unlink()
        os.close(descriptor)


def owner_lives(pool_id: str) -> bool:
    """Return whether a process has the lock of a pool: this one, or another."""
    with _guard:
        if pool_id in _held:
            return True
        try:
            descriptor = os.open(_path(pool_id), os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            return False
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return True
        finally:
            os.close(descriptor)
        return False


def without_client() -> list[Detached]:
    """List the pools of this user that may be attached: those that were detached, and those whose client died."""
    return [about for about in DETACHED.heads() if not (about.owned and owner_lives(about.pool_id))]


def _path(pool_id: str) -> Path:
    return journal_path().with_name("detached") / f"{pool_id}.lock"


def _forked() -> None:
    global _guard  # noqa: PLW0603  # a thread of the parent may have it
    _guard = threading.Lock()
    _held.clear()


os.register_at_fork(after_in_child=_forked)
