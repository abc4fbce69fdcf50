"""What is answered for the calls of a process that died."""

from __future__ import annotations

from skyward.link.frames import MAX_BODY
from skyward.node.agent.last_answers import _last


def test_a_failure_has_the_last_lines_that_fit() -> None:
    """Of endless ones the end, so that the answer fits into its frame whatever was written."""
    assert ["first", "last"] == _last(["first", "last"])
    assert ["x" * 65_535] == [line for line in _last(["early", "y" * 70_000, "x" * 65_535]) if line]
    assert [65_536] == list(map(len, _last(["early", "z" * MAX_BODY])))
