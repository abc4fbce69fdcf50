"""
Functions that run elsewhere: `@sky.function`.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Iterator
from types import MethodType
from typing import Any, Concatenate, Generic, NoReturn, ParamSpec, Protocol, Self, TypeVar, overload

from skyward.errors import UsageError
from skyward.model.fields.duration import checked_limit
from skyward.model.fields.setting import known_only
from skyward.model.spec.retries_setting import Retries, retries as checked_retries, times
from skyward.pending import PendingFunction, short

_VARARGS, _VARKEYWORDS = 4, 8
"""Flags of code objects, as `inspect` names them."""

P = ParamSpec("P")
Q = ParamSpec("Q")
T = TypeVar("T")


class Function(Generic[P, T]):
    """
    A function whose calls are pending until they are sent to a pool.

    Made by `@sky.function`; calling it runs nothing.

    Args:
        local: The plain function.
        timeout: Seconds that one attempt may run; None for no limit.
        retries: How many more attempts there are after one that fails, or a `Retry`.
    """

    def __init__(self, local: Callable[P, Any], *, timeout: float | None = None, retries: Retries = 0) -> None:
        self.local: Callable[P, T] = local
        self.timeout = timeout
        self.retries = retries
        functools.update_wrapper(self, local)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> PendingFunction[T]:
        if kwargs or len(args) != self._arity:
            self._check(args, kwargs)
        for arg in args:
            if arg.__class__ is PendingFunction:
                self._refuse(arg)
        return PendingFunction(self, args, kwargs, self.timeout, self.retries)

    def wrapped(self, decorator: Callable[[Callable[..., Any]], Callable[..., Any]]) -> Function[P, T]:
        """
        Return the same function with a decorator around what runs on the node.

        Args:
            decorator: Takes the plain function, and gives one that is called in its place.
        """
        return Function(decorator(self.local), timeout=self.timeout, retries=self.retries)

    needs = ""
    """Names what a worker has to have kept from calls before; empty if nothing."""

    @property
    def shape(self) -> Callable[..., Any]:
        """Return what is called like it, for its parameters."""
        return self.local

    @functools.cached_property
    def name(self) -> str:
        """Name it as the user does."""
        return getattr(self.local, "__qualname__", None) or type(self.local).__name__

    @functools.cached_property
    def streams(self) -> bool:
        """Return whether it is a generator function, whose items are sent one by one."""
        import inspect

        plain = inspect.unwrap(self.shape)
        return inspect.isgeneratorfunction(plain) or inspect.isasyncgenfunction(plain)

    @functools.cached_property
    def stream_parameters(self) -> tuple[str, ...]:
        """List the parameters annotated as `Iterator[...]`, whose items are streamed to the node."""
        return _stream_parameters(self.shape)

    @functools.cached_property
    def _arity(self) -> int:
        """Count the parameters, if that many positional arguments are always right; else -1."""
        code = getattr(self.local, "__code__", None)
        if code is None or code.co_flags & (_VARARGS | _VARKEYWORDS) or code.co_kwonlyargcount:
            return -1
        count: int = code.co_argcount
        return count

    def _refuse(self, pending: object) -> NoReturn:
        """Refuse an argument that has not run: the function would get the call, and not its result."""
        raise UsageError(
            f"{self.name} was given {pending!r}, which has not run.",
            hint=f"Run it first and pass its result: `{self.name}(... >> pool) >> pool`.",
        )

    def _check(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Refuse arguments that the function does not take, here and not on a node."""
        import inspect

        try:
            signature = inspect.signature(self.shape)
        except (TypeError, ValueError):
            return
        try:
            signature.bind(*args, **kwargs)
        except TypeError as error:
            raise UsageError(f"{self.name}{signature} cannot be called like this: {error}.") from None
        for value in kwargs.values():
            if isinstance(value, PendingFunction):
                self._refuse(value)

    @overload
    def __get__(self, instance: PendingFunction[Any] | None, owner: type | None = None) -> Self: ...
    @overload
    def __get__(
        self: Function[Concatenate[Any, Q], T], instance: object, owner: type | None = None
    ) -> BoundFunction[Q, T]: ...
    def __get__(self, instance: object, owner: type | None = None) -> Any:
        return self if instance is None else BoundFunction(self, instance)

    def __reduce__(self) -> str | tuple[Any, ...]:
        if self._importable():
            return self.__qualname__
        # Nodes send no calls: what decides about attempts stays here, with all that it captures.
        return (_restored, (self.local, self.timeout, times(self.retries)))

    def __repr__(self) -> str:
        return f"<sky.function {self.name}>"

    def _importable(self) -> bool:
        """Return whether a node that has the module finds this very object in it by name."""
        module = sys.modules.get(getattr(self, "__module__", None) or "")
        if module is None or module.__name__ == "__main__":
            return False
        found: Any = module
        for part in self.__qualname__.split("."):
            found = getattr(found, part, None)
        return found is self

    __name__: str
    __qualname__: str


class BoundFunction(Generic[P, T]):
    """
    A decorated method of one object; the object travels with each call, as its first argument.

    Args:
        function: The decorated function.
        instance: The object.
    """

    __slots__ = ("__func__", "__self__")

    def __init__(self, function: Function[..., T], instance: object) -> None:
        self.__func__ = function
        self.__self__ = instance

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> PendingFunction[T]:
        return self.__func__(self.__self__, *args, **kwargs)

    def local(self, *args: P.args, **kwargs: P.kwargs) -> T:
        """Run the method here and now."""
        return self.__func__.local(self.__self__, *args, **kwargs)

    def plain(self) -> Function[P, T]:
        """Return a function of the remaining arguments, with the same settings."""
        method = MethodType(self.__func__.local, self.__self__)
        return Function(method, timeout=self.__func__.timeout, retries=self.__func__.retries)

    def __repr__(self) -> str:
        return f"<sky.function {self.__func__.name} of {short(self.__self__)}>"


def _restored(local: Callable[..., Any], timeout: float | None, retries: int) -> Function[..., Any]:
    return Function(local, timeout=timeout, retries=retries)


@overload
def function(fn: Callable[P, Coroutine[Any, Any, T]], /) -> Function[P, T]: ...
@overload
def function(fn: Callable[P, AsyncIterator[T]], /) -> Function[P, Iterator[T]]: ...
@overload
def function(fn: Callable[P, Generator[T, Any, Any]], /) -> Function[P, Iterator[T]]: ...
@overload
def function(fn: Callable[P, T], /) -> Function[P, T]: ...
@overload
def function(*, timeout: float | None = None, retries: Retries = 0) -> _Decorator: ...
def function(fn: Any = None, /, *, timeout: float | None = None, retries: Retries = 0, **unknown: Any) -> Any:
    """
    Make a function whose calls can be sent to a pool.

    Args:
        fn: The function: plain, generator, or `async def`.
        timeout: Seconds that one attempt may run; None for no limit.
        retries: How many more attempts there are after one that fails, or a `Retry`.
        unknown: What there is no setting for.

    Raises:
        ConfigError: If a setting makes no sense.
        UsageError: If `fn` cannot be called, or a keyword is unknown; the nearest one is offered.

    >>> import skyward as sky
    >>> @sky.function(timeout=sky.time.minutes(10), retries=2)
    ... def train(epochs: int) -> float:
    ...     return 1 / epochs
    >>> train(4).timeout
    600.0
    """
    known_only(unknown, ("timeout", "retries"), "@sky.function")
    limit = None if timeout is None else checked_limit(timeout, "timeout")
    attempts = checked_retries(retries)
    if fn is None:
        return lambda fn: Function(_callable(fn), timeout=limit, retries=attempts)
    return Function(_callable(fn), timeout=limit, retries=attempts)


class _Decorator(Protocol):
    @overload
    def __call__(self, fn: Callable[P, Coroutine[Any, Any, T]], /) -> Function[P, T]: ...
    @overload
    def __call__(self, fn: Callable[P, AsyncIterator[T]], /) -> Function[P, Iterator[T]]: ...
    @overload
    def __call__(self, fn: Callable[P, Generator[T, Any, Any]], /) -> Function[P, Iterator[T]]: ...
    @overload
    def __call__(self, fn: Callable[P, T], /) -> Function[P, T]: ...


def as_function(fn: Callable[..., T] | Function[..., T]) -> Function[..., T]:
    """Return a plain function as a `Function`, and a `Function` as it is."""
    if isinstance(fn, BoundFunction):
        return fn.plain()
    return fn if isinstance(fn, Function) else Function(_callable(fn))


def _callable(fn: object) -> Callable[..., Any]:
    if isinstance(fn, Function):
        return fn.local
    if isinstance(fn, BoundFunction):
        return fn.plain().local
    if not callable(fn):
        raise UsageError(f"`@sky.function` is for functions, and this is a {type(fn).__name__}: {short(fn)}.")
    return fn


def _stream_parameters(fn: Callable[..., Any]) -> tuple[str, ...]:
    """Find parameters annotated `Iterator[...]`, also where annotations are strings that cannot be evaluated here."""
    found = []
    for name, annotation in getattr(fn, "__annotations__", {}).items():
        if name == "return":
            continue
        # A text that was quoted in a module whose annotations are texts anyway has quotes inside.
        text = annotation.strip("'\" ") if isinstance(annotation, str) else repr(annotation)
        head = text.partition("[")[0].strip()
        if head.rpartition(".")[2] == "Iterator" or annotation is Iterator:
            found.append(name)
    return tuple(found)
