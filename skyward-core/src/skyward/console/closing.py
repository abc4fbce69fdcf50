"""The line that stays when a pool has been left."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import define

from skyward.console.state import State
from skyward.console.wording import Line, count, lasted, money, several

__all__ = ["Calls", "closing", "closing_of"]


@define
class Calls:
    """Count how a pool's calls ended."""

    done: int = 0
    failed: int = 0
    cancelled: int = 0


def closing(calls: Calls, seconds: float, nodes: int, cost: float, logs: str = "") -> Line | None:
    """
    Return what a pool did and cost, in one line; None if it had no calls and cost nothing.

    Args:
        calls: How its calls ended.
        seconds: How long it was there.
        nodes: How many nodes it had.
        cost: What is owed for it, in USD.
        logs: What to type for its stored log; empty where it has none.

    >>> closing(Calls(12, failed=1, cancelled=3), 4.0, nodes=2, cost=0.5, logs="sky logs 3fa9c1d2").text
    '12 calls done, 1 failed, 3 cancelled, in 4.0 s on 2 nodes, $0.50 · sky logs 3fa9c1d2'
    """
    ended = [*_ended(calls)]
    if not (ended or cost):
        return None
    said = ", ".join(ended) or "no calls"
    where = f" on {several(nodes, 'node')}" if nodes else ""
    owed = f", {money(cost)}" if cost else ""
    more = f" · {logs}" if logs else ""
    return Line(f"{said}, in {lasted(seconds)}{where}{owed}{more}", "error" if calls.failed else "good")


def closing_of(state: State) -> Line | None:
    """
    Return what a pool did and cost, as far as its state says so.

    Args:
        state: What is known.

    >>> closing_of(State(began=1.0, at=3.0, done={0: 2}, wanted=1)).text
    '2 calls done, in 2.0 s on 1 node'
    """
    calls = Calls(sum(state.done.values()), sum(state.failed.values()), state.cancelled)
    cost = state.final.total_cost if state.final is not None else 0.0
    return closing(calls, state.at - state.began, len(state.nodes) or state.wanted, cost, state.logs)


def _ended(calls: Calls) -> Iterator[str]:
    numbers = {"done": calls.done, "failed": calls.failed, "cancelled": calls.cancelled}
    first = next((word for word, number in numbers.items() if number), None)
    for word, number in numbers.items():
        if number:
            yield f"{several(number, 'call') if word == first else count(number)} {word}"
