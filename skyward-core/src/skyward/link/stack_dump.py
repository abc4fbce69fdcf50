"""
Stack dumps of worker processes, as faulthandler writes them and as they travel; a pure codec.

A dump on its way is `{"pid", "lane", "threads", "tasks", "calls", "trouble"}`: threads are `[ident, frames]`, tasks
`[name, ident of the loop's thread, frames]`, calls `[id, ident of its thread, seconds]`, and a frame is
`[file, line, function]`, the innermost first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

from skyward.plain import plain_line

__all__ = ["OTHERS_CODE", "call_lines", "complete", "frames_of", "threads_of", "word"]

OTHERS_CODE: Final = re.compile(r"/(?:site|dist)-packages/|/lib/python3\.\d+/|/src/skyward(?:_\w+)?/|<frozen ")
"""Files that hold no code of the user's."""

MOST_FRAMES: Final = 64
"""Frames of a thread or task that travel, the innermost ones."""

MOST_TASKS: Final = 64
"""Tasks of a process that travel."""

_SHOWN: Final = 8
_SHOWN_TASKS: Final = 4
_WORD: Final = 500
_THREAD = re.compile(r"(?:Current thread|Thread) 0x([0-9a-f]+).*\(most recent call first\):")
_FRAME = re.compile(r'  File (?:"(.*)"|\?\?\?), line (\d+|\?\?\?) in (.*)')
_OUTERMOST = "in _run_module_as_main"


def complete(text: str) -> bool:
    """
    Return whether faulthandler has written all of a dump: it comes to the main thread last, or cuts off there.

    >>> complete('Thread 0x1 (most recent call first):\\n  File "<frozen runpy>", line 198 in _run_module_as_main\\n')
    True
    >>> complete('Thread 0x1 (most recent call first):\\n  File "a.py", line 1 in f\\n')
    False
    """
    if not text.endswith("\n"):
        return False
    last = text.rstrip("\n").rpartition("\n")[2]
    return last.endswith(_OUTERMOST) or last.strip() == "..."


def threads_of(text: str) -> list[list[Any]]:
    """
    Read a dump of faulthandler's: `[ident, frames]` of each thread, as they travel.

    >>> threads_of('Current thread 0x0a (most recent call first):\\n  File "a.py", line 3 in f\\n')
    [[10, [['a.py', 3, 'f']]]]
    """
    threads: list[list[Any]] = []
    for line in text.splitlines():
        if found := _THREAD.match(line):
            threads.append([int(found[1], 16), []])
        elif threads and (found := _FRAME.match(line)) and len(threads[-1][1]) < MOST_FRAMES:
            number = int(found[2]) if found[2].isdecimal() else None
            threads[-1][1].append([(found[1] or "???")[:_WORD], number, found[3][:_WORD]])
    return threads


def call_lines(dump: dict[str, Any], call: int) -> list[str]:
    """
    Describe where a call is, in lines for its error: the innermost place, and those in the user's own code.

    Args:
        dump: Of the process that runs it.
        call: Its id.

    >>> frames = [["/lib/python3.11/socket.py", 9, "recv"], ["train.py", 5, "load"], ["train.py", 2, "train"]]
    >>> call_lines({"threads": [[1, frames]], "tasks": [], "calls": [[7, 1, 0.5]]}, 7)
    ['/lib/python3.11/socket.py, line 9 in recv', 'train.py, line 5 in load', 'train.py, line 2 in train']
    """
    thread = next((ident for number, ident, _ in dump["calls"] if number == call), None)
    frames: list[Any] = next((frames for ident, frames in dump["threads"] if ident == thread), [])
    tasks = [(name, _places(frames)) for name, ident, frames in dump["tasks"] if ident == thread]
    lines = [] if tasks and not any(_own(file) for file, *_ in frames) else _places(frames)
    for name, places in tasks[:_SHOWN_TASKS]:
        lines += [f"asyncio task {name}: {places[0]}", *places[1:]] if places else []
    return lines


def frames_of(lines: Sequence[object]) -> tuple[str, ...]:
    """Return lines that came with an error, bounded in number and length."""
    return tuple(plain_line(str(line)[: 2 * _WORD]) for line in lines[: _SHOWN * (1 + _SHOWN_TASKS) + 8])


def word(value: object) -> str:
    """Return a text of a node's without what would move the cursor, and bounded in length."""
    return plain_line(str(value)[:_WORD])


def _own(file: str) -> bool:
    return OTHERS_CODE.search(file) is None


def _places(frames: Iterable[Any]) -> list[str]:
    """Return the innermost frame and the innermost ones of the user's, or some of all if none is."""
    read = [
        (word(file), f"{word(file)}, line {'?' if line is None else int(line)} in {word(name)}")
        for file, line, name in frames
    ]
    own = [place for file, place in read if _own(file)][:_SHOWN]
    if not own:
        return [place for _, place in read[:_SHOWN]]
    return own if _own(read[0][0]) else [read[0][1], *own]
