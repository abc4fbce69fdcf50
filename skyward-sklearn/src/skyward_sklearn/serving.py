"""
For how long joblib uses a pool: in the thread that opened it, and by the name `"skyward"` in every other.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from joblib import parallel_config, register_parallel_backend
from joblib.parallel import get_active_backend

import skyward as sky
from skyward_sklearn.backend import OPEN, PoolBackend

__all__ = ["NAME", "register", "serving"]

NAME = "skyward"
"""What joblib calls the backend."""


@contextmanager
def serving(pool: sky.Compute) -> Iterator[None]:
    """
    Set a pool as joblib's backend.

    Args:
        pool: The pool; open when joblib first asks.
    """
    register()
    backend = PoolBackend(lambda: pool)
    OPEN.append(pool)
    config = parallel_config(backend=backend, n_jobs=-1)
    try:
        yield
    finally:
        OPEN.remove(pool)
        # A pool may be left in another thread than it was opened in, or before one that was opened later. joblib keeps
        # its settings by thread and in a chain: there they stay, and must mean what they meant before.
        if get_active_backend()[0] is backend:
            config.unregister()
        else:
            backend.closed = True


def register() -> None:
    """Make the backend's name known to joblib, which finds the pool when it is asked for."""
    register_parallel_backend(NAME, PoolBackend)
