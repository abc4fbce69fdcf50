"""Where stored logs are: a folder for each pool in the user's directory for state, and how many of them are kept."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import stat
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from skyward import private
from skyward.engine.guardian.journal import STATE_HINT, journal_path
from skyward.engine.instances.process_locks import ProcessLocks
from skyward.errors import ConfigError
from skyward.plan.logs.log_format import VERSION
from skyward.plan.logs.stored_pool import StoredPool, stored_pool

__all__ = ["ALL_BYTES", "ALL_POOLS", "LOCKS", "logs_path", "pool_folder", "prune", "stored_pools", "write_facts"]

_log = logging.getLogger(__name__)

ALL_BYTES = 1 << 30
"""What the logs of all pools may hold together; the oldest go."""

ALL_POOLS = 1000
"""How many pools have one."""

_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_END = re.compile(r"end\.\d+\.json")
_MOST = 16 << 20


def logs_path() -> Path:
    """Return the folder that has all of them."""
    return journal_path().with_name("logs")


def pool_folder(pool_id: str) -> Path:
    """Return the folder of a pool's log."""
    return logs_path() / pool_id


LOCKS = ProcessLocks(lambda pool_id: pool_folder(pool_id) / "lock", STATE_HINT)
"""What a pool's program has while it writes its log."""


def write_facts(path: Path, facts: Mapping[str, Any]) -> None:
    """
    Write a small file in a pool's folder, whole or not at all.

    Args:
        path: The file.
        facts: What is in it, as plain values.

    Raises:
        OSError: If it is not on the disk.
        ConfigError: If the folder is not this user's alone.
    """
    private.directory(path.parent, hint=STATE_HINT)
    hidden = path.with_name(f".{path.name}")
    try:
        with open(private.opened(hidden, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "w", encoding="utf-8") as file:
            json.dump({"skyward_log": VERSION, **facts}, file, default=str)
        hidden.rename(path)
    except OSError:
        with contextlib.suppress(OSError):
            hidden.unlink()
        raise


def stored_pools() -> list[StoredPool]:
    """List the pools that have a stored log, newest first; what cannot be read is named in the log and passed over."""
    try:
        names = [path.name for path in logs_path().iterdir() if _ID.fullmatch(path.name)]
    except OSError:
        return []
    return sorted(filter(None, map(_stored, names)), key=lambda pool: pool.began, reverse=True)


def prune(keep: str, most: int = ALL_BYTES, pools: int = ALL_POOLS) -> list[str]:
    """
    Delete the logs of the oldest pools until the others hold no more than they may; those of open pools stay.

    Args:
        keep: The id of a pool that stays.
        most: How many bytes all may hold.
        pools: How many pools may have one.

    Returns:
        The ids of the pools whose logs are gone.
    """
    try:
        folders = [path for path in logs_path().iterdir() if _ID.fullmatch(path.name)]
    except OSError:
        return []
    sizes = {path: _size(path) for path in folders}
    changed = {path: _changed(path) for path in folders}
    total, count, gone = sum(sizes.values()), len(folders), []
    for path in sorted(folders, key=changed.__getitem__):
        if total <= most and count <= pools:
            break
        if path.name == keep or LOCKS.held(path.name):
            continue
        private.remove(path)
        total, count = total - sizes[path], count - 1
        gone.append(path.name)
    return gone


def _stored(pool_id: str) -> StoredPool | None:
    folder = pool_folder(pool_id)
    try:
        facts = _read(folder / "pool.json")
        ends = [_read(path) for path in sorted(folder.iterdir()) if _END.fullmatch(path.name)]
        return stored_pool(facts, ends, lives=LOCKS.held(pool_id), path=str(folder))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, ConfigError) as error:
        _log.warning("logs.unreadable path=%s: %s", folder, error)
        return None


def _read(path: Path) -> dict[str, Any]:
    """
    Read a small file.

    Raises:
        OSError: If it cannot be read.
        ValueError: If it is damaged, or of a newer version.
    """
    with open(private.opened(path, os.O_RDONLY), encoding="utf-8") as file:
        found = json.loads(file.read(_MOST))
    if not isinstance(found, dict) or not isinstance(found.get("skyward_log"), int):
        raise ValueError(f"{path.name} is no file of a stored log")
    if found["skyward_log"] > VERSION:
        raise ValueError(f"{path.name} is of version {found['skyward_log']}, and this program reads up to {VERSION}")
    return found


def _size(folder: Path) -> int:
    size = 0
    with contextlib.suppress(OSError):
        for path in folder.iterdir():
            with contextlib.suppress(OSError):
                facts = path.lstat()
                size += facts.st_size if stat.S_ISREG(facts.st_mode) else 0
    return size


def _changed(folder: Path) -> float:
    with contextlib.suppress(OSError):
        return folder.stat().st_mtime
    return time.time()
