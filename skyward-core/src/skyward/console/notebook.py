"""
The console of a notebook: a live widget under the cell that opened the pool, and output under the cell that caused it.
"""

from __future__ import annotations

import io
import threading
from collections.abc import Callable
from time import time
from typing import TextIO, cast
from uuid import uuid4

from skyward.console.call_cells import CallCells
from skyward.console.cell_lines import WINDOW_S, CellLines
from skyward.console.closing import closing_of
from skyward.console.kernel import JupyterKernel, StreamName
from skyward.console.line_style import dressed
from skyward.console.log import LogConsole
from skyward.console.notes import Notes
from skyward.console.state import State, fold
from skyward.console.widget import html_of, text_of
from skyward.console.wording import Line
from skyward.model.events.event import ALL, Log, Metric, SkywardEvent

__all__ = ["CellLogConsole", "NotebookConsole", "SilentCells"]

# Events are folded when the widget is drawn, or when so many have come.
_PENDING = 2048
# Where only clocks go on, it is drawn less often.
_CLOCK_S = 5.0


class _InKernel:
    """
    Share what every console of a notebook does: cancel what an interrupted cell has sent, and act now and then.

    Args:
        kernel: The kernel that this process is.
        flush: Sends the lines that are held back.
    """

    def __init__(self, kernel: JupyterKernel, flush: Callable[[], None] = lambda: None) -> None:
        self._kernel = kernel
        self._flush = flush
        self.cells = CallCells(kernel.cell, flush)
        self._forget = kernel.after_each_cell(self._cell_ended)
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="skyward-notebook", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread, and take no more interrupts."""
        self._closing.set()
        self._forget()
        self._thread.join()

    def draw(self) -> None:
        """Draw what has changed; called a few times a second."""

    def _run(self) -> None:
        while not self._closing.wait(WINDOW_S):
            self._kernel.wake()
            self._flush()
            self.draw()

    def _cell_ended(self, cell: str, interrupted: bool) -> None:  # noqa: FBT001 - IPython's event has both
        if interrupted:
            self.cells.interrupted(cell)
        # Programs that run a notebook take nothing of a cell that has ended.
        self._flush()
        self.draw()


class NotebookConsole(_InKernel):
    """
    Show a pool under the cell that opened it.

    Args:
        kernel: The kernel that this process is.
        colours: Whether lines are coloured.
    """

    events: tuple[type[SkywardEvent], ...] = tuple(kind for kind in ALL if kind is not Metric)

    def __init__(self, kernel: JupyterKernel, *, colours: bool = True) -> None:
        self._colours = colours
        self._cell = kernel.cell()
        self._display = uuid4().hex
        self._lines = CellLines(kernel)
        self._notes = Notes()
        self._lock = threading.Lock()
        self._drawing = threading.Lock()
        self._pending: list[SkywardEvent] = []
        self._state = State()
        self._drawn = self._state
        self._shown = ""
        self._drawn_at = 0.0
        super().__init__(kernel, self._lines.flush)

    def handle(self, event: SkywardEvent) -> None:
        """
        Take in an event; lines are written soon, the widget follows a few times a second.

        Args:
            event: What happened.
        """
        if isinstance(event, Log):
            line = Line(event.line, "log", event.node)
            self._lines.add(self.cells.of(event.task_id), event.stream, self._text(line))
            return
        with self._lock:
            self._pending.append(event)
            if len(self._pending) >= _PENDING:
                self._fold()
        if not self._shown:
            self.draw()
        note = self._notes.line(event)
        if note is not None:
            self._write(note)

    def close(self) -> None:
        """Draw the widget for the last time, and write what was held back."""
        super().close()
        self._drawn_at = 0.0
        self.draw()
        rest = self._notes.rest()
        if rest is not None:
            self._write(rest)
        last = closing_of(self._state)
        # The widget ends with the same line, where the pool was opened.
        if last is not None and self.cells.current() != self._cell:
            self._write(last)
        self._lines.flush()

    def draw(self) -> None:
        """Draw the widget, if it looks otherwise than before."""
        with self._drawing:
            self._draw()

    def _draw(self) -> None:
        with self._lock:
            self._fold()
        state, now = self._state, time()
        if not state.began or (state is self._drawn and now - self._drawn_at < _CLOCK_S):
            return
        self._drawn, self._drawn_at = state, now
        html = html_of(state, now)
        if html == self._shown:
            return
        again, self._shown = bool(self._shown), html
        # An update finds its display itself, so that it can be one of the cell that runs.
        cell = self._kernel.cell() if again else self._cell
        self._kernel.show(cell, self._display, {"text/html": html, "text/plain": text_of(state, now)}, again=again)

    def _fold(self) -> None:
        pending, self._pending = self._pending, []
        self._state = fold(self._state, pending)

    def _write(self, line: Line) -> None:
        self._lines.add(self.cells.current(), "stderr" if line.kind == "error" else "stdout", self._text(line))

    def _text(self, line: Line) -> str:
        return "".join(f"{text}\n" for text in dressed(line, colours=self._colours))


class CellLogConsole(_InKernel):
    """
    Write lines under cells, for front ends of kernels that show nothing but text.

    Args:
        kernel: The kernel that this process is.
        colours: Whether lines are coloured.
    """

    def __init__(self, kernel: JupyterKernel, *, colours: bool = True) -> None:
        self._output = _CellStream(kernel)
        self._log = LogConsole(cast("TextIO", self._output), colours=colours)
        self.events = self._log.events
        super().__init__(kernel)

    def handle(self, event: SkywardEvent) -> None:
        """
        Write what is worth writing about an event, a line of a task under the cell that sent it.

        Args:
            event: What happened.
        """
        of_task = event if isinstance(event, Log) else None
        self._output.cell = self.cells.of(of_task.task_id) if of_task else self.cells.current()
        self._output.stream = of_task.stream if of_task else "stdout"
        self._log.handle(event)

    def close(self) -> None:
        """Write what has been held back, and what the pool did."""
        super().close()
        self._output.cell, self._output.stream = self.cells.current(), "stdout"
        self._log.close()


class _CellStream(io.TextIOBase):
    """Write under the cell that was set last."""

    def __init__(self, kernel: JupyterKernel) -> None:
        self._kernel = kernel
        self.cell = kernel.cell()
        self.stream: StreamName = "stdout"

    def write(self, text: str) -> int:
        """Write text under the cell."""
        self._kernel.write(self.cell, self.stream, text)
        return len(text)


class SilentCells(_InKernel):
    """Show nothing, and cancel what an interrupted cell has sent."""

    events: tuple[type[SkywardEvent], ...] = ()

    def handle(self, event: SkywardEvent) -> None:
        """Pass the event over."""
