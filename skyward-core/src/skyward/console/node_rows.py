"""
The rows of nodes in the full console: which nodes are shown, and which facts, in the columns that a terminal has.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from attrs import frozen
from rich.text import Text

from skyward.console.line_style import rich_colour_of
from skyward.console.shown_nodes import WAITING, shown_nodes
from skyward.console.state import NodeView, State
from skyward.console.wording import count, lasted

__all__ = ["node_rows"]

_STYLES = {"ready": "green", "silent": "yellow", "lost": "red", "stopping": "yellow", "gone": "dim"}
_SHOWN = ("name", "standing", "cpu", "memory", "gpu", "gpu_memory", "running", "done", "failed", "machine")
_KEPT_FIRST = ("failed", "running", "done", "gpu", "gpu_memory", "cpu", "memory")
"""What is left out last where the columns are few, after the name and the state; the machine goes first."""

_GAP = 2
# Less of a detail than this says nothing.
_LEAST_DETAIL = 8


@frozen
class _NodeRow:
    """Hold what there is to say of one node, each fact as it is shown."""

    facts: Mapping[str, Text]
    detail: str


def node_rows(state: State, now: float, room: int, width: int) -> list[Text]:
    """
    Return a row for each node that there is room for, and one that counts the rest.

    Args:
        state: What is known.
        now: The time, in seconds since the epoch.
        room: How many rows there may be; none if it is 0.
        width: How many columns a row may fill.
    """
    if not state.nodes or room < 1:
        return []
    chosen, left_out = shown_nodes(state, room)
    running = Counter(task.node for task in state.running.values())
    rows = [_row(index, state, now, running[index]) for index in chosen]
    shown = _laid_out(rows, width)
    if left_out:
        rest = ", ".join(f"{count(number)} {name}" for name, number in left_out.items())
        # Where none is shown they are all there is.
        text = Text(f"+ {rest}" if chosen else f"nodes  {rest}", style="dim")
        text.truncate(width, overflow="ellipsis")
        shown.append(text)
    return shown


def _row(index: int, state: State, now: float, running: int) -> _NodeRow:
    view = state.nodes[index]
    standing = Text(view.state, style=_STYLES.get(view.state, "yellow"))
    if view.state in WAITING:
        standing.append(f" {lasted(now - view.since)}", style="dim")
    detail = view.detail
    if detail and view.state in WAITING and now - view.detail_since >= 1:
        detail += f" {lasted(now - view.detail_since)}"
    facts = {
        "name": Text(f"node-{index}", style=rich_colour_of(index)),
        "standing": standing,
        "running": _counted(running, "running"),
        "done": _counted(state.done.get(index, 0), "done"),
        "failed": _counted(state.failed.get(index, 0), "failed", "red"),
        "cpu": _load("cpu", view.cpu),
        "memory": _load("mem", view.memory),
        "gpu": _load("gpu", view.gpu),
        "gpu_memory": _load("vram", view.gpu_memory),
        "machine": Text(_machine(view), style="dim"),
    }
    return _NodeRow(facts, detail)


def _laid_out(rows: Sequence[_NodeRow], width: int) -> list[Text]:
    """Return the rows with as many of their columns as fit, and as much of their details as is left."""
    if not rows:
        return []
    widest = {name: max(len(row.facts[name]) for row in rows) for name in _SHOWN}
    whole = max(len(row.facts["standing"]) + (len(row.detail) + 1 if row.detail else 0) for row in rows)
    kept, left = {"name", "standing"}, width - widest["name"] - _GAP - widest["standing"]
    for name in _KEPT_FIRST:
        if widest[name] and widest[name] + _GAP <= left:
            kept.add(name)
            left -= widest[name] + _GAP
    more = min(max(0, left), whole - widest["standing"])
    left -= more
    if widest["machine"] and widest["machine"] + _GAP <= left:
        kept.add("machine")
    columns = {name: widest[name] + (more if name == "standing" else 0) for name in _SHOWN if name in kept}
    return [_joined(row, columns, width) for row in rows]


def _joined(row: _NodeRow, columns: Mapping[str, int], width: int) -> Text:
    cells = []
    for name, size in columns.items():
        cell = row.facts[name].copy()
        room = size - cell.cell_len - 1
        if name == "standing" and row.detail and room >= min(len(row.detail), _LEAST_DETAIL):
            detail = Text(row.detail, style="dim")
            detail.truncate(room, overflow="ellipsis")
            cell = cell.append(" ").append(detail)
        blanks = Text(" " * max(0, size - cell.cell_len))
        cells.append(blanks + cell if name in _KEPT_FIRST else cell + blanks)
    line = Text(" " * _GAP).join(cells)
    line.rstrip()
    line.truncate(width, overflow="ellipsis")
    return line


def _machine(view: NodeView) -> str:
    facts = ("spot" if view.spot else "", view.instance_type, f"({view.accelerator})" if view.accelerator else "")
    return " ".join(fact for fact in facts if fact)


def _load(name: str, percent: float | None) -> Text:
    return Text(f"{name} {percent:.0f}%" if percent is not None else "")


def _counted(number: int, word: str, style: str = "") -> Text:
    return Text(f"{count(number)} {word}" if number else "", style=style)
