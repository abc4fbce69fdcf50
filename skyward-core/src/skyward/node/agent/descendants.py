"""Find and end every process that a node started, whatever it did to get away."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

MARK = "SKYWARD_NODE"
"""The environment variable that every process of a node inherits: pool and node."""

DIRECTORY = "SKYWARD_NODE_DIRECTORY"
"""The environment variable that names its directory to an agent on the client's machine; its children have it not."""

OUTLIVES = "SKYWARD_OUTLIVES_NODE"
"""The environment variable of a process that puts its machine right when a node has ended, and ends by itself."""

_ROUNDS = 50


def adopt_orphans() -> None:
    """Make orphaned descendants children of this process, so that none is lost."""
    if sys.platform == "linux":
        import ctypes

        pr_set_child_subreaper = 36
        ctypes.CDLL(None).prctl(pr_set_child_subreaper, 1)


def end_group(pid: int) -> None:
    """Kill a process and the group that it leads."""
    for kill in (os.killpg, os.kill):
        try:
            kill(pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            continue


def ended_children() -> Iterator[tuple[int, int, Any]]:
    """Collect the children that have ended; yield the number, the status and the resources used of each."""
    while True:
        try:
            pid, status, usage = os.wait4(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if not pid:
            return
        yield pid, status, usage


def end_children() -> None:
    """Kill and reap this process's children and all that become its children by that, but those that outlive a node."""
    for _ in range(_ROUNDS):
        for pid in _children(os.getpid()):
            if not _outlives(pid):
                end_group(pid)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.005)


def end_marked(mark: str) -> None:
    """Kill every process of this machine whose environment carries the mark, and its children; on Linux only."""
    entry = f"{MARK}={mark}".encode()
    for _ in range(_ROUNDS):
        found = False
        for pid in _carrying(entry):
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
                found = True
        if not found:
            return
        time.sleep(0.005)


def _carrying(entry: bytes) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError, ValueError):
            if entry in path.read_bytes().split(b"\0"):
                found.append(int(path.parent.name))
    return [pid for pid in found if pid != os.getpid()]


def _outlives(pid: int) -> bool:
    try:
        return f"{OUTLIVES}=1".encode() in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return False


def _children(pid: int) -> list[int]:
    children = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_bytes().rpartition(b")")[2].split()
            if int(fields[1]) == pid:
                children.append(int(path.parent.name))
        except (OSError, ValueError, IndexError):
            continue
    return children
