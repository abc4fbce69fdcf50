"""How much is under way follows the line."""

from __future__ import annotations

import mmap

import pytest

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


def test_window_grows_slowly_where_cells_begin_to_wait() -> None:
    """A tenth later than the quickest is nothing, a third is a queue."""
    grown = []
    for late in (1.1, 1.35):
        line = Line()
        line.turn(0.05)
        before = line.window
        line.turn(0.05 * late)
        grown.append(line.window / before)
    assert grown[0] >= 1.9
    assert grown[1] <= 1.3


class Bottleneck:
    """A line that passes so many bytes a second, one cell after the other, on a virtual clock."""

    def __init__(self, rate: float, trip: float) -> None:
        self.outbox = _busy()
        self.rate, self.trip = rate, trip
        self.now = self.free = 0.0
        self.due: list[float] = []
        self.waits: list[float] = []
        self.passed = 0

    def run(self, cells: int) -> None:
        """Send so many cells, each acknowledged after a round trip, and note how long a small frame would wait."""
        while self.passed < cells:
            while out := self.outbox.next(1, self.now):
                self.free = max(self.free, self.now) + sum(map(len, out)) / self.rate
                self.due.append(self.free + self.trip)
            self.waits.append(max(0.0, self.free - self.now))
            self.now = self.due[self.passed]
            self.passed += 1
            self.outbox.acknowledged(self.passed, self.now)


@pytest.mark.parametrize(
    ("rate", "trip", "wait"),
    [(340e6, 0.0003, 0.002), (125e6, 0.001, 0.004), (2.5e6, 0.05, 0.2)],
    ids=["this machine", "a gigabit", "20 Mbit/s"],
)
def test_a_small_frame_waits_behind_little_on_a_line_that_is_full(rate: float, trip: float, wait: float) -> None:
    """And the line is full all the same."""
    line = Bottleneck(rate, trip)
    line.run(2000)
    assert sorted(line.waits[500:])[len(line.waits) // 2 - 250] <= wait
    assert 2000 * CHUNK / line.now >= 0.95 * rate
