"""Lines are numbered, kept up to a limit, and waited for."""

from __future__ import annotations

import threading

import skyward as sky
from skyward_mcp.lines import LONGEST, Lines


def test_a_reader_goes_on_where_it_was() -> None:
    """Each page says where the next one begins; numbers below 0 count from the end."""
    lines = Lines()
    for number in range(5):
        lines.add(f"line {number}")
    first = lines.page(after=0, most=2, wait=0)
    assert (("line 0", "line 1"), 2) == (first.lines, first.next)
    assert ("line 2", "line 3", "line 4") == lines.page(after=first.next, most=9, wait=0).lines
    assert ("line 3", "line 4") == lines.page(after=-2, most=9, wait=0).lines
    assert ((), 5) == ((last := lines.page(after=9, most=9, wait=0)).lines, last.next)


def test_what_is_not_kept_is_counted() -> None:
    """A reader that comes too late has the oldest line that is kept, and how many it missed."""
    lines = Lines(kept=3)
    for number in range(5):
        lines.add(str(number))
    page = lines.page(after=1, most=9, wait=0)
    assert (("2", "3", "4"), 5, 1) == (page.lines, page.next, page.dropped)


def test_a_reader_waits_for_a_line_and_for_no_longer_than_the_pool() -> None:
    """Where there is none, it returns as soon as one is there, or the pool is over."""
    lines = Lines()
    timer = threading.Timer(0.05, lines.add, ["late"])
    timer.start()
    assert ("late",) == lines.page(after=0, most=9, wait=30).lines
    lines.close()
    assert () == lines.page(after=1, most=9, wait=30).lines
    timer.join()


def test_a_line_holds_no_password_and_moves_no_cursor() -> None:
    """It may come from a node; a long one is cut off."""
    lines = Lines()
    lines.receive(sky.Log(node=1, line="\x1b[2Jfrom https://me:secret@example.org/x"))
    lines.add("x" * 2 * LONGEST)
    first, second = lines.page(after=0, most=9, wait=0).lines
    assert "node 1: from https://***@example.org/x" == first
    assert LONGEST == len(second)
