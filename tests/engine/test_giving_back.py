"""Giving machines back, whatever is wrong with what runs on them."""

from __future__ import annotations

import pytest

import skyward as sky
from skyward.engine.node_shell import NodeShell


def test_machine_of_a_node_that_cannot_leave_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pool is left as ever, and the machine has ended."""
    end = NodeShell.end

    async def fails(self: NodeShell, patience: float) -> None:
        await end(self, patience)
        raise RuntimeError("it would not leave")

    monkeypatch.setattr(NodeShell, "end", fails)
    gone: list[sky.Event] = []
    pool = sky.Compute(nodes=2, console="silent")
    pool.on(sky.InstanceDestroyed, gone.append)
    with pool:
        pass
    assert len(gone) == 2
