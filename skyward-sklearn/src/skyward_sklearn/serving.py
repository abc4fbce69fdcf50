"""
For how long joblib uses a pool: in the thread that opened it, and by the name `"skyward"` in every other.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from joblib import parallel_config, register_parallel_backend
from joblib.parallel import get_active_backend

import skyward as sky
from skyward_sklearn.backend import PoolBackend

__all__ = ["NAME", "register", "serving"]

NAME = "skyward"
"""What joblib calls the backend."""

_open: list[sky.Compute] = []
"""The pools that joblib may use. joblib asks for a backend by its name alone, from any thread."""


@contextmanager
def serving(pool: sky.Compute) -> Iterator[None]:
    """
    Have joblib use a pool.

    Args:
        pool: The pool; open when joblib first asks.
    """
    register()
    backend = PoolBackend(lambda: pool)
    _open.append(pool)
    config = parallel_config(backend=backend, n_jobs=-1)
    try:
        yield
    finally:
        _open.remove(pool)
        # A pool may be left in another thread than it was opened in, or before one that was opened later. joblib keeps
        # its settings by thread and in a chain: there they stay, and must mean what they meant before.
        if get_active_backend()[0] is backend:
            config.unregister()
        else:
            backend.forgotten = True


def register() -> None:
    """Make the backend's name known to joblib, which finds the pool when it is asked for."""
    register_parallel_backend(NAME, _by_name)


def _by_name(**settings: Any) -> PoolBackend:
    """Make a backend that finds the pool which was opened last."""
    return PoolBackend(lambda: _open[-1] if _open else None, **settings)
