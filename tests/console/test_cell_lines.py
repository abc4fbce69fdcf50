"""Lines under cells: at once while they are few, together where they come thick."""

from __future__ import annotations

from typing import Any, cast

from skyward.console.cell_lines import AT_ONCE, WINDOW_S, CellLines


class Cells:
    """Keep what is written under cells, as a kernel sends it."""

    def __init__(self) -> None:
        self.now = 0.0
        self.sent: list[tuple[str, str, str]] = []
        self.lines = CellLines(cast("Any", self), lambda: self.now)

    def write(self, cell: str, stream: str, text: str) -> None:
        self.sent.append((cell, stream, text))


def test_a_line_is_sent_at_once() -> None:
    """What a cell prints after it is below it."""
    cells = Cells()
    cells.lines.add("1", "stdout", "a\n")
    assert [("1", "stdout", "a\n")] == cells.sent


def test_a_burst_is_sent_together() -> None:
    """Servers of notebooks drop what is more than a thousand messages a second."""
    cells = Cells()
    for number in range(1000):
        cells.lines.add("1", "stdout", f"{number}\n")
    assert AT_ONCE == len(cells.sent)
    cells.lines.flush()
    assert AT_ONCE + 1 == len(cells.sent)
    assert "".join(f"{number}\n" for number in range(1000)) == "".join(text for _, _, text in cells.sent)


def test_cells_and_streams_are_kept_apart() -> None:
    """In the order of their lines."""
    cells = Cells()
    for _ in range(AT_ONCE):
        cells.lines.add("1", "stdout", ".")
    cells.sent.clear()
    lines = [
        ("1", "stdout", "a"),
        ("1", "stdout", "b"),
        ("2", "stdout", "c"),
        ("2", "stderr", "d"),
        ("1", "stdout", "e"),
    ]
    for cell, stream, text in lines:
        cells.lines.add(cell, cast("Any", stream), text)
    cells.lines.flush()
    assert [("1", "stdout", "ab"), ("2", "stdout", "c"), ("2", "stderr", "d"), ("1", "stdout", "e")] == cells.sent


def test_after_a_while_lines_are_sent_at_once_again() -> None:
    """What was held back comes first."""
    cells = Cells()
    for _ in range(AT_ONCE):
        cells.lines.add("1", "stdout", ".")
    cells.sent.clear()
    cells.lines.add("1", "stdout", "held")
    cells.now += WINDOW_S
    cells.lines.add("1", "stdout", " back")
    assert [("1", "stdout", "held back")] == cells.sent
