"""
The calls of a pool whose client may die, on this user's disk: a snapshot that is replaced as they come and go.

One line of JSON says what the file is, and each line after it is a call: id, node or null, lane, timeout, function, and
why it is lost without its client, or nothing.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from attrs import frozen

from skyward import private
from skyward.engine.instances.detached_records import DETACHED, LeftCall
from skyward.errors import ConfigError

__all__ = ["JournalledCalls", "forget_calls", "read_calls", "write_calls"]

_log = logging.getLogger(__name__)

VERSION = 1
"""The version of these files."""

_MOST = 256 << 20


@frozen(kw_only=True)
class JournalledCalls:
    """
    Hold the calls that a client had.

    Args:
        nodes: Those that were sent to each node, by its index, oldest first.
        unsent: Those that no node had.
        last: The highest id of a task that there had been.
    """

    nodes: Mapping[int, tuple[LeftCall, ...]]
    unsent: tuple[LeftCall, ...] = ()
    last: int = 0


def write_calls(pool_id: str, calls: Iterable[tuple[int | None, LeftCall]], last: int) -> None:
    """
    Write a snapshot in place of the one before.

    Args:
        pool_id: The pool.
        calls: Each call and the node that has it.
        last: The highest id of a task that there has been.

    Raises:
        OSError: If it is not on the disk; the one before is there then.
    """
    rows = [[one.id, node, one.lane, one.timeout, one.function, one.lost] for node, one in calls]
    lines = [json.dumps({"version": VERSION, "last": last, "calls": len(rows)}), *map(json.dumps, rows)]
    private.replace(_path(pool_id), ("\n".join(lines) + "\n").encode())


def read_calls(pool_id: str) -> JournalledCalls:
    """
    Return the last snapshot; one that cannot be read is set aside, and the nodes say by themselves what they have.

    Args:
        pool_id: The pool.

    Raises:
        ConfigError: If another version of Skyward wrote it.
    """
    path = _path(pool_id)
    try:
        with open(private.opened(path, os.O_RDONLY), "rb") as file:
            head, *lines = file.read(_MOST).decode().splitlines()
        said = json.loads(head)
        if said["version"] != VERSION:
            raise ConfigError(
                f"The calls of pool {pool_id} were written down by another version of Skyward: {path}.",
                pool=pool_id,
                hint="Attach it with that version, or move the file away: the nodes know their calls without names.",
            )
        if said["calls"] != len(lines):
            raise ValueError(f"it has {len(lines)} calls of {said['calls']}")
        nodes: dict[int, list[LeftCall]] = {}
        unsent: list[LeftCall] = []
        for number, node, lane, timeout, function, lost in map(json.loads, lines):
            call = LeftCall(id=int(number), function=str(function), lane=int(lane), timeout=float(timeout), lost=lost)
            (unsent if node is None else nodes.setdefault(int(node), [])).append(call)
        found = {node: tuple(calls) for node, calls in nodes.items()}
        return JournalledCalls(nodes=found, unsent=tuple(unsent), last=int(said["last"]))
    except ConfigError:
        raise
    except FileNotFoundError:
        return JournalledCalls(nodes={})
    except (OSError, ValueError, KeyError, TypeError) as error:
        aside = path.with_name(f"{path.name}.unusable")
        with contextlib.suppress(OSError):
            path.rename(aside)
        _log.warning(
            "The calls of pool %s could not be read (%s: %s), and their nodes are asked for them; the file is kept: %s",
            pool_id,
            type(error).__name__,
            error,
            aside,
        )
        return JournalledCalls(nodes={})


def forget_calls(pool_id: str) -> None:
    """Remove the snapshot, if there is one."""
    with contextlib.suppress(OSError):
        _path(pool_id).unlink()


def _path(pool_id: str) -> Path:
    return DETACHED.path / f"{pool_id}.calls"
