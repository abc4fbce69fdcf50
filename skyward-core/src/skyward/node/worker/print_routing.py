"""
Where a call's prints go when they do not go to its worker's streams.

A route is a pair of sinks, for stdout and stderr; it is a context variable, so two calls in one process may print
to different places.
Threads that a call starts do not inherit context variables: they take the route of the only running call.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from contextvars import ContextVar

from skyward.node.task import runtime

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, Protocol

    class Sink(Protocol):
        """Take text instead of a stream."""

        def write(self, text: str, /) -> int: ...

        def flush(self) -> None: ...

    Route = tuple[Sink | None, Sink | None]

STDOUT, STDERR = 0, 1
_NAMES = ("stdout", "stderr")

_route: ContextVar[Route | None] = ContextVar("skyward_route", default=None)
_installing = threading.Lock()


class Silence:
    """
    Drop what is written.

    >>> Silence().write("gone")
    4
    """

    __slots__ = ()

    def write(self, text: str, /) -> int:
        """Take text and drop it."""
        return len(text)

    def flush(self) -> None:
        """Do nothing."""


class RoutedStream:
    """
    Stand before a stream of a process that is no worker, with routes that bypass it.

    Args:
        stream: What stood there before, and has everything but what a route takes.
        index: `STDOUT` or `STDERR`.
    """

    follows_routes = True

    def __init__(self, stream: Any, index: int) -> None:
        self._stream = stream
        self._index = index
        self.users = 0

    def write(self, text: str, /) -> int:
        """Write to where the route leads."""
        sink = sink_of(self._index)
        written: int = self._stream.write(text) if sink is None else sink.write(text)
        return written

    def writelines(self, lines: Any, /) -> None:
        """Write each of the lines."""
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Flush where the route leads."""
        sink = sink_of(self._index)
        (self._stream if sink is None else sink).flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def sink_of(index: int) -> Sink | None:
    """Return the sink that this thread's writes to a stream go to; None if they go to the stream."""
    route = current_route()
    return None if route is None else route[index]


def current_route() -> Route | None:
    """Return the route of the calling thread."""
    route = _route.get()
    if route is None:
        context = runtime.owner()
        routes = context.routes if context is not None else ()
        return routes[-1] if routes else None
    return route


@contextlib.contextmanager
def routed(stdout: Sink | None = None, stderr: Sink | None = None) -> Iterator[None]:
    """
    Send writes elsewhere for a while; a sink that is None leaves the stream as it is.

    Threads of the same call that have no route of their own follow.

    >>> with routed(stdout=Silence()):
    ...     print("not to be seen")
    """
    out, err = current_route() or (None, None)
    route = (stdout or out, stderr or err)
    context = runtime.owner()
    with _following((stdout is not None, stderr is not None)), on_route(route):
        if context is None:
            yield
            return
        context.routes.append(route)
        try:
            yield
        finally:
            # By identity, because routes of one call may be left in another order than they were entered in.
            for at, one in enumerate(context.routes):
                if one is route:
                    del context.routes[at]
                    break


@contextlib.contextmanager
def on_route(route: Route | None) -> Iterator[None]:
    """Direct what the calling thread writes to where a route leads."""
    token = _route.set(route or (None, None))
    try:
        yield
    finally:
        _route.reset(token)


@contextlib.contextmanager
def _following(wanted: tuple[bool, bool]) -> Iterator[None]:
    """Make sure that the process's streams look at routes; a worker's do by themselves."""
    held = [_hold(index) for index in (STDOUT, STDERR) if wanted[index]]
    try:
        yield
    finally:
        for stream in held:
            if stream is not None:
                _release(stream)


def _hold(index: int) -> RoutedStream | None:
    with _installing:
        stream = getattr(sys, _NAMES[index])
        if stream is None:
            return None
        if not getattr(stream, "follows_routes", False):
            stream = RoutedStream(stream, index)
            setattr(sys, _NAMES[index], stream)
        if not isinstance(stream, RoutedStream):
            return None
        stream.users += 1
        return stream


def _release(stream: RoutedStream) -> None:
    with _installing:
        stream.users -= 1
        name = _NAMES[stream._index]
        if not stream.users and getattr(sys, name) is stream:
            setattr(sys, name, stream._stream)
