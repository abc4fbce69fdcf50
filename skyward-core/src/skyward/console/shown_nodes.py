"""
Which nodes are shown where there is no room for all of them.
"""

from __future__ import annotations

from collections import Counter

from skyward.console.state import NodeState, State

__all__ = ["WAITING", "shown_nodes"]

WAITING = ("requested", "launching", "running", "bootstrap")
"""The states of a node on its way to being ready."""

_ORDER = ("lost", "silent", "bootstrap", "running", "launching", "requested", "stopping", "ready", "gone")


def shown_nodes(state: State, room: int) -> tuple[list[int], Counter[NodeState]]:
    """
    Return the nodes that are shown, in their order, and how many others are in which state.

    Args:
        state: What is known.
        room: How many rows there are, one of which counts the others; at least 1.

    >>> from skyward.console.state import NodeView
    >>> nodes = {0: NodeView(state="ready"), 1: NodeView(state="ready"), 2: NodeView(state="lost")}
    >>> shown_nodes(State(nodes=nodes), 2)
    ([2], Counter({'ready': 2}))
    """
    chosen = sorted(state.nodes)
    if len(chosen) > room:
        by_need = sorted(chosen, key=lambda index: (_ORDER.index(state.nodes[index].state), index))
        chosen = sorted(by_need[: room - 1])
    shown = set(chosen)
    return chosen, Counter(view.state for index, view in state.nodes.items() if index not in shown)
