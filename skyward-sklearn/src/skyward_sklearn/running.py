"""
What a node runs: the tasks of a batch, one after the other, with joblib set up as it is inside its own processes.

Functions made here have the name of the user's. No module has anything of that name, so that they travel by their
content: a node needs joblib, and nothing of ours.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Any, TypeAlias

import skyward as sky

__all__ = ["Runners", "Task"]

Task: TypeAlias = tuple[Callable[..., Any], Sequence[Any], Mapping[str, Any]]
"""A function with its arguments, as `joblib.delayed` makes it."""


class Runners:
    """
    Make calls of the batches of one `Parallel`.

    A plain function that all tasks of a batch share is captured by the pool, which sends it to a worker once; anything
    else that can be called travels with each task.

    Args:
        nesting_level: How deep in calls of joblib the `Parallel` is.
    """

    def __init__(self, nesting_level: int) -> None:
        self._nesting_level = nesting_level
        # The keys are kept alive by what the runners hold.
        self._of_function: dict[int, Any] = {}
        self._of_name: dict[str, Any] = {}

    def call(self, tasks: Sequence[Task]) -> Any:
        """
        Make the pending call that runs tasks.

        Args:
            tasks: At least one.
        """
        function = tasks[0][0]
        if isinstance(function, FunctionType) and all(task[0] is function for task in tasks):
            runner = self._of_function.get(id(function))
            if runner is None:
                runner = self._of_function[id(function)] = _runner_of(function)
            return runner([task[1:] for task in tasks], self._nesting_level)
        name = getattr(function, "__qualname__", None) or type(function).__name__
        runner = self._of_name.get(name)
        if runner is None:
            runner = self._of_name[name] = _runner_named(name)
        return runner(tasks, self._nesting_level)


def _runner_of(function: Callable[..., Any]) -> Any:
    def run(arguments: Sequence[tuple[Sequence[Any], Mapping[str, Any]]], nesting_level: int) -> list[Any]:
        from types import SimpleNamespace

        from joblib import parallel_config
        from joblib.parallel import ParallelBackendBase

        inner, n_jobs = ParallelBackendBase.get_nested_backend(SimpleNamespace(nesting_level=nesting_level))
        with parallel_config(backend=inner, n_jobs=n_jobs):
            return [function(*args, **kwargs) for args, kwargs in arguments]

    run.__qualname__ = run.__name__ = function.__qualname__
    return sky.function(run)


def _runner_named(name: str) -> Any:
    def run(tasks: Sequence[Task], nesting_level: int) -> list[Any]:
        from types import SimpleNamespace

        from joblib import parallel_config
        from joblib.parallel import ParallelBackendBase

        inner, n_jobs = ParallelBackendBase.get_nested_backend(SimpleNamespace(nesting_level=nesting_level))
        with parallel_config(backend=inner, n_jobs=n_jobs):
            return [function(*args, **kwargs) for function, args, kwargs in tasks]

    run.__qualname__ = run.__name__ = name
    return sky.function(run)
