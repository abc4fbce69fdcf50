"""
The small console: one row at the footer of the terminal, and log lines above it.
"""

from __future__ import annotations

from skyward.console.footer import FooterConsole
from skyward.console.state import State
from skyward.console.wording import count, lasted, money

__all__ = ["MinimalConsole", "cut", "summary"]

_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_ASCII_SPINNER = "|/-\\"


class MinimalConsole(FooterConsole):
    """Show one row that says how the pool does."""

    def rows(self, state: State, now: float, width: int, spare: int) -> list[str]:
        """Return the one row."""
        frames = _SPINNER if self.unicode else _ASCII_SPINNER
        frame = frames[int(now * 5) % len(frames)]
        return [cut(f"{frame} {summary(state, now)}", width, "…" if self.unicode else "...")]


def summary(state: State, now: float) -> str:
    """
    Return a state in one line.

    >>> summary(State(wanted=4, began=10.0), 12.0)
    '0/4 nodes | opening 2.0 s'
    """
    ready = sum(view.state == "ready" for view in state.nodes.values())
    wanted = max(state.wanted, len([view for view in state.nodes.values() if view.state != "gone"]))
    parts = [f"{ready}/{wanted} nodes" if ready < wanted else f"{ready} node{'' if ready == 1 else 's'}"]
    if state.phase == "opening":
        waiting = next((view for view in state.nodes.values() if view.state != "ready"), None)
        what = f"{waiting.state} {waiting.detail}".strip() if waiting is not None else "opening"
        parts.append(f"{what} {lasted(now - state.began)}")
    elif state.phase == "stopping":
        parts.append("closing")
    parts += _tasks(state, now)
    if state.bars:
        label, bar = list(state.bars.items())[-1]
        if not bar.complete:
            done = f"{bar.done / bar.total:.0%}" if bar.total else count(bar.done)
            parts.append(f"{label} {done}")
    if state.cost is not None:
        parts.append(money(state.cost.accumulated_cost))
    return " | ".join(parts)


def _tasks(state: State, now: float) -> list[str]:
    done, failed = sum(state.done.values()), sum(state.failed.values())
    counts = {"running": len(state.running), "done": done, "failed": failed}
    parts = [f"{count(number)} {word}" for word, number in counts.items() if number]
    rate = state.rate(now)
    return [*parts, f"{count(rate)}/s"] if rate >= 1 else parts


def cut(text: str, width: int, end: str) -> str:
    """
    Return as much of a text as a row holds.

    >>> cut("opening", 5, "…")
    'open…'
    """
    return text if len(text) <= width else text[: width - len(end)] + end
