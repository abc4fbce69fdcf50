"""
Which console a pool has, and how it is opened.
"""

from __future__ import annotations

import os
import sys
from typing import Literal, Protocol, TextIO, TypeAlias, cast

from skyward.console.call_cells import CallCells
from skyward.console.kernel import JupyterKernel, reads_html, running_kernel
from skyward.model.events.event import SkywardEvent
from skyward.model.fields.setting import choice

__all__ = ["Console", "Mode", "Silent", "choose", "open_console"]

Mode: TypeAlias = Literal["rich", "minimal", "log", "silent"]
Cells: TypeAlias = Literal["notebook", "cell log", "silent"]

_MODES = ("rich", "minimal", "log", "silent")
_OLDER = {"spinner": "minimal", "quiet": "silent"}


class Console(Protocol):
    """Show the events of a pool to people."""

    @property
    def events(self) -> tuple[type[SkywardEvent], ...]:
        """Return the types that it wants to be subscribed to."""

    @property
    def cells(self) -> CallCells | None:
        """Return where it looks up the cells of tasks; None outside of notebooks."""

    def handle(self, event: SkywardEvent) -> None:
        """Take in an event; always called in the same thread."""

    def close(self) -> None:
        """Write what has been held back, and restore the terminal."""


class Silent:
    """Show nothing."""

    events: tuple[type[SkywardEvent], ...] = ()
    cells: CallCells | None = None

    def handle(self, event: SkywardEvent) -> None:
        """Pass the event over."""

    def close(self) -> None:
        """Do nothing."""


def choose(
    mode: bool | str,  # noqa: FBT001 - the option that users set is either
    stream: TextIO | None,
    term: str | None = None,
) -> Mode:
    """
    Return the console for a stream.

    Consoles that draw need a terminal they can draw on; elsewhere lines are appended instead.

    Args:
        mode: `"rich"`, `"minimal"` (or `"spinner"`), `"log"`, `"silent"` (or `"quiet"`); True is what fits the
            stream, False is nothing.
        stream: Where it writes; None where the process has no such stream.
        term: The terminal's type, as `TERM` names it, if known.

    Raises:
        ConfigError: There is no such console.

    >>> import io
    >>> choose(True, io.StringIO()), choose("quiet", io.StringIO())
    ('log', 'silent')
    """
    chosen = _wanted(mode)
    if stream is None or stream.closed:
        return "silent"
    if chosen in ("rich", "minimal") and (not stream.isatty() or term in ("", "dumb", "unknown")):
        return "log"
    return chosen


def choose_for_cells(
    mode: bool | str,  # noqa: FBT001 - the option that users set is either
    *,
    html: bool,
) -> Cells:
    """
    Return the console for a kernel of Jupyter's.

    Args:
        mode: As of `choose`; `"rich"` has the widget in any front end, `"minimal"` in none.
        html: Whether the front end shows HTML.

    Raises:
        ConfigError: There is no such console.

    >>> choose_for_cells(True, html=True), choose_for_cells(True, html=False), choose_for_cells("log", html=True)
    ('notebook', 'cell log', 'cell log')
    """
    wanted = _wanted(mode)
    if wanted == "silent":
        return "silent"
    return "notebook" if wanted == "rich" and (html or mode == "rich") else "cell log"


def open_console(
    mode: bool | str = True,  # noqa: FBT001, FBT002 - the option that users set is either
    stream: TextIO | None = None,
) -> Console:
    """
    Open the console for a stream.

    Args:
        mode: As of `choose`.
        stream: Where it writes; standard error if left out.

    Raises:
        ConfigError: There is no such console.
    """
    kernel = running_kernel()
    if kernel is not None:
        return _open_in_kernel(mode, kernel)
    stream = stream if stream is not None else sys.stderr
    chosen = choose(mode, stream, os.environ.get("TERM"))
    if chosen == "silent":
        return Silent()
    colours = stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") not in ("", "dumb")
    if chosen == "log":
        from skyward.console.log import LogConsole

        return LogConsole(stream, colours=colours)
    # Without Unicode there are no bars to draw.
    if chosen == "minimal" or "utf" not in (stream.encoding or "").lower():
        from skyward.console.minimal import MinimalConsole

        return MinimalConsole(stream, colours=colours)
    from skyward.console.live import LiveConsole

    return LiveConsole(stream, colours=colours)


def _open_in_kernel(
    mode: bool | str,  # noqa: FBT001 - as above
    kernel: JupyterKernel,
) -> Console:
    from skyward.console.notebook import CellLogConsole, NotebookConsole, SilentCells

    colours = not os.environ.get("NO_COLOR")
    match choose_for_cells(mode, html=reads_html(kernel.request, os.environ)):
        case "silent":
            return SilentCells(kernel)
        case "cell log":
            return CellLogConsole(kernel, colours=colours)
        case "notebook":
            return NotebookConsole(kernel, colours=colours)


def _wanted(
    mode: bool | str,  # noqa: FBT001 - as above
) -> Mode:
    """Return what a mode means where everything can be shown."""
    wanted = "rich" if mode is True else "silent" if mode is False else _OLDER.get(mode, mode)
    return cast("Mode", choice(wanted, "console", _MODES, also="True or False"))
