"""Where the threads of this process are, and the tasks of its event loops."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from skyward.link.stack_dump import MOST_FRAMES, MOST_TASKS

if TYPE_CHECKING:
    from types import FrameType

__all__ = ["loop_tasks", "thread_stacks"]

MOST_THREADS = 128
"""Threads that are listed, the main one among them: what is said fits into a frame."""

_TURNS = frozenset({"run", "run_forever", "run_until_complete"})
"""Names of functions that run an event loop as long as they are on a thread's stack."""


def thread_stacks() -> list[list[Any]]:
    """
    List where the threads of this process are, but for the one that asks: ident, frames with the innermost first.

    No thread runs meanwhile, so that the frames are whole.

    >>> threading.get_ident() in dict(thread_stacks())
    False
    """
    main, asks = threading.main_thread().ident, threading.get_ident()
    frames = sorted(sys._current_frames().items(), key=lambda thread: thread[0] == main)
    return [[ident, _stack(frame)] for ident, frame in frames if ident != asks][-MOST_THREADS:]


def _stack(frame: FrameType | None) -> list[list[Any]]:
    frames: list[list[Any]] = []
    while frame is not None and len(frames) < MOST_FRAMES:
        frames.append([frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name])
        frame = frame.f_back
    return frames


def loop_tasks() -> list[list[Any]]:
    """
    List the tasks of the event loops that threads of this process run: name, thread, frames with the innermost first.

    >>> import asyncio
    >>> async def wait():
    ...     return sum(frames[-1][2] == "wait" for _, _, frames in loop_tasks())
    >>> asyncio.run(wait())
    1
    """
    asyncio = sys.modules.get("asyncio")
    if asyncio is None:
        return []
    found: list[list[Any]] = []
    for thread, frame in sys._current_frames().items():
        for loop in {id(loop): loop for loop in _loops(frame, asyncio)}.values():
            for task in asyncio.all_tasks(loop):
                if len(found) < MOST_TASKS:
                    found.append([task.get_name(), thread, _frames(task.get_coro())])
    return sorted(found, key=lambda task: str(task[0]))


def _loops(frame: FrameType | None, asyncio: Any) -> Iterator[Any]:
    """Return the loops that a thread runs."""
    while frame is not None:
        if frame.f_code.co_name in _TURNS:
            runs = frame.f_locals.get("self")
            for loop in (runs, getattr(runs, "_loop", None)):
                if isinstance(loop, asyncio.AbstractEventLoop):
                    yield loop
        frame = frame.f_back


def _frames(coroutine: Any) -> list[list[Any]]:
    """Return where a coroutine is, through all that it awaits."""
    frames: list[list[Any]] = []
    while coroutine is not None and len(frames) < MOST_FRAMES:
        for kind, awaits in (("cr", "await"), ("gi", "yieldfrom"), ("ag", "await")):
            frame = getattr(coroutine, f"{kind}_frame", None)
            if frame is not None:
                frames.insert(0, [frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_qualname])
                coroutine = getattr(coroutine, f"{kind}_{awaits}", None)
                break
        else:
            break
    return frames
