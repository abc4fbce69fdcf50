"""
An array that a worker has already and that no call gave it.
"""

from __future__ import annotations

from functools import cache
from typing import Any


@cache
def array(size: int) -> Any:
    """
    Make an array once a process.

    Args:
        size: Bytes of it.
    """
    import numpy as np

    return np.random.default_rng(0).integers(0, 1 << 62, size // 8, dtype=np.int64)
