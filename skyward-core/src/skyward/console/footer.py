"""
What the consoles with a footer share: folding events, writing lines above, drawing now and then.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from typing import TextIO

from skyward.console.call_cells import CallCells
from skyward.console.closing import closing_of
from skyward.console.line_style import dressed
from skyward.console.notes import Notes
from skyward.console.screen import Panel, Screen, screen_of
from skyward.console.state import State, fold
from skyward.console.wording import Line
from skyward.model.events.event import ALL, Log, Metric, SkywardEvent, TaskStarted

__all__ = ["FooterConsole"]

# Events are folded when the footer is drawn, or when so many have come.
_PENDING = 2048


class FooterConsole(ABC):
    """
    Show a pool at the footer of a terminal.

    Args:
        stream: The terminal.
        colours: Whether it shows colours.
        screen: What draws on it; the stream's own if left out.
    """

    events: tuple[type[SkywardEvent], ...] = tuple(kind for kind in ALL if kind is not Metric)
    cells: CallCells | None = None

    def __init__(self, stream: TextIO, *, colours: bool = True, screen: Screen | None = None) -> None:
        self.colours = colours
        self.unicode = "utf" in (getattr(stream, "encoding", None) or "utf-8").lower()
        self._screen = screen or screen_of(stream)
        self._lock = threading.Lock()
        self._pending: list[SkywardEvent] = []
        self._state = State()
        self._notes = Notes()
        self._panel: Panel | None = None
        self._closed = False

    @abstractmethod
    def rows(self, state: State, now: float, width: int, spare: int) -> list[str]:
        """
        Return the rows of the footer.

        Args:
            state: What is known.
            now: The time, in seconds since the epoch.
            width: How many columns a row may fill.
            spare: How many rows there may be.
        """

    def handle(self, event: SkywardEvent) -> None:
        """
        Take in an event; lines are written at once, the footer follows with its next drawing.

        Args:
            event: What happened.
        """
        kind = type(event)
        if kind is Log:
            self._write(Line(event.line, "log", event.node))  # type: ignore[attr-defined]
            return
        with self._lock:
            self._pending.append(event)
            if len(self._pending) >= _PENDING:
                self._fold()
        if kind is TaskStarted:
            return
        if self._panel is None and not self._closed:
            self._panel = self._screen.add(self._draw)
        line = self._notes.line(event)
        if line is not None:
            self._write(line)

    def close(self) -> None:
        """Take the footer down, and say what the pool did; the stream stays open."""
        self._closed = True
        panel, self._panel = self._panel, None
        if panel is not None:
            self._screen.remove(panel)
        rest = self._notes.rest()
        if rest is not None:
            self._write(rest)
        with self._lock:
            self._fold()
        last = closing_of(self._state)
        if last is not None:
            self._write(last)

    def _write(self, line: Line) -> None:
        self._screen.write(dressed(line, colours=self.colours))

    def _fold(self) -> None:
        pending, self._pending = self._pending, []
        self._state = fold(self._state, pending)

    def _draw(self, now: float, width: int, spare: int) -> list[str]:
        with self._lock:
            self._fold()
        return self.rows(self._state, now, width, spare)
