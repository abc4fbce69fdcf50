"""
Counts what this process has executed on devices of several processes.

JAX has no public way to find out: what is called again goes past Python.
It has a function of its own called after each such call, which looks for NaN, and one class that runs the others; both
are held by the suite `frameworks`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import jax
from attrs import frozen

from skyward import PluginError

__all__ = ["EXECUTED", "spans"]


@frozen
class _Hook:
    """
    Replace what JAX sets the function by that it calls.

    Args:
        original: What it sets it by.
        otherwise: What is to be called where JAX would have nothing called.
    """

    original: Any
    otherwise: Callable[..., None]

    def set_global(self, hook: Callable[..., None] | None) -> None:
        """Set it for all threads."""
        self.original.set_global(hook or self.otherwise)

    def set_local(self, hook: Callable[..., None] | None) -> None:
        """Set it for this thread."""
        self.original.set_local(hook or self.otherwise)


class Executed:
    """Count from the first look on, in the whole process."""

    def __init__(self) -> None:
        self._count = 0
        self._ready = False

    def count(self) -> int:
        """Return how many computations over several processes were begun."""
        return self._count

    def prepare(self) -> None:
        """
        Begin to count; once in a process.

        Raises:
            PluginError: If this release of JAX does not show it.
        """
        if self._ready:
            return
        try:
            from jax._src import api
            from jax._src.interpreters import pxla

            hook, looked = api._post_hook_state, api._nan_check_posthook
            slow = pxla.ExecuteReplicated.__call__
        except (ImportError, AttributeError) as error:
            raise PluginError(
                f"hang_timeout= has to see what JAX executes, and JAX {jax.__version__} does not show it: {error}.",
                plugin="jax",
                hook="around_process",
                hint="Leave hang_timeout= out, and give broadcasts a time limit: .with_timeout(seconds).",
            ) from error

        def fast(fun: Any, args: Any, kwargs: Any, output: Any) -> None:
            self._note(output)

        @wraps(looked)
        def looked_and_noted(fun: Any, args: Any, kwargs: Any, output: Any) -> None:
            self._note(output)
            looked(fun, args, kwargs, output)

        # What is to be called depends on jax_debug_nans, also on one that is set or left later.
        api._nan_check_posthook, api._post_hook_state = looked_and_noted, _Hook(hook, fast)
        hook.set_global(looked_and_noted if hook.value is looked else fast)
        pxla.ExecuteReplicated.__call__ = self._noting(slow)
        self._ready = True

    def _noting(self, call: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(call)
        def noting(executable: Any, *args: Any) -> Any:
            output = call(executable, *args)
            self._note(output)
            return output

        return noting

    def _note(self, output: Any) -> None:
        self._count += spans(output)


def spans(output: Any) -> bool:
    """
    Return whether a computation ran on devices of several processes; one that gives nothing may have.

    Args:
        output: What it gave; all of it is on the same devices.
    """
    first = next(iter(jax.tree_util.tree_leaves(output)), None)
    return first is None or not getattr(first, "is_fully_addressable", True)


EXECUTED = Executed()
"""What this process has executed."""
