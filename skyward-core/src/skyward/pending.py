"""
Calls that have not run: pending calls, their operators, and groups of them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from itertools import islice
from reprlib import Repr
from types import ModuleType
from typing import (
    TYPE_CHECKING,
    Any,
    Generic,
    NoReturn,
    Protocol,
    TypeVar,
    TypeVarTuple,
    cast,
)

from attrs import evolve, field, frozen

from skyward.errors import NoPoolError, UsageError
from skyward.model.fields.duration import checked_limit
from skyward.model.spec.called import Called
from skyward.model.spec.retries_setting import Retries, retries as checked_retries

if TYPE_CHECKING:
    from skyward.engine.calls.waiters import Future

T = TypeVar("T")
U = TypeVar("U")
Ts = TypeVarTuple("Ts")


_SHOWN = 6
"""Arguments that the repr of a call shows."""

_SHORT = Repr()
_SHORT.maxstring = _SHORT.maxother = 60
_SHORT.maxlong = 45


class Target(Protocol):
    """Whatever stands on the right of an operator: a pool."""

    def run(self, pending: PendingFunction[T], /) -> T:
        """Run on one node and wait."""

    def run_async(self, pending: PendingFunction[T], /) -> Future[T]:
        """Run on one node and promise the result."""

    def broadcast(self, pending: PendingFunction[T], /) -> list[T]:
        """Run on every rank and wait."""

    def run_parallel(self, group: Any, /) -> Any:
        """Run each call of a group and wait."""


current_pool: ContextVar[Target] = ContextVar("skyward_pool")
"""The innermost open pool of this context; what `sky` means as a target."""


def target_of(target: object, operator: str) -> Target:
    """
    Find the pool that the right-hand side of an operator means.

    Raises:
        NoPoolError: If it is `sky` and no pool is open in this context.
        UsageError: If it is no pool at all.
    """
    if hasattr(target, "run_parallel"):
        return cast("Target", target)
    if isinstance(target, ModuleType) and target is sys.modules.get("skyward"):
        try:
            return current_pool.get()
        except LookupError:
            # Late, because it is only needed once something is wrong.
            from skyward.node.agent.descendants import MARK

            if MARK in os.environ:
                raise NoPoolError(
                    f"`{operator} sky` is in a function that runs on a node, where no pool is open.",
                    hint="Return what the next call needs and send that from the program, or run the function right "
                    "here: `f.local(...)`.",
                ) from None
            raise NoPoolError(
                f"`{operator} sky` needs an open pool, and none is open in this context. "
                "Open one with `with sky.Compute(...)`, decorate the caller with `@sky.pool(...)`, "
                "or, in a thread of your own, write the pool itself on the right-hand side."
            ) from None
    if isinstance(target, PendingFunction | PendingFunctionGroup):
        raise UsageError(
            f"The right-hand side of `{operator}` is a pending call, not a pool. "
            "Python binds `a & b >> pool` as `a & (b >> pool)`: write `(a & b) >> pool`."
        )
    raise UsageError(
        f"The right-hand side of `{operator}` is a {type(target).__name__}; it must be an open pool, or `sky`."
    )


@frozen(eq=False)
class PendingFunction(Generic[T]):
    """
    A call that has not run: the function and its arguments.

    Args:
        function: What it calls.
        args: Positional arguments.
        kwargs: Keyword arguments.
        timeout: Seconds that one attempt may run; None for no limit.
        retries: How many more attempts there are after one that fails, or a `Retry`.
        deadline: Seconds from when it is sent until it is answered; None for no limit.
        queue_timeout: Seconds from when it is sent until it begins; None for no limit.

    >>> import skyward as sky
    >>> @sky.function
    ... def double(x: int) -> int:
    ...     return 2 * x
    >>> double(4)
    <pending double(4)>
    >>> double.local(4)
    8
    """

    function: Called[T]
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(factory=dict)
    timeout: float | None = None
    retries: Retries = 0
    deadline: float | None = None
    queue_timeout: float | None = None

    def with_timeout(self, limit: float | None = None, *, queue: float | None = None) -> PendingFunction[T]:
        """
        Return the same call with a limit to how long it may run, or may wait until it does.

        Args:
            limit: Seconds from when it starts on the worker, for each attempt; None leaves that as it is.
            queue: Seconds from when it is sent until it starts for the first time; None leaves that as it is.

        Raises:
            ConfigError: If a limit is not a positive number.
        """
        timeout = self.timeout if limit is None and queue is not None else checked_limit(limit, "timeout")
        return evolve(
            self,
            timeout=timeout,
            queue_timeout=self.queue_timeout if queue is None else checked_limit(queue, "queue"),
        )

    def with_deadline(self, limit: float) -> PendingFunction[T]:
        """
        Return the same call with a limit to how long it may take in all: queue, attempts, and the pauses between them.

        Args:
            limit: Seconds from when it is sent until it is answered; no attempt is begun that could not end before.

        Raises:
            ConfigError: If the limit is not a positive number.
        """
        return evolve(self, deadline=checked_limit(limit, "deadline"))

    def with_retries(self, retries: Retries) -> PendingFunction[T]:
        """
        Return the same call with more attempts.

        Args:
            retries: How many more attempts there are after one that fails, or a `Retry`.

        Raises:
            ConfigError: If it is neither a whole number from 0 nor a `Retry`.
        """
        return evolve(self, retries=checked_retries(retries))

    def local(self) -> T:
        """Run the call here and now."""
        return self.function.local(*self.args, **self.kwargs)

    def __rshift__(self, target: object) -> T:
        try:
            return target_of(target, ">>").run(self)
        except KeyboardInterrupt as interrupt:
            # Where our code waited when the user pressed Ctrl-C says nothing.
            raise interrupt.with_traceback(None)  # noqa: B904  # it is that very interrupt

    def __gt__(self, target: object) -> Future[T]:
        return target_of(target, ">").run_async(self)

    def __matmul__(self, target: object) -> list[T]:
        try:
            return target_of(target, "@").broadcast(self)
        except KeyboardInterrupt as interrupt:
            raise interrupt.with_traceback(None)  # noqa: B904  # as above

    def __and__(self, other: PendingFunction[U]) -> PendingFunctionGroup[T, U]:
        return PendingFunctionGroup((self, groupable(other)))

    def __rand__(self, other: object) -> NoReturn:
        groupable(other)
        raise UsageError("`&` joins pending calls from the left.")

    def __bool__(self) -> bool:
        raise UsageError(f"{self!r} has not run, so it is neither true nor false. Send it to a pool first: `>> pool`.")

    def __eq__(self, other: object) -> bool:
        raise UsageError(f"{self!r} has not run and cannot be compared. Send it to a pool first: `>> pool`.")

    __hash__ = object.__hash__

    def _compared(self, other: object) -> NoReturn:
        raise UsageError(f"{self!r} has not run and cannot be compared. Send it to a pool first: `>> pool`.")

    __lt__ = __le__ = __ge__ = _compared

    @property
    def fn(self) -> Callable[..., T]:
        """Return the plain function that is called."""
        return self.function.local

    def __repr__(self) -> str:
        shown = [short(arg) for arg in self.args[:_SHOWN]]
        shown += [f"{name}={short(value)}" for name, value in islice(self.kwargs.items(), _SHOWN - len(shown))]
        if len(self.args) + len(self.kwargs) > _SHOWN:
            shown.append("...")
        return f"<pending {self.function.name}({', '.join(shown)})>"


@frozen(eq=False)
class PendingFunctionGroup(Generic[*Ts]):
    """
    Calls that are sent to a pool together, made by `&` or `gather`.

    Args:
        calls: The calls, in order.
        return_exceptions: Whether what is raised takes its place among the results instead of being raised.
    """

    calls: tuple[PendingFunction[Any], ...]
    return_exceptions: bool = False

    def __and__(self, other: PendingFunction[U]) -> PendingFunctionGroup[*Ts, U]:
        return PendingFunctionGroup((*self.calls, groupable(other)), self.return_exceptions)

    def __rshift__(self, target: object) -> tuple[*Ts]:
        try:
            return cast("tuple[*Ts]", target_of(target, ">>").run_parallel(self))
        except KeyboardInterrupt as interrupt:
            raise interrupt.with_traceback(None)  # noqa: B904  # as above

    def __matmul__(self, target: object) -> NoReturn:
        raise UsageError("A group cannot be broadcast. Send it with `>> pool`, or broadcast each call with `@ pool`.")

    def __gt__(self, target: object) -> NoReturn:
        raise UsageError("A group has no `>`. Send it with `>> pool`, or each call with `> pool`.")

    def __bool__(self) -> bool:
        raise UsageError("A group that has not run is neither true nor false. Send it to a pool first: `>> pool`.")

    def __len__(self) -> int:
        return len(self.calls)


@frozen(eq=False)
class PendingStream(Generic[T]):
    """
    A group whose results are given as they come, made by `gather(..., stream=True)`.

    Args:
        calls: The calls, in order.
        ordered: Whether results come in the order of the calls, or in that of their ends.
        return_exceptions: Whether what is raised takes its place among the results instead of being raised.
    """

    calls: tuple[PendingFunction[T], ...]
    ordered: bool = True
    return_exceptions: bool = False

    def __rshift__(self, target: object) -> Iterator[T]:
        return cast("Iterator[T]", target_of(target, ">>").run_parallel(self))

    def __matmul__(self, target: object) -> NoReturn:
        raise UsageError("A group cannot be broadcast. Send it with `>> pool`.")

    def __gt__(self, target: object) -> NoReturn:
        raise UsageError("A group has no `>`. Send it with `>> pool`.")

    def __bool__(self) -> bool:
        raise UsageError("A group that has not run is neither true nor false. Send it to a pool first: `>> pool`.")


def groupable(call: object) -> PendingFunction[Any]:
    """
    Return a pending call that is to be part of a group, checked.

    Args:
        call: What is to be grouped.

    Raises:
        UsageError: If it is no pending call, or calls a generator function.
    """
    if not isinstance(call, PendingFunction):
        if hasattr(call, "stream_parameters"):
            name = getattr(call, "name", "the function")
            raise UsageError(f"{name} was not called: write `{name}(...)`.")
        raise UsageError(
            f"`&` and `gather` join pending calls, and this is a {type(call).__name__}. "
            "Python binds `a & b >> pool` as `a & (b >> pool)`: write `(a & b) >> pool`."
        )
    if call.function.streams:
        raise UsageError(
            f"{call.function.name} is a generator function; its stream cannot be part of a group. "
            f"Send it by itself: `{call.function.name}(...) >> pool`."
        )
    return call


def short(value: object) -> str:
    """Return a value's repr, cut to fit into a message; of a large one only the beginning is made."""
    text = _SHORT.repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


def partial(error: BaseException) -> list[Any]:
    """
    Return what was already done when a gather, map or broadcast failed: results and exceptions, in order.

    Args:
        error: What was raised.

    >>> partial(ValueError("nothing to do with a pool"))
    []
    """
    return list(getattr(error, "__skyward_partial__", ()))


def single(pending: PendingFunction[T]) -> PendingFunction[T]:
    """
    Return a pending call, checked.

    Args:
        pending: What a pool is to run.

    Raises:
        UsageError: If it is no pending call, or several.
    """
    given: object = pending
    if isinstance(given, PendingFunction):
        return given
    if isinstance(given, PendingFunctionGroup | PendingStream):
        raise UsageError("This is a group of calls; send it with `>> pool` or `pool.run_parallel(group)`.")
    raise UsageError(f"A pool runs pending calls, and this is a {type(given).__name__}: call the function first.")
