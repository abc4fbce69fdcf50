"""
Calls that are sent together: `sky.gather`.
"""

from __future__ import annotations

from typing import Any, Literal, TypeVar, overload

from skyward.pending import PendingFunction, PendingFunctionGroup, PendingStream, groupable

T = TypeVar("T")
# fmt: off
A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")
E = TypeVar("E")
F = TypeVar("F")
G = TypeVar("G")
H = TypeVar("H")
_Off = Literal[False]

@overload
def gather(
    a: PendingFunction[A],
    /, *, stream: _Off = ..., ordered: bool = ..., return_exceptions: _Off = ...,
) -> PendingFunctionGroup[A]: ...
@overload
def gather(
    a: PendingFunction[A], b: PendingFunction[B],
    /, *, stream: _Off = ..., ordered: bool = ..., return_exceptions: _Off = ...,
) -> PendingFunctionGroup[A, B]: ...
@overload
def gather(
    a: PendingFunction[A], b: PendingFunction[B], c: PendingFunction[C],
    /, *, stream: _Off = ..., ordered: bool = ..., return_exceptions: _Off = ...,
) -> PendingFunctionGroup[A, B, C]: ...
@overload
def gather(
    a: PendingFunction[A], b: PendingFunction[B], c: PendingFunction[C], d: PendingFunction[D],
    /, *, stream: _Off = ..., ordered: bool = ..., return_exceptions: _Off = ...,
) -> PendingFunctionGroup[A, B, C, D]: ...
@overload
def gather(
    a: PendingFunction[A], b: PendingFunction[B], c: PendingFunction[C], d: PendingFunction[D],
    e: PendingFunction[E],
    /, *, stream: _Off = ..., ordered: bool = ..., return_exceptions: _Off = ...,
) -> PendingFunctionGroup[A, B, C, D, E]: ...
@overload
def gather(
    a: PendingFunction[A], b: PendingFunction[B], c: PendingFunction[C], d: PendingFunction[D],
    e: PendingFunction[E], f: PendingFunction[F],
    /, *, stream: _Off = ..., ordered: bool = ..., return_exceptions: _Off = ...,
) -> PendingFunctionGroup[A, B, C, D, E, F]: ...
@overload
def gather(
    a: PendingFunction[A], b: PendingFunction[B], c: PendingFunction[C], d: PendingFunction[D],
    e: PendingFunction[E], f: PendingFunction[F], g: PendingFunction[G],
    /, *, stream: _Off = ..., ordered: bool = ..., return_exceptions: _Off = ...,
) -> PendingFunctionGroup[A, B, C, D, E, F, G]: ...
@overload
def gather(
    a: PendingFunction[A], b: PendingFunction[B], c: PendingFunction[C], d: PendingFunction[D],
    e: PendingFunction[E], f: PendingFunction[F], g: PendingFunction[G], h: PendingFunction[H],
    /, *, stream: _Off = ..., ordered: bool = ..., return_exceptions: _Off = ...,
) -> PendingFunctionGroup[A, B, C, D, E, F, G, H]: ...
@overload
def gather(
    *calls: PendingFunction[T], stream: Literal[True], ordered: bool = ..., return_exceptions: _Off = ...,
) -> PendingStream[T]: ...
@overload
def gather(
    *calls: PendingFunction[T], stream: Literal[True], ordered: bool = ..., return_exceptions: bool,
) -> PendingStream[T | BaseException]: ...
@overload
def gather(
    *calls: PendingFunction[T], stream: _Off = ..., ordered: bool = ..., return_exceptions: _Off = ...,
) -> PendingFunctionGroup[*tuple[T, ...]]: ...
@overload
def gather(
    *calls: PendingFunction[T], stream: _Off = ..., ordered: bool = ..., return_exceptions: bool,
) -> PendingFunctionGroup[*tuple[T | BaseException, ...]]: ...
# fmt: on
def gather(
    *calls: PendingFunction[Any], stream: bool = False, ordered: bool = True, return_exceptions: bool = False
) -> Any:
    """
    Group calls to be sent to a pool together.

    Args:
        calls: The pending calls.
        stream: Whether `>> pool` gives an iterator over results as they come, instead of a tuple.
        ordered: With `stream`, whether results come in the order of the calls, or in that of their ends.
        return_exceptions: Whether what is raised takes its place among the results instead of being raised.

    Raises:
        UsageError: If something is no pending call, or calls a generator function.

    >>> import skyward as sky
    >>> @sky.function
    ... def double(x: int) -> int:
    ...     return 2 * x
    >>> len(sky.gather(double(1), double(2)))
    2
    """
    for call in calls:
        groupable(call)
    if stream:
        return PendingStream(calls, ordered, return_exceptions)
    return PendingFunctionGroup(calls, return_exceptions)
