"""
What a node runs: the tasks of a batch, one after the other, with joblib set up as it is inside its own processes.

Functions made here have the name of the user's. No module has anything of that name, so that they travel by their
content: a node needs joblib, and nothing of ours.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Any, NamedTuple, TypeAlias

import skyward as sky

__all__ = ["Runners", "Start", "Task"]

Task: TypeAlias = tuple[Callable[..., Any], Sequence[Any], Mapping[str, Any]]
"""A function with its arguments, as `joblib.delayed` makes it."""


class Start(NamedTuple):
    """
    Say how a worker process begins with a `Parallel`; travels as a plain tuple.

    Args:
        initializer: What it calls before its first task; None for nothing.
        initargs: With which arguments.
        threads: How many threads libraries of linear algebra may have in a task; None for what the process has anyway.
    """

    initializer: Callable[..., object] | None = None
    initargs: Sequence[Any] = ()
    threads: int | None = None


class Runners:
    """
    Make calls of the batches of one `Parallel`.

    A plain function that all tasks of a batch share is captured by the pool, which sends it to a worker once; anything
    else that can be called travels with each task.

    Args:
        nesting_level: How deep in calls of joblib the `Parallel` is.
        start: How a worker process begins.
    """

    def __init__(self, nesting_level: int, start: Start | None = None) -> None:
        start = start or Start()
        self._around = _around(nesting_level, uuid.uuid4().hex if start.initializer else "", *start)
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
                runner = self._of_function[id(function)] = _runner_of(function, self._around)
            return runner([task[1:] for task in tasks])
        name = getattr(function, "__qualname__", None) or type(function).__name__
        runner = self._of_name.get(name)
        if runner is None:
            runner = self._of_name[name] = _runner_named(name, self._around)
        return runner(tasks)


def _runner_of(function: Callable[..., Any], around: Any) -> Any:
    def run(arguments: Sequence[tuple[Sequence[Any], Mapping[str, Any]]]) -> list[Any]:
        with around():
            return [function(*args, **kwargs) for args, kwargs in arguments]

    run.__qualname__ = run.__name__ = function.__qualname__
    return sky.function(run)


def _runner_named(name: str, around: Any) -> Any:
    def run(tasks: Sequence[Task]) -> list[Any]:
        with around():
            return [function(*args, **kwargs) for function, args, kwargs in tasks]

    run.__qualname__ = run.__name__ = name
    return sky.function(run)


def _around(
    nesting_level: int,
    key: str,
    initializer: Callable[..., object] | None,
    initargs: Sequence[Any],
    threads: int | None,
) -> Any:
    """Make what is around the tasks of a batch; the key names the `Parallel` that a process was initialised for."""

    def around() -> Any:
        from contextlib import ExitStack
        from threading import Lock
        from types import SimpleNamespace

        from joblib import parallel

        if initializer is not None:
            # Kept with joblib, because nothing of ours is sure to be here.
            begun: dict[str, Any] = vars(parallel).setdefault("_skyward_begun", {})
            lock, done = begun.setdefault(key, (Lock(), []))
            with lock:
                if not done:
                    initializer(*initargs)
                    done.append(True)
        stack = ExitStack()
        if threads is not None:
            from threadpoolctl import threadpool_limits

            stack.enter_context(threadpool_limits(limits=threads))
        inner, n_jobs = parallel.ParallelBackendBase.get_nested_backend(SimpleNamespace(nesting_level=nesting_level))
        stack.enter_context(parallel.parallel_config(backend=inner, n_jobs=n_jobs))
        return stack

    return around
