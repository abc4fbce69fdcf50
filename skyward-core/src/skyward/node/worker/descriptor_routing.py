"""
Descriptors 1 and 2 follow routes, as far as it is known whose output is written there.

C code writes to them, and they belong to a process.
They follow a route while nothing else in the process writes there: while its call is the only one that runs, or
while every call that runs is silent; in a program, where it had no other thread when the route was entered.
Processes follow the thread that starts them: a process has descriptors of its own.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading

from skyward.node.task import task_context
from skyward.node.worker import routes
from skyward.node.worker.routes import STDERR, STDOUT, Silence, current_route
from skyward.node.worker.standard_descriptors import DESCRIPTORS, flush_c
from skyward.node.worker.started_processes import StartedProcesses

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from skyward.node.task.task_context import TaskContext
    from skyward.node.worker.routes import Route, Sink

_STREAMS = (("__stdout__", "stdout"), ("__stderr__", "stderr"))

_entered: list[tuple[Route, TaskContext | None]] = []
_hooked: list[bool] = []
_forking = threading.local()


@contextlib.contextmanager
def descriptors_follow(route: Route) -> Iterator[None]:
    """Direct descriptors, and processes that are started, by routes for a block in which this one is entered."""
    call = task_context.owner()
    try:
        with DESCRIPTORS.changing:
            _entered.append((route, call))
            if not _hooked:
                _hooked.append(True)
                os.register_at_fork(before=_before_fork, after_in_child=_in_child)
            _PROCESSES.follow()
            task_context.watchers.add(direct)
        yield
    finally:
        direct()
        with DESCRIPTORS.changing:
            # Those of calls that are over were cut off by an interrupt.
            going = {None, *task_context.running()}
            _entered[:] = [(one, its_call) for one, its_call in _entered if one is not route and its_call in going]
            if not _entered:
                task_context.watchers.discard(direct)
                _PROCESSES.unfollow()


def direct() -> None:
    """Direct descriptors 1 and 2 to where the routes lead that are followed now."""
    for index in (STDOUT, STDERR):
        # A process may have closed them, or have no more to open; what C code prints is shown then, if anywhere.
        with contextlib.suppress(OSError):
            if _wanted(index) == DESCRIPTORS.led(index + 1):
                continue
            # Not under the lock: what is written out may have to wait for a callback, and that may enter a route.
            _flush(index)
            with DESCRIPTORS.changing:
                DESCRIPTORS.lead(index + 1, _wanted(index))


def shared_sink(calls: Sequence[Sequence[Route]], index: int) -> Sink | None:
    """
    Return where output goes that may be any running call's: to the only call's sink, or nowhere if all are silent.

    Args:
        calls: The routes that each running call has entered, the innermost last.
        index: `STDOUT` or `STDERR`.

    >>> quiet, loud = (Silence(), None), (None, None)
    >>> [shared_sink(calls, STDOUT) is None for calls in ([[quiet]], [[quiet], [quiet]], [[quiet], [loud]], [[]])]
    [False, False, True, True]
    """
    sinks = [entered[-1][index] if entered else None for entered in calls]
    agreed = len(sinks) == 1 or (bool(sinks) and all(isinstance(sink, Silence) for sink in sinks))
    return sinks[0] if agreed else None


def descriptor_for_processes(fd: int) -> int | None:
    """
    Return where a process is to write that the calling thread starts; None if its own stream leads there.

    Args:
        fd: 1 for its stdout, 2 for its stderr.
    """
    route = current_route()
    sink = route[fd - 1] if route is not None else None
    target = sink.descriptor() if sink is not None else None
    if target is not None or (route is None and not routes.certain()):
        return target
    unrouted = DESCRIPTORS.unrouted(fd)
    return None if unrouted == fd else unrouted


_PROCESSES = StartedProcesses(descriptor_for_processes)


def _wanted(index: int) -> int | None:
    """Return the descriptor that C code is to write to; None for the stream's own."""
    of_program = tuple(route for _, route in routes.of_program)
    calls = [tuple(context.routes) or of_program for context in task_context.running()]
    sink = shared_sink(calls or [of_program], index)
    return None if sink is None else sink.descriptor()


def _flush(index: int) -> None:
    """Write out what Python's original stream and C code hold back for a descriptor."""
    original, current = (getattr(sys, name, None) for name in _STREAMS[index])
    # One of ours would follow the route; it says how the stream behind it is flushed.
    for flush in (getattr(original, "flush", None), getattr(current, "flush_own", None)):
        if flush is not None:
            with contextlib.suppress(OSError, ValueError):
                flush()
    flush_c(index + 1)


def _before_fork() -> None:
    """Choose what the child writes to while locks are free: in the child another thread may hold them for ever."""
    _forking.targets = [descriptor_for_processes(fd) for fd in (1, 2)] if _entered else []


def _in_child() -> None:
    """Direct a forked process's descriptors for good: they are its own."""
    DESCRIPTORS.forget()
    task_context.keep_own()
    for fd, target in enumerate(getattr(_forking, "targets", ()), 1):
        if target is not None:
            with contextlib.suppress(OSError):
                os.dup2(target, fd)
