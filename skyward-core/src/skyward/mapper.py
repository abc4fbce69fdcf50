"""
A function over many items, as methods of a pool: `map`, `starmap`, and an executor of the standard library.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, Callable, Iterable
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, overload

from skyward.function import as_function
from skyward.pending import PendingFunction

if TYPE_CHECKING:
    from skyward.engine.calls.pulling import ItemSource
    from skyward.engine.calls.streamed_results import Results
    from skyward.executor import PoolExecutor

R = TypeVar("R")
A = TypeVar("A")
B = TypeVar("B")
Item = TypeVar("Item")
Items: TypeAlias = Iterable[Item] | AsyncIterable[Item]
_Any: TypeAlias = Iterable[Any] | AsyncIterable[Any]
_Off = Literal[False]
_On = Literal[True]


class Mapper:
    """Run functions over many items; the part of a pool that does."""

    _running: Any

    # fmt: off
    @overload
    def map(
        self, fn: Callable[[Item], PendingFunction[R]], items: Items[Item], /, *, return_exceptions: _Off = ...,
        stream: _Off = ..., ordered: bool = ..., strict: bool = ...,
    ) -> list[R]: ...
    @overload
    def map(
        self, fn: Callable[[Item], PendingFunction[R]], items: Items[Item], /, *, return_exceptions: bool,
        stream: _Off = ..., ordered: bool = ..., strict: bool = ...,
    ) -> list[R | BaseException]: ...
    @overload
    def map(
        self, fn: Callable[[Item], PendingFunction[R]], items: Items[Item], /, *, return_exceptions: _Off = ...,
        stream: _On, ordered: bool = ..., strict: bool = ...,
    ) -> Results[R]: ...
    @overload
    def map(
        self, fn: Callable[[Item], PendingFunction[R]], items: Items[Item], /, *, return_exceptions: bool,
        stream: _On, ordered: bool = ..., strict: bool = ...,
    ) -> Results[R | BaseException]: ...
    @overload
    def map(
        self, fn: Callable[[Item], R], items: Items[Item], /, *, return_exceptions: _Off = ...,
        stream: _Off = ..., ordered: bool = ..., strict: bool = ...,
    ) -> list[R]: ...
    @overload
    def map(
        self, fn: Callable[[Item], R], items: Items[Item], /, *, return_exceptions: bool,
        stream: _Off = ..., ordered: bool = ..., strict: bool = ...,
    ) -> list[R | BaseException]: ...
    @overload
    def map(
        self, fn: Callable[[Item], R], items: Items[Item], /, *, return_exceptions: _Off = ...,
        stream: _On, ordered: bool = ..., strict: bool = ...,
    ) -> Results[R]: ...
    @overload
    def map(
        self, fn: Callable[[Item], R], items: Items[Item], /, *, return_exceptions: bool,
        stream: _On, ordered: bool = ..., strict: bool = ...,
    ) -> Results[R | BaseException]: ...
    @overload
    def map(
        self, fn: Callable[[A, B], PendingFunction[R]], a: Items[A], b: Items[B], /, *, return_exceptions: _Off = ...,
        stream: _Off = ..., ordered: bool = ..., strict: bool = ...,
    ) -> list[R]: ...
    @overload
    def map(
        self, fn: Callable[[A, B], PendingFunction[R]], a: Items[A], b: Items[B], /, *, return_exceptions: _Off = ...,
        stream: _On, ordered: bool = ..., strict: bool = ...,
    ) -> Results[R]: ...
    @overload
    def map(
        self, fn: Callable[[A, B], R], a: Items[A], b: Items[B], /, *, return_exceptions: _Off = ...,
        stream: _Off = ..., ordered: bool = ..., strict: bool = ...,
    ) -> list[R]: ...
    @overload
    def map(
        self, fn: Callable[[A, B], R], a: Items[A], b: Items[B], /, *, return_exceptions: _Off = ...,
        stream: _On, ordered: bool = ..., strict: bool = ...,
    ) -> Results[R]: ...
    @overload
    def map(
        self, fn: Callable[..., PendingFunction[R]], a: _Any, b: _Any, /, *more: _Any, return_exceptions: _Off = ...,
        stream: _Off = ..., ordered: bool = ..., strict: bool = ...,
    ) -> list[R]: ...
    @overload
    def map(
        self, fn: Callable[..., PendingFunction[R]], a: _Any, b: _Any, /, *more: _Any, return_exceptions: bool,
        stream: _Off = ..., ordered: bool = ..., strict: bool = ...,
    ) -> list[R | BaseException]: ...
    @overload
    def map(
        self, fn: Callable[..., PendingFunction[R]], a: _Any, b: _Any, /, *more: _Any, return_exceptions: _Off = ...,
        stream: _On, ordered: bool = ..., strict: bool = ...,
    ) -> Results[R]: ...
    @overload
    def map(
        self, fn: Callable[..., PendingFunction[R]], a: _Any, b: _Any, /, *more: _Any, return_exceptions: bool,
        stream: _On, ordered: bool = ..., strict: bool = ...,
    ) -> Results[R | BaseException]: ...
    @overload
    def map(
        self, fn: Callable[..., R], a: _Any, b: _Any, /, *more: _Any, return_exceptions: _Off = ...,
        stream: _Off = ..., ordered: bool = ..., strict: bool = ...,
    ) -> list[R]: ...
    @overload
    def map(
        self, fn: Callable[..., R], a: _Any, b: _Any, /, *more: _Any, return_exceptions: bool,
        stream: _Off = ..., ordered: bool = ..., strict: bool = ...,
    ) -> list[R | BaseException]: ...
    @overload
    def map(
        self, fn: Callable[..., R], a: _Any, b: _Any, /, *more: _Any, return_exceptions: _Off = ...,
        stream: _On, ordered: bool = ..., strict: bool = ...,
    ) -> Results[R]: ...
    @overload
    def map(
        self, fn: Callable[..., R], a: _Any, b: _Any, /, *more: _Any, return_exceptions: bool,
        stream: _On, ordered: bool = ..., strict: bool = ...,
    ) -> Results[R | BaseException]: ...
    # fmt: on
    def map(
        self,
        fn: Callable[..., Any],
        /,
        *items: _Any,
        return_exceptions: bool = False,
        stream: bool = False,
        ordered: bool = True,
        strict: bool = False,
    ) -> Any:
        """
        Run a function once for each item, or for the items of several iterables side by side.

        Items are pulled as the nodes get on: an endless iterator is never read to its end, and a consumer that pauses
        pauses it and the nodes.
        The function is captured once, when the map begins.

        Args:
            fn: Takes one item of each iterable; need not be decorated.
            items: Iterables, each of which may be asynchronous; the shortest one ends the map.
            return_exceptions: Whether what is raised takes its place among the results instead of being raised.
            stream: Whether to give results as they come, for `for` or `async for`, instead of a list. Items are pulled
                in a thread of their own then, or in the event loop that an asynchronous iterable belongs to.
            ordered: With `stream`, whether results come in the order of the items, or in that of their ends.
            strict: Whether iterables of different lengths raise a ValueError.

        Raises:
            Exception: The first failure in the order of the items, or what an iterator raised.

        >>> import skyward as sky
        >>> with sky.Compute(console="silent") as pool:
        ...     pool.map(pow, [2, 3], [3, 2])
        ...     next(pool.map(str, iter(range(10**9)), stream=True))
        [8, 9]
        '0'
        """
        from skyward.engine.calls.pulling import ItemSource

        source = ItemSource(items, strict=strict)
        return self._map(fn, source, keep_errors=return_exceptions, stream=stream, ordered=ordered)

    # fmt: off
    @overload
    def starmap(
        self, fn: Callable[..., PendingFunction[R]], items: Items[Iterable[Any]], /, *,
        return_exceptions: _Off = ..., stream: _Off = ..., ordered: bool = ...,
    ) -> list[R]: ...
    @overload
    def starmap(
        self, fn: Callable[..., PendingFunction[R]], items: Items[Iterable[Any]], /, *,
        return_exceptions: bool, stream: _Off = ..., ordered: bool = ...,
    ) -> list[R | BaseException]: ...
    @overload
    def starmap(
        self, fn: Callable[..., PendingFunction[R]], items: Items[Iterable[Any]], /, *,
        return_exceptions: _Off = ..., stream: _On, ordered: bool = ...,
    ) -> Results[R]: ...
    @overload
    def starmap(
        self, fn: Callable[..., PendingFunction[R]], items: Items[Iterable[Any]], /, *,
        return_exceptions: bool, stream: _On, ordered: bool = ...,
    ) -> Results[R | BaseException]: ...
    @overload
    def starmap(
        self, fn: Callable[..., R], items: Items[Iterable[Any]], /, *,
        return_exceptions: _Off = ..., stream: _Off = ..., ordered: bool = ...,
    ) -> list[R]: ...
    @overload
    def starmap(
        self, fn: Callable[..., R], items: Items[Iterable[Any]], /, *,
        return_exceptions: bool, stream: _Off = ..., ordered: bool = ...,
    ) -> list[R | BaseException]: ...
    @overload
    def starmap(
        self, fn: Callable[..., R], items: Items[Iterable[Any]], /, *,
        return_exceptions: _Off = ..., stream: _On, ordered: bool = ...,
    ) -> Results[R]: ...
    @overload
    def starmap(
        self, fn: Callable[..., R], items: Items[Iterable[Any]], /, *,
        return_exceptions: bool, stream: _On, ordered: bool = ...,
    ) -> Results[R | BaseException]: ...
    # fmt: on
    def starmap(
        self,
        fn: Callable[..., Any],
        items: Any,
        /,
        *,
        return_exceptions: bool = False,
        stream: bool = False,
        ordered: bool = True,
    ) -> Any:
        """
        Run a function once for each tuple of arguments; like `map` in everything else.

        Args:
            fn: Takes what is in a tuple; need not be decorated.
            items: An iterable of tuples, which may be asynchronous.
            return_exceptions: As for `map`.
            stream: As for `map`.
            ordered: As for `map`.

        Raises:
            Exception: The first failure in the order of the items, or what the iterator raised.

        >>> import skyward as sky
        >>> with sky.Compute(console="silent") as pool:
        ...     pool.starmap(pow, [(2, 3), (3, 2)])
        [8, 9]
        """
        from skyward.engine.calls.pulling import ItemSource

        source = ItemSource([items], star=True)
        return self._map(fn, source, keep_errors=return_exceptions, stream=stream, ordered=ordered)

    def executor(self) -> PoolExecutor:
        """
        Return the pool as an executor of the standard library, for programs that take one.

        Shutting it down leaves the pool open.

        Raises:
            PoolClosedError: If the pool is not open.

        >>> import skyward as sky
        >>> with sky.Compute(console="silent") as pool, pool.executor() as executor:
        ...     executor.submit(pow, 2, 3).result()
        ...     list(executor.map(pow, [2, 3], [3, 2]))
        8
        [8, 9]
        """
        from skyward.executor import PoolExecutor

        return PoolExecutor(self._running)

    def _map(self, fn: Any, source: ItemSource, *, keep_errors: bool, stream: bool, ordered: bool) -> Any:
        from skyward.engine.calls import mapping

        function, running = as_function(fn), self._running
        if stream:
            return mapping.stream(running, function, source, ordered=ordered, keep_errors=keep_errors)
        return mapping.collect(running, function, source, keep_errors=keep_errors)
