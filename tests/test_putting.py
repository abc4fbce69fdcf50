"""`sky.put` finds the pool that it puts into."""

from __future__ import annotations

from contextvars import Context

import pytest

import skyward as sky
from skyward.node.agent.descendants import MARK


def test_without_a_pool_there_is_nothing_to_put_into() -> None:
    """The error says what to do."""
    with pytest.raises(sky.NoPoolError, match=r"pool\.put"):
        Context().run(sky.put, 1)


def test_a_function_on_a_node_has_no_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it returns travels anyway."""
    monkeypatch.setenv(MARK, "1")
    with pytest.raises(sky.NoPoolError, match="Return the value"):
        Context().run(sky.put, 1)
