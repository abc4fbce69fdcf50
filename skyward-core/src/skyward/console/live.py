"""
The full console: nodes, tasks, progress and cost at the footer of the terminal, log lines above them.
"""

from __future__ import annotations

from collections.abc import Iterable
from io import StringIO
from typing import TextIO

from rich.console import Console as RichConsole, RenderableType
from rich.progress_bar import ProgressBar
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from skyward.console.bar_wording import BAR_STAYS_S, how_far
from skyward.console.footer import FooterConsole
from skyward.console.line_style import rich_colour_of
from skyward.console.minimal import cut, summary
from skyward.console.node_rows import node_rows
from skyward.console.screen import Screen
from skyward.console.state import Bar, State
from skyward.console.wording import count, lasted, money, several

__all__ = ["LiveConsole"]

_BARS = 4
_BAR_WIDTH = 32
# With less than that, one row says all.
_LEAST_ROWS = 3
# A task that runs longer than this is named.
_LONG_S = 2.0


class LiveConsole(FooterConsole):
    """Show each node, what runs, how far each map is and what it costs."""

    def __init__(self, stream: TextIO, *, colours: bool = True, screen: Screen | None = None) -> None:
        super().__init__(stream, colours=colours, screen=screen)
        self._ink = RichConsole(
            file=StringIO(),
            force_terminal=True,
            color_system="auto" if colours else None,
            no_color=not colours,
            highlight=False,
            emoji=False,
            markup=False,
            legacy_windows=False,
        )

    def rows(self, state: State, now: float, width: int, spare: int) -> list[str]:
        """Return the heading, nodes, tasks, bars and cost, as far as there is room for them."""
        if spare < _LEAST_ROWS:
            return [cut(summary(state, now), width, "…" if self.unicode else "...")]
        bars = {name: bar for name, bar in state.bars.items() if not bar.complete or now - bar.at < BAR_STAYS_S}
        heading, tasks, cost = _heading(state, now), _tasks(state, now), _cost(state, now)
        left = spare - sum(part is not None for part in (heading, tasks, cost))
        shown = list(bars.items())[-min(_BARS, left - left // 2) :] if left else []
        room = min(max(spare // 2, left // 2), left - len(shown))
        parts = [heading, *node_rows(state, now, room, width), tasks, _bars(shown, now), cost]
        # By itself it takes what it writes to for 80 columns wide, and nothing becomes wider than that.
        self._ink.width = max(1, width)
        with self._ink.capture() as captured:
            for part in parts:
                if part is not None:
                    self._ink.print(part, width=width, no_wrap=True, overflow="ellipsis", crop=True)
        return captured.get().splitlines()[:spare]


def _heading(state: State, now: float) -> RenderableType:
    ready = sum(view.state == "ready" for view in state.nodes.values())
    wanted = max(state.wanted, sum(view.state != "gone" for view in state.nodes.values()))
    nodes = several(ready, "node") if ready >= wanted else f"{ready} of {several(wanted, 'node')}"
    phase = {"opening": "opening", "stopping": "closing", "closed": "closed"}.get(state.phase, "")
    facts = [state.provider, state.region or "", nodes, phase, lasted(now - state.began)]
    return Rule(Text(" · ".join(fact for fact in facts if fact), style="bold"), align="left", style="dim")


def _tasks(state: State, now: float) -> RenderableType | None:
    done, failed = sum(state.done.values()), sum(state.failed.values())
    if not (done or failed or state.running):
        return None
    text = Text("tasks  ")
    text.append(f"{count(len(state.running))} running · {count(done)} done")
    if failed:
        text.append(f" · {count(failed)} failed", style="red")
    rate = state.rate(now)
    if rate >= 0.1:
        text.append(f" · {count(rate)}/s")
    oldest = min(state.running.values(), key=lambda task: task.since, default=None)
    if oldest is not None and now - oldest.since > _LONG_S:
        text.append(f" · {oldest.function} on ", style="dim")
        text.append(f"node-{oldest.node}", style=rich_colour_of(oldest.node))
        text.append(f" for {lasted(now - oldest.since)}", style="dim")
    return text


def _bars(bars: Iterable[tuple[str, Bar]], now: float) -> RenderableType | None:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True, overflow="ellipsis", max_width=24)
    grid.add_column(width=_BAR_WIDTH)
    grid.add_column(no_wrap=True, overflow="ellipsis")
    for label, bar in bars:
        # A bar without an end moves; its own clock keeps it from jumping when the pool's other events come.
        share = ProgressBar(
            total=bar.total, completed=bar.done, width=_BAR_WIDTH, pulse=bar.total is None, animation_time=now
        )
        grid.add_row(Text(label), share, Text(how_far(bar, now)))
    return grid if grid.row_count else None


def _cost(state: State, now: float) -> RenderableType | None:
    cost = state.cost
    if cost is None:
        return None
    owed = state.owed(now)
    kinds = ((cost.spot_count, "spot"), (cost.ondemand_count, "on demand"))
    counts = ", ".join(f"{number} {name}" for number, name in kinds if number)
    text = Text(f"cost   {money(owed)} · {money(cost.hourly_rate)}/h")
    return text.append(f" ({counts})", style="dim") if counts else text
