"""How much is under way follows the line."""

from __future__ import annotations

import mmap

from skyward.link.cells import CHUNK
from skyward.link.outbox import LEAST_WINDOW, MOST_WINDOW, Outbox


def _under_way(outbox: Outbox, now: float) -> int:
    """Send as much as may be sent, and give its number of cells."""
    cells = 0
    while outbox.next(1, now):
        cells += 1
    return cells


def _busy() -> Outbox:
    """Give an outbox with more to send than any window takes."""
    outbox = Outbox()
    outbox.add(b"frame", [memoryview(mmap.mmap(-1, 4 << 30))])
    return outbox


class Line:
    """A line that takes each cell so many seconds, and has them acknowledged one by one."""

    def __init__(self) -> None:
        self.outbox = _busy()
        self.now = 0.0
        self.acknowledged = 0
        self.under_way = _under_way(self.outbox, self.now)

    def turn(self, seconds: float) -> None:
        """Have all that is under way acknowledged after so many seconds, and send more."""
        self.now += seconds
        for _ in range(self.under_way):
            self.acknowledged += 1
            self.outbox.acknowledged(self.acknowledged, self.now)
        self.under_way = _under_way(self.outbox, self.now)

    @property
    def window(self) -> int:
        return self.under_way * CHUNK


def test_window_begins_small() -> None:
    """So that a slow line has little before a small frame."""
    assert Line().window <= LEAST_WINDOW + CHUNK


def test_window_grows_while_acknowledgements_are_prompt() -> None:
    """Up to what memory may be taken for it."""
    line = Line()
    for _ in range(20):
        line.turn(0.05)
    assert MOST_WINDOW - 2 * CHUNK <= line.window <= MOST_WINDOW + 2 * CHUNK


def test_window_shrinks_while_acknowledgements_are_late() -> None:
    """What is under way only waits somewhere then."""
    line = Line()
    for _ in range(5):
        line.turn(0.05)
    before = line.window
    for _ in range(30):
        line.turn(0.2)
    assert line.window <= LEAST_WINDOW + CHUNK < before


def test_single_late_acknowledgement_changes_nothing() -> None:
    """A process did not get the processor for a moment."""
    line = Line()
    for _ in range(5):
        line.turn(0.05)
    before = line.window
    line.now += 0.2
    line.acknowledged += 1
    line.outbox.acknowledged(line.acknowledged, line.now)
    line.now -= 0.2
    line.under_way += _under_way(line.outbox, line.now) - 1
    line.turn(0.05)
    assert line.window >= before
