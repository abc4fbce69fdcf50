"""What the kernel reports about memory that ran out, on the machine or in the control group that this process is in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from skyward.node.metrics.readings import memory

_ROOT = Path("/")
_GROUPS = "sys/fs/cgroup"
_EVENTS = "memory.events", "memory.oom_control"
_USED = ("memory.current", "inactive_file"), ("memory.usage_in_bytes", "total_inactive_file")
_LIMITS = "memory.max", "memory.limit_in_bytes"


def kills(root: Path = _ROOT) -> int:
    """
    Count the processes that the kernel has killed for lack of memory: those of our group, or all if groups don't count.

    Args:
        root: Where `/proc` and `/sys` are.

    >>> kills() >= 0
    True
    """
    for group in _groups(root):
        for name in _EVENTS:
            if (count := _field(group / name, "oom_kill")) is not None:
                return count
    return _field(root / "proc/vmstat", "oom_kill") or 0


def limit_mb(root: Path = _ROOT) -> float | None:
    """
    Return the memory that our group may use, in MB; None if that is all there is.

    Args:
        root: Where `/proc` and `/sys` are.
    """
    total = total_mb(root)
    limits = [_text(group / name).strip() for group in _groups(root) for name in _LIMITS]
    least = min((int(limit) / 1e6 for limit in limits if limit.isdecimal()), default=None)
    return least if least is not None and total is not None and least < total else None


def total_mb(root: Path = _ROOT) -> float | None:
    """
    Return the machine's memory, in MB; None if it is not known.

    Args:
        root: Where `/proc` is.
    """
    known = memory(_text(root / "proc/meminfo"))
    return known.total * 1024 * 1024 / 1e6 if known is not None else None


def used_mb(root: Path = _ROOT) -> tuple[float, float | None]:
    """
    Return the memory in use on the machine, and in our group if groups count, in MB: caches are free.

    Args:
        root: Where `/proc` and `/sys` are.
    """
    known = memory(_text(root / "proc/meminfo"))
    machine = known.used * 1024 * 1024 / 1e6 if known is not None else 0.0
    for group in _groups(root):
        for name, cached in _USED:
            used = _text(group / name).strip()
            if used.isdecimal():
                return machine, max(0, int(used) - (_field(group / "memory.stat", cached) or 0)) / 1e6
    return machine, None


def _groups(root: Path) -> Iterator[Path]:
    """Return the directories of the group that accounts for our memory, and of those around it, the innermost first."""
    top, path = root / _GROUPS, None
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, _, rest = line.partition(":")
        controllers, _, name = rest.partition(":")
        if controllers == "memory":
            # The first version; where both are there, memory belongs to one of them.
            top, path = root / _GROUPS / "memory", name
            break
        if not controllers:
            path = name
    if path is None:
        return
    inner = top / path.strip("/")
    # In a container the path may be that of the machine, and what is mounted is our own group.
    while inner != top and inner.is_relative_to(top):
        yield inner
        inner = inner.parent
    yield top


def _field(path: Path, name: str) -> int | None:
    for line in _text(path).splitlines():
        key, _, value = line.partition(" ")
        if key == name and value.isdecimal():
            return int(value)
    return None


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, ValueError):
        return ""
