"""
Stack dumps of worker processes as values: what the client makes of those that arrive.

A module of its own, because agents and workers read dumps and have no use for the values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import isfinite
from typing import Any

from skyward.errors import ProtocolError
from skyward.link.messages import task_of
from skyward.link.stack_dump import word
from skyward.model.instances.worker_stacks import AsyncTask, ProcessStacks, StackFrame, Thread

__all__ = ["decode_process"]


def decode_process(
    dump: object, *, node: int, rank: Sequence[int], function: Callable[[int], str | None]
) -> ProcessStacks:
    """
    Read the dump of one process, as a node sends it.

    Args:
        dump: What it sent.
        node: The node's index.
        rank: The rank of each of its lanes.
        function: Names the function of a call that the node has.

    Raises:
        ProtocolError: If it is no dump.
    """
    try:
        return _process(dump, node, rank, function)
    except (TypeError, ValueError, KeyError, IndexError, AttributeError, OverflowError) as error:
        raise ProtocolError(f"Node {node} sent what is no dump of stacks: {type(error).__name__}: {error}.") from error


def _process(dump: Any, node: int, rank: Sequence[int], function: Callable[[int], str | None]) -> ProcessStacks:
    calls = {int(ident): (int(call), float(seconds)) for call, ident, seconds in dump["calls"] if isfinite(seconds)}
    threads = []
    for ident, frames in dump["threads"]:
        call, seconds = calls.get(int(ident), (None, None))
        threads.append(
            Thread(
                ident=int(ident),
                frames=_frames(frames),
                task_id=None if call is None else str(task_of(call)),
                function=None if call is None else function(call),
                seconds=seconds,
            )
        )
    tasks = [
        AsyncTask(name=word(name), thread=int(ident), frames=_frames(frames)) for name, ident, frames in dump["tasks"]
    ]
    return ProcessStacks(
        node=node,
        rank=rank[int(dump["lane"])],
        pid=int(dump["pid"]),
        threads=tuple(sorted(threads, key=lambda thread: thread.task_id is None)),
        tasks=tuple(tasks),
        trouble=word(dump["trouble"]),
    )


def _frames(frames: Iterable[Any]) -> tuple[StackFrame, ...]:
    return tuple(
        StackFrame(word(file), None if line is None else int(line), word(function)) for file, line, function in frames
    )
