"""
Functions around functions, of the same kind: plain, generator, async, async generator.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Generator, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import wraps
from typing import Any, TypeAlias

from skyward.errors import LeftBehindError

__all__ = ["alike", "during", "keeping"]

Decorator: TypeAlias = Callable[[Callable[..., Any]], Callable[..., Any]]


def during(context: Callable[[], AbstractContextManager[object]]) -> Decorator:
    """
    Make a decorator that enters a context manager for the time of each call.

    For a generator function this is from its first item to its last, for an async function until it is done.

    Args:
        context: Called once for each call.

    >>> from contextlib import redirect_stdout
    >>> from io import StringIO
    >>> out = StringIO()
    >>> @during(lambda: redirect_stdout(out))
    ... def letters():
    ...     for letter in "ab":
    ...         print(letter)
    ...         yield letter
    >>> list(letters()), out.getvalue()
    (['a', 'b'], 'a\\nb\\n')
    """
    return lambda fn: alike(fn, lambda: fn, context)


def alike(
    fn: Callable[..., Any],
    target: Callable[[], Callable[..., Any]],
    context: Callable[[], AbstractContextManager[object]],
) -> Callable[..., Any]:
    """
    Return a function that looks like another one and is of its kind.

    Args:
        fn: Which function it is to look like.
        target: Called at the beginning of each call, in its context; returns what is to be called.
        context: Returns what is entered for the time of each call.
    """
    # Late, because workers come by here when they start.
    import inspect

    plain = inspect.unwrap(fn)
    if inspect.isgeneratorfunction(plain):

        @wraps(fn)
        def generator(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
            with context():
                return (yield from target()(*args, **kwargs))

        return generator
    if inspect.iscoroutinefunction(plain):

        @wraps(fn)
        async def coroutine(*args: Any, **kwargs: Any) -> Any:
            with context():
                return await target()(*args, **kwargs)

        return coroutine
    if inspect.isasyncgenfunction(plain):

        @wraps(fn)
        async def items(*args: Any, **kwargs: Any) -> AsyncIterator[Any]:
            with context():
                async for item in target()(*args, **kwargs):
                    yield item

        return items

    @wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        with context():
            return target()(*args, **kwargs)

    return call


@contextmanager
def keeping(kept: list[Any]) -> Iterator[None]:
    """
    Attach to an error at the exit of a function's pool what the function returned.

    Args:
        kept: Where that is put.

    >>> from skyward.errors import LeftBehindError
    >>> kept = []
    >>> try:
    ...     with keeping(kept):
    ...         kept.append(5)
    ...         raise LeftBehindError("Machines are left.")
    ... except LeftBehindError as error:
    ...     error.result
    5
    """
    try:
        yield
    except LeftBehindError as left:
        left.result = kept[0] if kept else left.result
        raise
