"""
Several pools at once: side by side, or with lifetimes that do not nest.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Self, Unpack

from skyward.errors import ConfigError, UsageError
from skyward.model.fields.keywords import PoolKeywords
from skyward.model.spec.options import Options
from skyward.model.spec.spec import Spec
from skyward.plan.instances.left_behind import together
from skyward.pool import Pool


class MultiPool:
    """
    Open several pools side by side, and close them so.

    If one cannot be opened, the others are closed again.

    Args:
        pools: The pools, none of them open.

    >>> import skyward as sky
    >>> with sky.MultiPool(sky.Compute(console="silent"), sky.Compute(console="silent")) as (one, other):
    ...     one.current_nodes() + other.current_nodes()
    2
    """

    def __init__(self, *pools: Pool) -> None:
        for one in pools:
            if not isinstance(one, Pool):
                raise UsageError(f"MultiPool takes pools, not a {type(one).__name__}.")
        self._pools = pools
        self._stack = ExitStack()

    def __enter__(self) -> tuple[Pool, ...]:
        with ExitStack() as stack:
            _unwound_by_signals(stack)
            errors = _side_by_side([one.open for one in self._pools], self._break_off)
            if errors:
                _closed(self._pools, errors[0])
                raise together(errors)
            self._stack = stack.pop_all()
        return self._pools

    def _break_off(self) -> None:
        for one in self._pools:
            one.break_off()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._stack:
            errors = _closed(self._pools, error)
        if errors and error is None:
            raise together(errors)


class Session:
    """
    Hold pools whose lifetimes do not nest; whatever is still open is closed at the end.

    >>> import skyward as sky
    >>> with sky.Session() as session:
    ...     first = session.compute(console="silent")
    ...     session.close(first)
    ...     first.is_active
    False
    """

    def __init__(self) -> None:
        self._pools: list[Pool] = []
        self._stack = ExitStack()

    def compute(
        self, *specs: Spec, name: str | None = None, options: Options | None = None, **keywords: Unpack[PoolKeywords]
    ) -> Pool:
        """Open a pool; the arguments are those of `Compute`."""
        opened = Pool(*specs, name=name, options=options, **keywords)
        opened.open()
        self._pools.append(opened)
        return opened

    def close(self, one: Pool) -> None:
        """
        Close one of the session's pools.

        Raises:
            ConfigError: If the session has not opened it.
        """
        if one not in self._pools:
            raise ConfigError(f"{one!r} is not an open pool of this session.")
        self._pools.remove(one)
        one.close()

    def __enter__(self) -> Self:
        _unwound_by_signals(self._stack)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pools, self._pools = self._pools, []
        with self._stack:
            errors = _closed(pools, error)
        if errors and error is None:
            raise together(errors)


def _unwound_by_signals(stack: ExitStack) -> None:
    """Handle SIGTERM as an exit that unwinds until the stack is left; pools opened in threads cannot do so."""
    from skyward.engine.pool.sigterm import terminated_as_exit

    stack.enter_context(terminated_as_exit())


def _closed(pools: Sequence[Pool], error: BaseException | None) -> list[BaseException]:
    """Close pools side by side; an interrupt skips the wait for their handlers."""

    def skip() -> None:
        for one in pools:
            one.skip_handlers()

    return _side_by_side([functools.partial(one.close, error) for one in pools], skip)


def _side_by_side(
    steps: list[Callable[[], object]], break_off: Callable[[], None] = lambda: None
) -> list[BaseException]:
    """
    Take steps in a thread each, and return what they raised, after the interrupt of this thread if there was one.

    Args:
        steps: What is to be done; all have ended on return.
        break_off: Has them end soon after an interrupt.
    """
    errors: list[BaseException] = []

    def take(step: Callable[[], object]) -> None:
        try:
            step()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=take, args=(step,), name="skyward-multipool") for step in steps]
    for thread in threads:
        thread.start()
    try:
        _join(threads)
    except BaseException as interrupt:
        break_off()
        _join(threads)
        return [interrupt, *errors]
    return errors


def _join(threads: list[threading.Thread]) -> None:
    for thread in threads:
        thread.join()
