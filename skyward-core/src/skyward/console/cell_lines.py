"""Lines under the cells of a notebook, no more messages than its server passes on."""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import monotonic

from skyward.console.kernel import JupyterKernel, StreamName

__all__ = ["WINDOW_S", "CellLines"]

WINDOW_S = 0.25
"""Seconds for which messages are counted, and after which what was held back is sent."""

AT_ONCE = 50
"""Messages in that time; a notebook server drops what is more than a thousand a second."""


class CellLines:
    """
    Write lines under cells: at once as long as they are few, together where they come thick.

    Args:
        kernel: Where they are written.
        clock: Returns the time, in seconds.
    """

    def __init__(self, kernel: JupyterKernel, clock: Callable[[], float] = monotonic) -> None:
        self._kernel = kernel
        self._clock = clock
        self._lock = threading.Lock()
        self._held: list[tuple[str, StreamName, str]] = []
        self._window = float("-inf")
        self._sent = 0

    def add(self, cell: str, stream: StreamName, text: str) -> None:
        """
        Write text under a cell.

        Args:
            cell: Names the cell.
            stream: Which stream it is of.
            text: The text, with the end of its line.
        """
        with self._lock:
            self._held.append((cell, stream, text))
            now = self._clock()
            if now - self._window >= WINDOW_S:
                self._window, self._sent = now, 0
            if self._sent < AT_ONCE:
                self._send()

    def flush(self) -> None:
        """Send what was held back."""
        with self._lock:
            self._send()

    def _send(self) -> None:
        held, self._held = self._held, []
        while held:
            cell, stream, _ = held[0]
            same = next((at for at, one in enumerate(held) if one[:2] != (cell, stream)), len(held))
            self._kernel.write(cell, stream, "".join(one[2] for one in held[:same]))
            del held[:same]
            self._sent += 1
