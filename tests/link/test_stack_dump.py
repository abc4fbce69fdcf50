"""Stack dumps: what faulthandler writes, what travels, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from skyward.link.stack_dump import call_lines, complete, frames_of, threads_of

HELD = """Current thread 0x00007f2d5e2f9740 (most recent call first):
  File "/code/train.py", line 12 in hold
  File "/opt/lib/python3.11/site-packages/skyward/node/worker/execution.py", line 261 in _guarded
  File "<frozen runpy>", line 88 in _run_code
  File "<frozen runpy>", line 198 in _run_module_as_main
"""
"""Python 3.11, a call in C that holds the interpreter."""

THREADS = """Thread 0x00007f2d5c9ff6c0 [loader] (most recent call first):
  File "/opt/lib/python3.14/threading.py", line 324 in wait
  File "/code/data.py", line 7 in next

Thread 0x00007f2d5e2f9740 [python] (most recent call first):
  Garbage-collecting
  File ???, line ??? in ???
  File "<frozen runpy>", line 198 in _run_module_as_main
"""
"""Python 3.14 names threads; a frame that cannot be read has no names."""

DEEP = 'Thread 0x0000000000000001 (most recent call first):\n  File "a.py", line 1 in f\n  ...\n'


@pytest.mark.parametrize("text", [HELD, THREADS, DEEP])
def test_a_dump_that_came_to_its_end_is_complete(text: str) -> None:
    """Also one that was cut off for its depth."""
    assert complete(text)


@pytest.mark.parametrize("end", [1, 2, 30, 60, 200])
def test_a_dump_that_is_being_written_is_not_complete(end: int) -> None:
    """Wherever it has come to."""
    assert not complete(HELD[:-end])


def test_threads_and_their_frames_are_read() -> None:
    """The innermost frame first; names and numbers that are not known stay out."""
    assert [ident for ident, _ in threads_of(THREADS)] == [0x7F2D5C9FF6C0, 0x7F2D5E2F9740]
    assert threads_of(THREADS)[0][1][1] == ["/code/data.py", 7, "next"]
    assert threads_of(THREADS)[1][1][0] == ["???", None, "???"]
    assert threads_of("no dump at all") == []


def _dump(**facts: Any) -> dict[str, Any]:
    return {"pid": 9, "lane": 0, "threads": [], "tasks": [], "calls": [], "trouble": ""} | facts


def test_lines_of_a_call_are_of_the_users_code() -> None:
    """Frames of the interpreter, of packages and ours are left out, but for the innermost."""
    dump = _dump(threads=threads_of(HELD), calls=[[7, 0x7F2D5E2F9740, 1.0]])
    assert ["/code/train.py, line 12 in hold"] == call_lines(dump, 7)
    assert [] == call_lines(dump, 8)


def test_lines_of_a_coroutine_are_of_its_tasks() -> None:
    """The thread itself only waits for the event loop."""
    waits = [["/opt/lib/python3.11/selectors.py", 468, "select"]]
    tasks = [["Task-1", 1, [["/opt/lib/python3.11/asyncio/locks.py", 213, "wait"], ["/code/a.py", 4, "fetch"]]]]
    dump = _dump(threads=[[1, waits]], tasks=[*tasks, ["elsewhere", 2, [["b.py", 1, "b"]]]], calls=[[7, 1, 1.0]])
    assert call_lines(dump, 7) == [
        "asyncio task Task-1: /opt/lib/python3.11/asyncio/locks.py, line 213 in wait",
        "/code/a.py, line 4 in fetch",
    ]


def test_lines_are_bounded() -> None:
    """A node may send as many as it likes."""
    lines = frames_of(["x" * 10_000] * 10_000)
    assert len(lines) < 100
    assert all(len(line) <= 1000 for line in lines)


def test_lines_move_no_cursor() -> None:
    """A node may name its files as it likes."""
    assert "\x1b" not in frames_of(["\x1b[2J"])[0]
