"""
Routes: where a call's prints go when they do not go to its worker's streams.

A route is a pair of sinks, for stdout and stderr; it is a context variable, so two calls in one process may print
to different places, and so may two coroutines of one call.
Threads that a call starts do not inherit context variables: they take the route of the only running call.
"""

from __future__ import annotations

import contextlib
import os
import threading
from contextvars import ContextVar

from skyward.node.task import task_context
from skyward.node.worker.standard_descriptors import moved_up

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Protocol

    class Sink(Protocol):
        """Take text instead of a stream."""

        def write(self, text: str, /) -> int: ...

        def flush(self) -> None: ...

        def descriptor(self) -> int | None: ...

    Route = tuple[Sink | None, Sink | None]

STDOUT, STDERR = 0, 1

READER = "skyward-output"
"""Name of the threads that read what is written to the descriptors of a redirection."""

_route: ContextVar[Route | None] = ContextVar("skyward_route", default=None)
_nowhere: list[int] = []

of_program: list[tuple[int, Route]] = []
"""Routes of no call, with the thread that entered each; only such as the whole program follows."""


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

    def descriptor(self) -> int | None:
        """Return a descriptor that drops what is written, the same one each time."""
        if not _nowhere:
            _nowhere.append(moved_up(os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)))
        return _nowhere[0]


def sink_of(index: int) -> Sink | None:
    """Return the sink that this thread's writes to a stream go to; None if they go to the stream."""
    route = current_route()
    return None if route is None else route[index]


def current_route() -> Route | None:
    """Return the route of the calling thread; None if it has none, or if its call is not known."""
    route = _route.get()
    if route is not None or task_context.has_context():
        return route
    context = task_context.owner()
    routes = tuple(context.routes) if context is not None else ()
    if routes:
        return routes[-1]
    thread = threading.get_ident()
    followed = [route for entered_by, route in tuple(of_program) if entered_by != thread]
    return followed[-1] if followed else None


def certain() -> bool:
    """Return whether the calling thread is on no route where `current_route` gives none."""
    thread = threading.get_ident()
    return task_context.has_context() or any(entered_by == thread for entered_by, _ in tuple(of_program))


@contextlib.contextmanager
def on_route(route: Route | None) -> Iterator[None]:
    """Direct what the calling thread writes to where a route leads."""
    token = _route.set(route or (None, None))
    try:
        yield
    finally:
        _route.reset(token)


@contextlib.contextmanager
def followed(route: Route) -> Iterator[None]:
    """Direct threads by a route that have none: those of the same call, or of a program that had no other thread."""
    context, thread = task_context.owner(), threading.get_ident()
    if context is not None:
        context.routes.append(route)
    elif of_program or _alone():
        of_program.append((thread, route))
    try:
        yield
    finally:
        # By identity, because routes may be left in another order than they were entered in.
        if context is not None:
            context.routes[:] = [one for one in context.routes if one is not route]
        of_program[:] = [one for one in of_program if one[1] is not route]


def _alone() -> bool:
    """Return whether the program has no thread but this one, and those of redirections."""
    this = threading.current_thread()
    return all(thread is this or thread.name == READER for thread in threading.enumerate())
