"""
What ranks conclude from what they know of each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from skyward import aftermath

__all__ = ["is_aftermath", "is_met", "verdict"]


def verdict(held: Sequence[bytes], new: bytes) -> bytes:
    """
    Decide which group a broadcast has: the one that all ranks hold, else a new one.

    Args:
        held: What each rank holds, and how many collectives it has entered there; empty where that is none.
        new: The name of a new one.

    >>> verdict([b"3/9", b"3/9"], b"7"), verdict([b"3/9", b"3/8"], b"7"), verdict([b"", b""], b"7")
    (b'3/9', b'7', b'7')
    """
    return held[0] if held[0] and len(set(held)) == 1 else new


def is_aftermath(error: BaseException) -> bool:
    """
    Return whether an error may say only that another rank is gone.

    Args:
        error: What a rank ended with.

    >>> is_aftermath(RuntimeError("Connection closed by peer [127.0.0.1]:2500")), is_aftermath(RuntimeError("no"))
    (True, False)
    """
    return any(kind.__name__ == "DistError" for kind in type(error).__mro__) or aftermath.is_aftermath(error)


def is_met(
    asked: dict[str, object], *, backend: str, rank: int, world_size: int, timeout: timedelta | None = None
) -> bool:
    """
    Return whether a group that is there is what `init_process_group` is asked for.

    Args:
        asked: The arguments that were given.
        backend: The group's backend.
        rank: The process's rank in it.
        world_size: How many ranks it has.
        timeout: The limit of its collectives; None for torch's own.

    >>> is_met({"backend": "nccl"}, backend="cpu:gloo,cuda:nccl", rank=0, world_size=2)
    True
    >>> is_met({"rank": 0, "world_size": 4}, backend="gloo", rank=0, world_size=2)
    False
    """
    expected: dict[str, tuple[object, ...]] = {
        "init_method": (None, "env://"),
        "rank": (-1, rank),
        "world_size": (-1, world_size),
        "timeout": (None, timeout),
        "backend": (None, backend, *(part.partition(":")[2] for part in backend.split(","))),
    }
    return all(value in expected.get(name, (None, "")) for name, value in asked.items())
