"""
How far TensorFlow has been set up in this process; it has no public way of telling.

What is relied on here is held by the suite `frameworks`.
"""

from __future__ import annotations

from tensorflow.python.eager import context

__all__ = ["is_in_cluster", "is_used"]


def is_used() -> bool:
    """Return whether anything has been computed in this process, after which it cannot join a cluster."""
    return context._context is not None and context._context._context_handle is not None


def is_in_cluster() -> bool:
    """Return whether this process has joined a cluster, which it cannot leave."""
    return is_used() and context._context._collective_ops_server_def is not None
