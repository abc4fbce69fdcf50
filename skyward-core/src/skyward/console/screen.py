"""
The footer of a terminal: a few rows that are redrawn while everything else scrolls above them.

The rows are kept by the terminal's own scroll region.
So whatever the user's code writes, by `print`, from C or in a child process, scrolls above as usual and needs no
redirection, and `input` and the debugger work.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Callable
from time import time
from typing import TextIO
from weakref import WeakKeyDictionary

from attrs import define, field

from skyward.console.beside_bars import beside_bars

__all__ = ["GRACE_S", "INTERVAL_S", "Panel", "Screen", "screen_of"]

INTERVAL_S = 0.2
"""Between two drawings of the footer, in seconds."""

# Frames that changed nothing are left out, but not forever: the user may have cleared the screen.
_REFRESH_S = 1.0
# A pool that lives shorter than this is over before a footer could be read.
GRACE_S = 0.5
# Rows that are left to what scrolls, however many the footer would like.
_LEAST_SCROLLING = 4

_SAVE, _RESTORE = "\x1b7", "\x1b8"
_HIDE, _SHOW = "\x1b[?25l", "\x1b[?25h"
_DOWN = "\x1bD"  # unlike a line feed it keeps the column
_WHOLE = f"{_SAVE}\x1b[r{_RESTORE}"  # setting the region moves the cursor
_CLEAR_BELOW = "\x1b[J"

Draw = Callable[[float, int, int], list[str]]


@define(eq=False)
class Panel:
    """
    Be one console's share of the footer.

    Args:
        draw: Gets the time, the width in columns and the rows to spare, and returns rows no wider than that.
        since: When it was put up, in seconds since the epoch.
    """

    draw: Draw
    since: float = field(factory=time)


class Screen:
    """
    Draw the panels of all consoles of one terminal, and write lines above them.

    Args:
        stream: The terminal.
        size: Returns its size now; asked of the stream if left out.
    """

    def __init__(self, stream: TextIO, size: Callable[[], os.terminal_size] | None = None) -> None:
        self._stream = stream
        self._size = size or (lambda: os.get_terminal_size(stream.fileno()))
        self._lock = threading.RLock()
        self._panels: tuple[Panel, ...] = ()
        self._shape: tuple[int, int, int] | None = None
        self._rows: list[str] = []
        self._drawn_at = 0.0
        self._stop: threading.Event | None = None
        self._process = os.getpid()

    def add(self, draw: Draw) -> Panel:
        """
        Add a panel below those that are there.

        Args:
            draw: As of `Panel`.
        """
        panel = Panel(draw)
        with self._lock:
            self._panels = (*self._panels, panel)
            if self._stop is None:
                self._stop = threading.Event()
                threading.Thread(target=self._run, args=(self._stop,), name="skyward-console", daemon=True).start()
                atexit.register(self.restore)
        return panel

    def remove(self, panel: Panel) -> None:
        """
        Take a panel down; the last one gives the whole terminal back.

        Args:
            panel: What `add` returned.
        """
        with self._lock:
            self._panels = tuple(one for one in self._panels if one is not panel)
            if self._panels:
                self.draw()
            else:
                self.restore()

    def write(self, lines: list[str]) -> None:
        """
        Write lines above the footer.

        Args:
            lines: Without their ends.
        """
        # Before the lock: a thread that draws a bar may wait for it, and not the other way round.
        with beside_bars(self._stream), self._lock:
            self._send("".join(f"{line}\n" for line in lines))

    def draw(self) -> None:
        """Draw the footer as it is now."""
        now = time()
        with self._lock:
            try:
                columns, lines = self._size()
            except (OSError, ValueError):
                # Like a terminal that does not know its size and says 0: it has room for lines only.
                columns, lines = 0, 0
            rows: list[str] = []
            for panel in self._panels:
                spare = lines - _LEAST_SCROLLING - len(rows)
                if now - panel.since >= GRACE_S and spare > 0:
                    rows += panel.draw(now, columns, spare)[:spare]
            shape = (columns, lines, len(rows)) if rows else None
            if shape == self._shape and rows == self._rows and now - self._drawn_at < _REFRESH_S:
                return
            self._send(self._reshaped(shape) + _frame(rows, lines))
            self._shape, self._rows, self._drawn_at = shape, rows, now

    def restore(self) -> None:
        """Restore the whole terminal, and draw no more."""
        # A forked child that ends must leave its parent's footer alone, and may find the lock held by no thread.
        if os.getpid() != self._process:
            return
        with self._lock:
            if self._stop is not None:
                self._stop.set()
                self._stop = None
                atexit.unregister(self.restore)
            self._send(self._reshaped(None))
            self._shape = None
            self._rows = []

    def _run(self, stop: threading.Event) -> None:
        while not stop.wait(INTERVAL_S):
            with self._lock:
                if not stop.is_set():
                    self.draw()

    def _reshaped(self, shape: tuple[int, int, int] | None) -> str:
        """Return what makes room for a footer of another height, or in a terminal of another size."""
        if shape == self._shape:
            return ""
        # What is below the cursor is the footer as it was, wherever a change of the terminal's size has moved it.
        freed = "" if self._shape is None else f"{_WHOLE}{_CLEAR_BELOW}"
        if shape is None:
            return freed
        _, lines, height = shape
        room = f"{_DOWN * height}\x1b[{height}A{_SAVE}\x1b[1;{lines - height}r{_RESTORE}"
        return freed + room

    def _send(self, text: str) -> None:
        if not text:
            return
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):
            # The terminal is gone, or the stream was closed: there is nothing left to write to.
            return


def _frame(rows: list[str], lines: int) -> str:
    """Return what draws the rows at the bottom and leaves the cursor where it was."""
    if not rows:
        return ""
    top = lines - len(rows) + 1
    drawn = "".join(f"\x1b[{top + index};1H\x1b[0m\x1b[2K{row}" for index, row in enumerate(rows))
    return f"{_HIDE}{_SAVE}{drawn}\x1b[0m{_RESTORE}{_SHOW}"


_screens: WeakKeyDictionary[TextIO, Screen] = WeakKeyDictionary()
_screens_lock = threading.Lock()


def screen_of(stream: TextIO) -> Screen:
    """
    Return the one screen of a terminal; pools that are open side by side share it.

    Args:
        stream: The terminal.
    """
    with _screens_lock:
        screen = _screens.get(stream)
        if screen is None:
            screen = _screens[stream] = Screen(stream)
        return screen
