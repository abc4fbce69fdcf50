"""The footer of a terminal: rows that stay while everything else scrolls above them."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from skyward.console import screen as screen_module
from skyward.console.screen import Panel, Screen, screen_of
from tests.console.terminal import Terminal


@pytest.fixture(autouse=True)
def no_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    """Panels are drawn at once, and only when a test says so."""
    monkeypatch.setattr(screen_module, "GRACE_S", 0.0)
    monkeypatch.setattr(screen_module, "INTERVAL_S", 3600.0)


@contextmanager
def panel(screen: Screen, *rows: str) -> Iterator[Panel]:
    added = screen.add(lambda now, width, spare: list(rows))
    try:
        yield added
    finally:
        screen.remove(added)


def test_what_the_user_prints_scrolls_above_the_foot() -> None:
    """Whatever else is written to the terminal stays as it is, in order, above the footer."""
    terminal = Terminal()
    screen = Screen(terminal, terminal.size)
    with panel(screen, "footer one", "footer two"):
        for number in range(30):
            terminal.write(f"print {number}\n")
            screen.draw()
        assert ["footer one", "footer two"] == terminal.rows[-2:]
        assert [f"print {number}" for number in range(30)] == terminal.scrolled[:-2]


def test_a_line_may_be_written_in_pieces() -> None:
    """A drawing between two pieces of one line leaves the cursor where it was."""
    terminal = Terminal()
    screen = Screen(terminal, terminal.size)
    terminal.write("\n" * 20)
    with panel(screen, "footer"):
        terminal.write("loading ")
        screen.draw()
        terminal.write("done\n")
    assert ["loading done"] == terminal.scrolled


def test_the_foot_leaves_nothing_behind() -> None:
    """The terminal is whole again when the last panel is gone."""
    terminal = Terminal()
    screen = Screen(terminal, terminal.size)
    terminal.write("before\n")
    with panel(screen, "footer"):
        screen.draw()
    terminal.write("after\n")
    assert ["before", "after"] == terminal.scrolled
    assert terminal.bottom == terminal.lines - 1


@pytest.mark.parametrize("heights", [(1, 4, 2), (5, 1, 5), (2, 0, 3)], ids=str)
def test_the_foot_may_change_its_height(heights: tuple[int, ...]) -> None:
    """Lines above survive a footer that grows and shrinks."""
    terminal = Terminal()
    screen = Screen(terminal, terminal.size)
    rows: list[str] = []
    added = screen.add(lambda now, width, spare: rows)
    written = []
    for height in heights:
        rows[:] = [f"footer {index}" for index in range(height)]
        screen.draw()
        for number in range(9):
            written.append(f"line {height} {number}")
            screen.write([written[-1]])
        assert rows == [row for row in terminal.rows if row.startswith("footer")]
    screen.remove(added)
    assert written == terminal.scrolled


@pytest.mark.parametrize("size", [(40, 8), (100, 30)], ids=["smaller", "larger"])
def test_the_foot_follows_the_size(size: tuple[int, int]) -> None:
    """In a terminal that was resized there is one footer, at its bottom."""
    terminal = Terminal()
    screen = Screen(terminal, terminal.size)
    with panel(screen, "footer one", "footer two"):
        for number in range(15):
            screen.write([f"line {number}"])
        screen.draw()
        terminal.resize(*size)
        screen.draw()
        assert ["footer one", "footer two"] == terminal.rows[-2:]
        assert 1 == terminal.rows.count("footer one")
    assert [f"line {number}" for number in range(15)] == terminal.scrolled


def test_pools_share_the_foot() -> None:
    """Two panels stand one above the other, and either may go first."""
    terminal = Terminal()
    screen = Screen(terminal, terminal.size)
    first = screen.add(lambda now, width, spare: ["first"])
    second = screen.add(lambda now, width, spare: ["second"])
    screen.draw()
    assert ["first", "second"] == terminal.rows[-2:]
    screen.remove(first)
    assert ["", "second"] == terminal.rows[-2:]
    screen.remove(second)
    assert [] == terminal.scrolled


def test_a_small_terminal_keeps_room_for_lines() -> None:
    """The footer never takes the rows that lines need."""
    terminal = Terminal(lines=7)
    screen = Screen(terminal, terminal.size)
    with panel(screen, *(f"footer {index}" for index in range(20))):
        screen.draw()
        assert 3 == sum(row.startswith("footer") for row in terminal.rows)


def test_a_frame_like_the_last_is_not_sent() -> None:
    """A footer that has not changed costs nothing."""
    terminal = Terminal()
    screen = Screen(terminal, terminal.size)
    with panel(screen, "footer"):
        screen.draw()
        sent = len(terminal.raw)
        screen.draw()
        assert sent == len(terminal.raw)


def test_a_pool_that_is_over_at_once_shows_no_foot(monkeypatch: pytest.MonkeyPatch) -> None:
    """A panel appears only after a moment."""
    monkeypatch.setattr(screen_module, "GRACE_S", 3600.0)
    terminal = Terminal()
    screen = Screen(terminal, terminal.size)
    with panel(screen, "footer"):
        screen.draw()
    assert terminal.raw == ""


def test_a_closed_stream_is_passed_over() -> None:
    """A terminal that has gone breaks nothing."""
    read, write = os.pipe()
    os.close(read)
    stream = os.fdopen(write, "w")
    screen = Screen(stream, Terminal().size)
    with panel(screen, "footer"):
        screen.draw()
        screen.write(["line"])
    with suppress(BrokenPipeError):
        stream.close()
    screen.write(["line"])


def test_panels_are_drawn_by_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    """No caller has to ask for a drawing, and the thread ends with the last panel."""
    monkeypatch.setattr(screen_module, "INTERVAL_S", 0.001)
    terminal = Terminal()
    screen = Screen(terminal, terminal.size)
    drawn = threading.Event()

    def draw(now: float, width: int, spare: int) -> list[str]:
        drawn.set()
        return ["footer"]

    added = screen.add(draw)
    assert drawn.wait(10)
    screen.remove(added)
    assert terminal.scrolled == []


def test_a_terminal_has_one_screen() -> None:
    """Consoles of one stream meet on one screen."""
    terminal = Terminal()
    assert screen_of(terminal) is screen_of(terminal)
    assert screen_of(terminal) is not screen_of(Terminal())


def test_a_terminal_without_a_size_has_no_foot() -> None:
    """Where the terminal does not know its size, lines are all there is."""
    terminal = Terminal()
    screen = Screen(terminal, lambda: os.terminal_size((0, 0)))
    with panel(screen, "footer"):
        screen.draw()
        screen.write(["line"])
    assert terminal.raw == "line\n"
