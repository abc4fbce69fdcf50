"""
What the ranks of a broadcast draw their numbers by.
"""

from __future__ import annotations

import zlib

from skyward import InstanceInfo

__all__ = ["seed_of"]


def seed_of(info: InstanceInfo) -> int:
    """
    Return a broadcast's seed, which is the same on all its ranks and another one in each broadcast.

    Args:
        info: A rank's place.

    >>> seed_of(InstanceInfo(job_id="a1", broadcast=7)) == seed_of(InstanceInfo(job_id="a1", broadcast=7, node=1))
    True
    """
    return zlib.crc32(f"{info.job_id}/{info.broadcast}".encode())
