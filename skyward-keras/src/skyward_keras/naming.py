"""
Has the ranks of a broadcast name their layers alike: Keras numbers them by process, and a rank may have made more.

Torch orders parameters by these names, so that ranks would take one for another.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from keras.src.utils.naming import reset_uids

from skyward import instance_info

__all__ = ["reset_names"]


@contextmanager
def reset_names() -> Iterator[None]:
    """Reset the counters of names in a broadcast, as in a program that is restarted."""
    info = instance_info()
    if info.broadcast and info.total_workers > 1:
        reset_uids()
    yield
