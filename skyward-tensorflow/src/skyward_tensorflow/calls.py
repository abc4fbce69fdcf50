"""
Counts the calls of TensorFlow's functions and strategies in this process.

TensorFlow does not report single collectives; all of them are within such calls.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

__all__ = ["CALLS"]


class Calls:
    """Count from the first look on, in the whole process."""

    def __init__(self) -> None:
        self._count = 0
        self._ready = False

    def count(self) -> int:
        """Return how often such a call began or ended."""
        return self._count

    def prepare(self) -> None:
        """Begin to count; once in a process."""
        if self._ready:
            return
        import tensorflow as tf

        places = (
            (type(tf.function(lambda: None)), ("__call__",)),
            (tf.distribute.Strategy, ("run", "reduce", "gather")),
            (tf.distribute.ReplicaContext, ("all_reduce", "all_gather")),
        )
        for kind, names in places:
            for name in names:
                owner = next(each for each in kind.__mro__ if name in vars(each))
                setattr(owner, name, self._counted(getattr(owner, name)))
        self._ready = True

    def _counted(self, call: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(call)
        def counted(*args: Any, **kwargs: Any) -> Any:
            self._count += 1
            try:
                return call(*args, **kwargs)
            finally:
                self._count += 1

        return counted


CALLS = Calls()
"""The calls of this process."""
