"""
The full console: nodes, tasks, progress and cost at the footer of the terminal, log lines above them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from io import StringIO
from typing import TextIO

from rich.console import Console as RichConsole, RenderableType
from rich.progress_bar import ProgressBar
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from skyward.console.footer import FooterConsole
from skyward.console.line_style import colour_of
from skyward.console.screen import Screen
from skyward.console.state import Bar, NodeView, State
from skyward.console.wording import count, lasted, money, several

__all__ = ["LiveConsole"]

# Bars that are complete stay for a moment, so that short ones are seen at all.
_BAR_STAYS_S = 2.0
_BARS = 4
_BAR_WIDTH = 32
# Narrower terminals show no instance types and loads.
_WIDE = 90
# Heading, tasks and cost.
_OTHER_ROWS = 3
# A task that runs longer than this is named.
_LONG_S = 2.0
_STYLES = {"ready": "green", "silent": "yellow", "lost": "red", "stopping": "yellow", "gone": "dim"}
# Which nodes are shown where there is no room for all of them.
_ORDER = ("lost", "silent", "bootstrap", "running", "launching", "requested", "stopping", "ready", "gone")


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
        bars = {name: bar for name, bar in state.bars.items() if not bar.complete or now - bar.at < _BAR_STAYS_S}
        shown = list(bars.items())[-_BARS:]
        room = max(1, min(spare // 2, spare - _OTHER_ROWS - len(shown)))
        nodes = _nodes(state, now, room, width)
        parts = [_heading(state, now), nodes, _tasks(state, now), _bars(shown, now), _cost(state)]
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


def _nodes(state: State, now: float, room: int, width: int) -> RenderableType | None:
    if not state.nodes:
        return None
    chosen = sorted(state.nodes)
    if len(chosen) > room:
        by_need = sorted(chosen, key=lambda index: (_ORDER.index(state.nodes[index].state), index))
        chosen = sorted(by_need[: room - 1])
    running = Counter(task.node for task in state.running.values())
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True, min_width=len(f"node-{chosen[-1]}"))
    grid.add_column(no_wrap=True, overflow="ellipsis")
    for _ in range(3):
        grid.add_column(justify="right", no_wrap=True, overflow="ellipsis")
    grid.add_column(no_wrap=True, overflow="ellipsis")
    for index in chosen:
        view = state.nodes[index]
        grid.add_row(
            Text(f"node-{index}", style=_rich_colour(index)),
            _standing(view, now, width),
            _counted(running[index], "running"),
            _counted(state.done.get(index, 0), "done"),
            _counted(state.failed.get(index, 0), "failed", "red"),
            Text(_machine(view) if width >= _WIDE else "", style="dim"),
        )
    left_out = [state.nodes[index].state for index in state.nodes if index not in set(chosen)]
    if left_out:
        states = Counter(left_out)
        rest = left_out[0] if len(states) == 1 else ", ".join(f"{count(states[name])} {name}" for name in states)
        grid.add_row(Text(f"+ {len(left_out)}", style="dim"), Text(rest, style="dim"))
    return grid


def _standing(view: NodeView, now: float, width: int) -> Text:
    text = Text(view.state, style=_STYLES.get(view.state, "yellow"))
    if view.state in ("requested", "launching", "running", "bootstrap"):
        text.append(f" {lasted(now - view.since)}", style="dim")
    if view.detail:
        text.append(f" {view.detail}", style="dim")
    text.truncate(max(16, width - 60), overflow="ellipsis")
    return text


def _machine(view: NodeView) -> str:
    loads = [f"{name} {load:.0f}%" for name, load in (("cpu", view.cpu), ("gpu", view.gpu)) if load is not None]
    machine = ("spot" if view.spot else "", view.instance_type, f"({view.accelerator})" if view.accelerator else "")
    return "  ".join([*loads, " ".join(fact for fact in machine if fact)])


def _counted(number: int, word: str, style: str = "") -> Text:
    return Text(f"{count(number)} {word}" if number else "", style=style)


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
        text.append(f"node-{oldest.node}", style=_rich_colour(oldest.node))
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
        grid.add_row(Text(label), share, Text(_how_far(bar, now)))
    return grid if grid.row_count else None


def _how_far(bar: Bar, now: float) -> str:
    took = (bar.at if bar.complete else now) - bar.since
    rate = bar.done / took if took > 0 else 0.0
    if bar.total is None:
        return f"{count(bar.done)} done"
    done = f"{count(bar.done)}/{count(bar.total)}"
    if bar.complete:
        return f"{done} in {lasted(took)}"
    return f"{done}, {lasted((bar.total - bar.done) / rate)} left" if rate and took > 1 else done


def _cost(state: State) -> RenderableType | None:
    cost = state.cost
    if cost is None:
        return None
    kinds = ((cost.spot_count, "spot"), (cost.ondemand_count, "on demand"))
    counts = ", ".join(f"{number} {name}" for number, name in kinds if number)
    text = Text(f"cost   {money(cost.accumulated_cost)} · {money(cost.hourly_rate)}/h")
    return text.append(f" ({counts})", style="dim") if counts else text


def _rich_colour(node: int) -> str:
    """Return the colour of a node under the name that rich has for it."""
    code = colour_of(node)
    return f"color({code - 30 if code < 90 else code - 82})"
