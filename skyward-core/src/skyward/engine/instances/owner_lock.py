"""The lock that a client has on a pool that outlives it: the kernel releases it when the client's process dies."""

from __future__ import annotations

from pathlib import Path

from skyward.engine.guardian.journal import STATE_HINT, journal_path
from skyward.engine.instances.detached_records import DETACHED
from skyward.engine.instances.process_locks import ProcessLocks
from skyward.plan.instances.detached_pool import Detached

__all__ = ["acquire", "owner_lives", "release", "without_client"]


def acquire(pool_id: str) -> bool:
    """
    Take the lock of a pool, until `release` or the end of this process; return whether it was free.

    Args:
        pool_id: The pool.

    Raises:
        OSError: If there is no room for it on the disk, or the disk has no locks.
        ConfigError: If the directory for state is not this user's alone.
    """
    return _LOCKS.acquire(pool_id)


def release(pool_id: str, *, over: bool) -> None:
    """
    Release the lock of a pool; harmless for one that this process has not.

    Args:
        pool_id: The pool.
        over: Whether the pool has ended, so that nothing takes the lock any more.
    """
    _LOCKS.release(pool_id, over=over)


def owner_lives(pool_id: str) -> bool:
    """Return whether a process has the lock of a pool: this one, or another."""
    return _LOCKS.held(pool_id)


def without_client() -> list[Detached]:
    """List the pools of this user that may be attached: those that were detached, and those whose client died."""
    return [about for about in DETACHED.heads() if not (about.owned and owner_lives(about.pool_id))]


def _path(pool_id: str) -> Path:
    return journal_path().with_name("detached") / f"{pool_id}.lock"


_LOCKS = ProcessLocks(_path, STATE_HINT)
