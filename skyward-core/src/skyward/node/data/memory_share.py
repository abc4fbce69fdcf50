"""How much of a machine's memory large buffers may take that are kept for later calls."""

from __future__ import annotations

from pathlib import Path

from skyward.node.agent.out_of_memory import limit_mb, total_mb, used_mb

SHARE = 0.1
"""Which part of the memory that is."""

LEAST = 64 << 20
"""Bytes that are kept in any case, and where the machine's memory is not known."""


def share_of_memory(root: Path = Path("/")) -> int:
    """
    Count the bytes that may be kept: a tenth of the machine's memory, or of what our control group may use of it.

    Args:
        root: Where `/proc` and `/sys` are.

    >>> share_of_memory() >= LEAST
    True
    """
    most = limit_mb(root) or total_mb(root) or 0.0
    return max(LEAST, int(most * 1e6 * SHARE))


def free_memory(root: Path = Path("/")) -> int | None:
    """
    Count the bytes of memory that can still be taken: on the machine, and in our control group; None if unknown.

    Args:
        root: Where `/proc` and `/sys` are.

    >>> (free_memory() or 1) > 0
    True
    """
    total, limit = total_mb(root), limit_mb(root)
    if total is None:
        return None
    machine, group = used_mb(root)
    free = total - machine
    if limit is not None and group is not None:
        free = min(free, limit - group)
    return max(0, int(free * 1e6))
