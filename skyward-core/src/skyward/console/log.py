"""
The append-only console: lines with the time of day, for files, pipes and agents that poll them.
"""

from __future__ import annotations

from time import localtime, strftime
from typing import TextIO

from attrs import define

from skyward.console.beside_bars import beside_bars
from skyward.console.call_cells import CallCells
from skyward.console.causes import Causes
from skyward.console.closing import Calls, closing
from skyward.console.line_style import dressed
from skyward.console.wording import Line, count, lasted, money, tell
from skyward.model.events.event import (
    ALL,
    BootstrapCommand,
    BootstrapConsole,
    ClusterReady,
    ClusterRequested,
    CostFinal,
    CostUpdate,
    Metric,
    Metrics,
    Progress,
    SkywardEvent,
    TaskCompleted,
    TaskStarted,
)

__all__ = ["LogConsole"]

# Lines about tasks in a second; the rest of them is only counted.
_TASK_LINES = 10
# Progress is logged each second at first, later as often as a reader of a long file can stand.
_OFTEN_S, _OFTEN_LINES, _SELDOM_S = 1.0, 10, 10.0
_COST_S = 60.0
_UNHEARD = (TaskStarted, Metric, Metrics, BootstrapConsole, BootstrapCommand)


@define(eq=False)
class _Reported:
    """Hold how far one map or gather was when it was last reported, and how often it was."""

    since: float
    at: float
    done: int
    times: int = 1


class LogConsole:
    """
    Write what happens to a stream, line by line.

    Lifecycle, log lines, failures and tasks longer than a second have lines; short tasks have none of their own.

    Args:
        stream: Where to write.
        colours: Whether the stream is a terminal that shows colours.

    >>> import io
    >>> from skyward.model.events.event import Log
    >>> stream = io.StringIO()
    >>> LogConsole(stream).handle(Log(line="loss 0.1", node=3))
    >>> stream.getvalue()[9:]
    'node-3 | loss 0.1\\n'
    """

    events: tuple[type[SkywardEvent], ...] = tuple(kind for kind in ALL if kind not in _UNHEARD)
    cells: CallCells | None = None

    def __init__(self, stream: TextIO, *, colours: bool = False) -> None:
        self._stream = stream
        self._colours = colours
        self._clock = (-1, "")
        self._second = -1
        self._task_lines = 0
        self._unreported = 0
        self._reported: dict[str, _Reported] = {}
        self._cost_at = float("-inf")
        self._causes = Causes()
        self._calls = Calls()
        self._began = self._at = self._owed = 0.0
        self._nodes = 0
        self._logs = ""

    def handle(self, event: SkywardEvent) -> None:
        """
        Write what is worth writing about an event.

        Args:
            event: What happened.
        """
        self._at = event.at
        self._began = self._began or event.at
        if type(event) is TaskCompleted:
            self._task(event)
        elif type(event) is Progress:
            self._progress(event)
        elif type(event) is CostUpdate:
            self._cost(event)
        else:
            self._other(event)

    def close(self) -> None:
        """Write what has been held back, and what the pool did; the stream stays open."""
        self._failures(self._second)
        last = closing(self._calls, self._at - self._began, self._nodes, self._owed, self._logs)
        if last is not None:
            self._write(self._at, last)

    def _other(self, event: SkywardEvent) -> None:
        if isinstance(event, ClusterReady):
            self._nodes = max(self._nodes, event.nodes)
        elif isinstance(event, CostFinal):
            self._owed = event.total_cost
        elif isinstance(event, ClusterRequested):
            self._logs = event.logs
        line = self._causes.tell(event)
        if line is not None:
            self._write(event.at, line)

    def _task(self, event: TaskCompleted) -> None:
        calls = self._calls
        if event.success:
            calls.done += 1
            # Most of the tasks of a busy pool take this way out.
            if event.duration <= 1.0:
                return
        elif event.stopped:
            # Their number is said at the end.
            calls.cancelled += 1
            return
        elif not event.again:
            calls.failed += 1
        second = int(event.at)
        if second != self._second:
            self._failures(second)
            self._second, self._task_lines = second, 0
        if self._task_lines < _TASK_LINES:
            self._task_lines += 1
            line = tell(event)
            if line is not None:
                self._write(event.at, line)
        elif not event.success:
            self._unreported += 1

    def _failures(self, at: float) -> None:
        if self._unreported:
            self._write(at, Line(f"{count(self._unreported)} more failed or are tried again", "error"))
            self._unreported = 0

    def _progress(self, event: Progress) -> None:
        last = self._reported.get(event.label)
        if last is None or event.done < last.done:
            self._reported[event.label] = _Reported(event.at, event.at, event.done)
            # The beginning is no news, unless it is the end as well.
            if event.done and event.done == event.total:
                self._write(event.at, Line(_how_far(event, event.at), "note"))
            return
        pause = _OFTEN_S if last.times <= _OFTEN_LINES else _SELDOM_S
        finished = event.done == event.total and last.done != event.total
        if not finished and (event.at - last.at < pause or event.done == last.done):
            return
        last.at, last.done, last.times = event.at, event.done, last.times + 1
        self._write(event.at, Line(_how_far(event, last.since), "note"))

    def _cost(self, event: CostUpdate) -> None:
        if event.hourly_rate and event.at - self._cost_at >= _COST_S:
            self._cost_at = event.at
            self._write(
                event.at, Line(f"cost {money(event.accumulated_cost)} so far, {money(event.hourly_rate)} an hour")
            )

    def _write(self, at: float, line: Line) -> None:
        second = int(at)
        if self._clock[0] != second:
            self._clock = (second, strftime("%H:%M:%S", localtime(second)))
        written = "".join(f"{self._clock[1]} {text}\n" for text in dressed(line, colours=self._colours))
        try:
            with beside_bars(self._stream):
                self._stream.write(written)
                self._stream.flush()
        except (OSError, ValueError):
            # The reader of the pipe has gone, or the stream was closed: there is nothing left to write to.
            return


def _how_far(event: Progress, since: float) -> str:
    """Return how far a map or gather is."""
    took = event.at - since
    rate = f", {count(event.done / took)} a second" if took >= 1 else ""
    if event.total is None:
        return f"{event.label}: {count(event.done)} done{rate}"
    share = f" ({event.done / event.total:.0%})" if event.total and event.done < event.total else ""
    end = f" in {lasted(took)}" if event.done == event.total and took else ""
    return f"{event.label}: {count(event.done)} of {count(event.total)}{share}{end}{rate}"
