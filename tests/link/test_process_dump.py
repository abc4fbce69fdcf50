"""Stack dumps as values: what the client makes of what nodes send, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from skyward.errors import ProtocolError
from skyward.link.process_dump import decode_process


def _dump(**facts: Any) -> dict[str, Any]:
    return {"pid": 9, "lane": 0, "threads": [], "tasks": [], "calls": [], "trouble": ""} | facts


def test_a_process_is_read_with_its_calls() -> None:
    """Threads with calls come first; the id is that of the task, whatever the attempt."""
    dump = _dump(threads=[[1, []], [2, [["a.py", 3, "f"]]]], calls=[[5 | 1 << 48, 2, 0.5]], lane=1)
    process = decode_process(dump, node=4, rank=[0, 7], function=lambda call: "train" if call == 5 | 1 << 48 else None)
    assert (4, 7, 9) == (process.node, process.rank, process.pid)
    assert [("5", "train"), (None, None)] == [(thread.task_id, thread.function) for thread in process.threads]


def test_what_would_move_the_cursor_is_shown() -> None:
    """A node may name its files as it likes."""
    dump = _dump(threads=[[1, [["a\x1b[2J.py", 1, "f\n"]]]])
    process = decode_process(dump, node=0, rank=[0], function=lambda _: None)
    assert "\x1b" not in str(process.threads[0].frames[0])


@pytest.mark.parametrize(
    "dump",
    [
        None,
        {},
        _dump(lane=5),
        _dump(lane="x"),
        _dump(threads=[[1]]),
        _dump(threads=[["x", []]]),
        _dump(threads=[[1, [["a.py", "one", "f"]]]]),
        _dump(tasks=[1]),
        _dump(calls=[[1, 2]]),
    ],
)
def test_what_is_no_dump_is_refused(dump: Any) -> None:
    """Whatever a node sends in its place."""
    with pytest.raises(ProtocolError, match="no dump of stacks"):
        decode_process(dump, node=0, rank=[0], function=lambda _: None)
