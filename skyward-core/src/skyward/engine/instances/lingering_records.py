"""Which machines of this user linger and how they are reached, on the disk: a file for each pool that was left."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import pickle
import re
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import attrs
from attrs import frozen

from skyward import private
from skyward.engine.guardian.journal import STATE_HINT, journal_path
from skyward.errors import ConfigError
from skyward.model.instances.machine import Instance
from skyward.plan.instances.lingering import Lingering
from skyward.plan.offers.choice import Candidate

__all__ = ["LeftMachine", "LeftPool", "forget", "lingering", "read", "take", "write"]

_log = logging.getLogger(__name__)

VERSION = 1
"""The version of these files; those of another one are left where they are."""

_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_TAKEN = ".taken"
_KEPT = 30 * 24 * 3600.0
_MOST = 16 << 20


@frozen(kw_only=True)
class LeftMachine:
    """
    Hold one machine that lingers.

    Args:
        instance: The machine; its address says which host key it has.
        candidate: The offer, and its market.
        mark: The name of its last node, which is that of the node's directory.
        token: Names the request that rented it.
        rented_at: When that was, in seconds since 1970.
        made: Digest of what was made of it: its image, and what plugins added.
    """

    instance: Instance
    candidate: Candidate
    mark: str
    token: str
    rented_at: float
    made: str


@frozen(kw_only=True)
class LeftPool:
    """
    Hold what it takes to go on with the machines of a pool that was left.

    Args:
        private_key: What logs in at them, as a text.
        machines: The machines.
        shared: What the machines of each region share, as its provider made it.
    """

    private_key: str = attrs.field(repr=False)
    machines: tuple[LeftMachine, ...]
    shared: tuple[tuple[str | None, Any], ...]


def write(about: Lingering, left: LeftPool) -> None:
    """
    Write down which machines linger.

    Args:
        about: What may be read by whatever lists them.
        left: What it takes to reach them.

    Raises:
        OSError: If it is not on the disk; nothing is left there then.
        ConfigError: If the directory for state is not this user's alone.
    """
    folder = private.directory(_folder(), hint=STATE_HINT)
    _forget_old(folder)
    head = json.dumps({"version": VERSION, **attrs.asdict(about)})
    data = head.encode() + b"\n" + pickle.dumps(left)
    hidden, path = folder / f".{about.pool_id}", folder / about.pool_id
    try:
        with open(private.opened(hidden, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        hidden.rename(path)
    except OSError:
        with contextlib.suppress(OSError):
            hidden.unlink()
        raise


def lingering() -> list[Lingering]:
    """List the pools of this user whose machines linger, or should have ended; what cannot be read is passed over."""
    folder = _folder()
    try:
        names = sorted(path.name for path in folder.iterdir())
    except OSError:
        return []
    found = (_read(folder / name) for name in names if _ID.fullmatch(name))
    return [about for about, _ in filter(None, found)]


def read(about: Lingering) -> LeftPool | None:
    """
    Return what it takes to reach machines, without taking them.

    Args:
        about: Which ones.

    Returns:
        None if another program has taken them, or it cannot be read.
    """
    return _left(_folder() / about.pool_id)


def take(about: Lingering) -> LeftPool | None:
    """
    Take machines for one pool alone: of several programs that try, one gets them.

    Args:
        about: Which ones.

    Returns:
        What it takes to reach them; None if another program was faster, or it cannot be read.
    """
    path = _folder() / about.pool_id
    taken = path.with_name(f"{about.pool_id}-{os.getpid()}{_TAKEN}")
    try:
        private.directory(path.parent, hint=STATE_HINT)
        path.rename(taken)
    except FileNotFoundError:
        return None
    except (OSError, ConfigError) as error:
        _log.warning("lingering.unusable path=%s: %s", path, error)
        return None
    try:
        return _left(taken)
    finally:
        with contextlib.suppress(OSError):
            taken.unlink()


def forget(pools: Iterable[str]) -> None:
    """
    Remove what is known of pools whose machines are ended; harmless for others.

    Args:
        pools: The pools' ids.
    """
    for pool_id in filter(_ID.fullmatch, pools):
        with contextlib.suppress(OSError):
            (_folder() / pool_id).unlink()


def _folder() -> Path:
    return journal_path().with_name("lingering")


def _left(path: Path) -> LeftPool | None:
    found = _read(path)
    if found is None:
        return None
    try:
        left = pickle.loads(found[1])
    except Exception as error:
        # What another version of the classes wrote may raise anything.
        _log.warning("lingering.unusable path=%s: %s", path, error)
        return None
    return left if isinstance(left, LeftPool) else None


def _read(path: Path) -> tuple[Lingering, bytes] | None:
    try:
        with open(private.opened(path, os.O_RDONLY), "rb") as file:
            line, _, rest = file.read(_MOST).partition(b"\n")
        facts = json.loads(line)
        if facts.pop("version") != VERSION:
            _log.warning("lingering.other_version path=%s: it is left as it is", path)
            return None
        return Lingering(**{**facts, "machines": tuple(facts["machines"])}), rest
    except FileNotFoundError:
        return None
    except (OSError, ConfigError, ValueError, TypeError, KeyError, AttributeError) as error:
        _log.warning("lingering.unusable path=%s: %s", path, error)
        return None


def _forget_old(folder: Path) -> None:
    """Remove what programs have left that died while they took machines."""
    for path in folder.iterdir():
        with contextlib.suppress(OSError):
            if time.time() - path.lstat().st_mtime > _KEPT:
                path.unlink()
