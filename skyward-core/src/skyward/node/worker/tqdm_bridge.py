"""
Bars of tqdm in a task, as bars at the client.

A worker has no terminal: a bar would be lines of carriage returns. Where the user's code imports tqdm, its bars on
standard error or output report their progress instead, as `sky.track` does; others are left alone.
"""

from __future__ import annotations

import functools
import math
import os
import sys
from importlib.machinery import PathFinder

from skyward.node.task.task_context import current

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

__all__ = ["bridge", "bridge_when_imported"]

_MODULE = "tqdm.std"


def bridge_when_imported() -> None:
    """Change tqdm as soon as something imports it; now if that is done."""
    module = sys.modules.get(_MODULE)
    if module is not None:
        bridge(module)
    else:
        sys.meta_path.insert(0, _Finder())


class _Finder:
    """Find tqdm as Python does, and have it bridged once it is loaded."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of the one module, and None for any other."""
        if name != _MODULE:
            return None
        sys.meta_path.remove(self)
        spec = PathFinder.find_spec(name, path, target)
        if spec is None or spec.loader is None:
            return spec
        load = spec.loader.exec_module

        def load_and_bridge(module: ModuleType) -> None:
            load(module)
            bridge(module)

        # The loader was made for this import.
        spec.loader.exec_module = load_and_bridge  # type: ignore[method-assign]
        return spec


class _NoTerminal:
    """Take what a bar writes; as a terminal, so that bars which want one are shown."""

    encoding = "utf-8"

    def write(self, text: str, /) -> int:
        """Drop the text."""
        return len(text)

    def flush(self) -> None:
        """Do nothing."""

    def isatty(self) -> bool:
        """Return True."""
        return True


def bridge(module: Any) -> None:
    """
    Make bars report their progress, those that are made in a task from now on.

    Args:
        module: `tqdm.std`, of a version that draws bars by `display`; another one is left as it is.
    """
    kind = getattr(module, "tqdm", None)
    begin, display = getattr(kind, "__init__", None), getattr(kind, "display", None)
    if kind is None or begin is None or display is None or hasattr(display, "skyward_begin"):
        return
    kind.__init__ = _beginning(begin)
    kind.display = _displaying(display)


def _beginning(begin: Callable[..., None]) -> Callable[..., None]:
    process = os.getpid()

    @functools.wraps(begin)
    def started(self: Any, *args: Any, **options: Any) -> None:
        drawn_here = hasattr(type(self).display, "skyward_begin") and not options.get("gui")
        if (
            drawn_here
            # It stands behind the iterable, the description, the total and whether the bar stays.
            and len(args) < _FILE
            and _is_standard(options.get("file"))
            and os.getpid() == process
            and current() is not None
        ):
            options["file"] = _NoTerminal()
            self.skyward_bar = _Bar(self)
        begin(self, *args, **options)

    return started


_FILE = 5
"""Arguments of tqdm up to the one that says where it writes."""


def _displaying(display: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(display)
    def displayed(self: Any, *args: Any, **options: Any) -> Any:
        bar = getattr(self, "skyward_bar", None)
        if bar is None:
            return display(self, *args, **options)
        bar.show()
        return True

    displayed.skyward_begin = True  # type: ignore[attr-defined]
    return displayed


def _is_standard(file: object) -> bool:
    """Return whether a bar would go to the worker's standard error or output, which is no terminal."""
    return (file is None or file is sys.stderr or file is sys.stdout) and not _is_terminal(file or sys.stderr)


def _is_terminal(stream: Any) -> bool:
    try:
        return bool(stream.isatty())
    except (AttributeError, ValueError, OSError):
        return False


class _Bar:
    """
    Report how far one bar is.

    Args:
        bar: The bar, which begins.
    """

    __slots__ = ("_bar", "_report")

    def __init__(self, bar: Any) -> None:
        self._bar = bar
        self._report: Any = None

    def show(self) -> None:
        """Report how far it is; a bar that closes has been disabled before."""
        from skyward.node.task.progress_report import ProgressReport

        bar = self._bar
        context = current()
        if context is None:
            # It outlived its call.
            return
        total = _whole(bar.total)
        if self._report is None:
            # Under its first description: one that says how the loss is would be another bar each time.
            self._report = ProgressReport(_label(bar, context), total)
        self._report.total = total
        done = _whole(bar.n) or 0
        if bar.disable:
            self._report.finish(done)
        else:
            self._report.advance(done)


def _label(bar: Any, context: Any) -> str:
    from skyward.node.task.progress_report import label_of

    said = str(bar.desc or "").strip().removesuffix(":")
    below = abs(getattr(bar, "pos", 0))
    return said or (f"{label_of(context)} #{below + 1}" if below else label_of(context))


def _whole(number: Any) -> int | None:
    """Return a number of tqdm's as Progress has it; None where it has no end."""
    if number is None or not math.isfinite(number):
        return None
    return int(number)
