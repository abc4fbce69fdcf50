"""How an error reports that memory ran out, and what it advises."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def described(facts: Mapping[str, Any]) -> str:
    """
    Return what memory had to do with the end of a process that was killed.

    Args:
        facts: What its agent found: `ran_out`, whether the kernel has killed for lack of memory while it lived; in MB,
            and None where unknown, `peak`, the most that it held, `limit` of the whole node, and the machine's `total`.

    >>> described({"ran_out": True, "peak": 295.2, "limit": 300.0, "total": 16000.0})
    ', probably for lack of memory: it held up to 0.30 GB, and the limit of the whole node is 0.30 GB'
    >>> described({"ran_out": False, "peak": 12500.0, "limit": None, "total": 16000.0})
    " (often the kernel's out-of-memory killer: it held up to 12 GB, and the machine has 16 GB)"
    >>> described({})
    ''
    """
    if not facts:
        return ""
    peak, limit, total = (facts.get(name) for name in ("peak", "limit", "total"))
    held = f"it held up to {_gb(peak)}" if peak else ""
    most = f"the limit of the whole node is {_gb(limit)}" if limit else f"the machine has {_gb(total)}" if total else ""
    figures = ", and ".join(filter(None, (held, most)))
    figures = f": {figures}" if figures else ""
    if facts.get("ran_out"):
        return f", probably for lack of memory{figures}"
    return f" (often the kernel's out-of-memory killer{figures})"


def advice(facts: Mapping[str, Any]) -> str:
    """
    Return what to do, if memory ran out.

    Args:
        facts: As for `described`.

    >>> advice({"ran_out": False})
    ''
    """
    if not facts.get("ran_out"):
        return ""
    return " Run fewer at once on a node (concurrency=, per_node=), have each hold less, or ask for more: memory_gb=."


def _gb(mb: float) -> str:
    return f"{mb / 1000:.2f} GB" if mb < 10_000 else f"{mb / 1000:.0f} GB"
