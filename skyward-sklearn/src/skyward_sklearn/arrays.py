"""
Arrays that are mapped from files: made into what a pool recognises when it is sent again.
"""

from __future__ import annotations

import sys
from typing import Any

from skyward_sklearn.running import Task

__all__ = ["prepared"]


class _Mapped:
    """
    Travel in place of an array that is mapped from a file, as an array of its content.

    numpy would copy the content into the pickle each time, because it does so for all subclasses of its arrays.
    """

    def __init__(self, array: Any) -> None:
        self._array = array

    def __reduce__(self) -> Any:
        import numpy as np

        return np.asarray, (self._array.view(np.ndarray),)


def prepared(tasks: list[Task]) -> list[Task]:
    """
    Replace each mapped array among the arguments of tasks by a placeholder.

    Args:
        tasks: Functions with their arguments.

    >>> prepared([(abs, (-1,), {})])
    [(<built-in function abs>, (-1,), {})]
    """
    # Where numpy is not loaded there are no arrays.
    numpy = sys.modules.get("numpy")
    if numpy is None:
        return tasks
    mapped = numpy.memmap
    if not any(isinstance(value, mapped) for _, args, kwargs in tasks for value in (*args, *kwargs.values())):
        return tasks

    def stand_in(value: Any) -> Any:
        return _Mapped(value) if isinstance(value, mapped) else value

    return [
        (function, tuple(map(stand_in, args)), {name: stand_in(value) for name, value in kwargs.items()})
        for function, args, kwargs in tasks
    ]
