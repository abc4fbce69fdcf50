"""What a pool is at a moment, as plain values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from skyward.engine.calls.dispatch import Dispatch
    from skyward.plan.pool.lifecycle import PoolState

__all__ = ["snapshot"]


def snapshot(state: PoolState, dispatch: Dispatch) -> dict[str, Any]:
    """
    Return the nodes with their status, and how many calls there are.

    Args:
        state: The pool.
        dispatch: Its calls.
    """
    return {
        "nodes": {index: node.status.value for index, node in state.nodes.items()},
        "desired": state.desired,
        "slots": dispatch.slots,
        "queued": dispatch.queued + dispatch.waiting,
        "running": dispatch.running,
    }
