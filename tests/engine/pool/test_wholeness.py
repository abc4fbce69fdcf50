"""Threads wait for the nodes of a pool, as long as there may be any."""

from __future__ import annotations

import threading

import pytest

from skyward.engine.pool.wholeness import Wholeness
from skyward.errors import UsageError
from skyward.plan.pool.lifecycle import PoolState
from skyward.plan.pool.places import NodeState, NodeStatus, Places

WHOLE = PoolState(desired=1, needed=0, nodes=Places({0: NodeState(NodeStatus.READY)}), usable=True)
NONE = PoolState(desired=0, needed=0, usable=True)
COMING = PoolState(desired=1, needed=0, nodes=Places({0: NodeState(NodeStatus.STARTING)}), usable=True)


class Pool:
    """Be a pool in a state, which counts how often it is woken."""

    def __init__(self, state: PoolState, *, may_drain: bool = True) -> None:
        self.state = state
        self.woken = 0
        self._may_drain = may_drain
        self.whole = Wholeness("train", lambda: self.state, self._wake)

    def _wake(self) -> bool:
        self.woken += 1
        return self._may_drain

    def becomes(self, state: PoolState) -> None:
        """Change the state."""
        self.state = state
        self.whole.changed()


def waiting(wait: object) -> threading.Thread:
    """Begin to wait in a thread."""
    thread = threading.Thread(target=wait, daemon=True)  # type: ignore[arg-type]
    thread.start()
    return thread


def test_a_pool_with_nodes_is_not_waited_for() -> None:
    """Nor woken."""
    pool = Pool(WHOLE)
    pool.whole.wait()
    pool.whole.awake()
    pool.whole.check_awake("It")
    assert 0 == pool.woken


def test_a_pool_without_nodes_is_woken_and_waited_for() -> None:
    """Until all of those that it starts are there."""
    pool = Pool(NONE)
    thread = waiting(pool.whole.awake)
    pool.becomes(COMING)
    assert thread.is_alive()
    pool.becomes(WHOLE)
    thread.join(timeout=10.0)
    assert (False, 1) == (thread.is_alive(), pool.woken)


def test_a_pool_that_may_not_drain_is_not_waited_for() -> None:
    """What is sent to it finds out by itself that nodes are being replaced."""
    Pool(COMING, may_drain=False).whole.awake()


@pytest.mark.parametrize("wait", ["wait", "awake"])
def test_a_pool_that_gives_up_is_waited_for_no_longer(wait: str) -> None:
    """Whatever is waited for, also by those that come later."""
    pool = Pool(COMING)
    thread = waiting(getattr(pool.whole, wait))
    pool.whole.give_up("There is no machine.")
    thread.join(timeout=10.0)
    assert not thread.is_alive()
    getattr(pool.whole, wait)()


def test_what_needs_a_node_now_is_refused_in_a_pool_without() -> None:
    """With what to do."""
    with pytest.raises(UsageError, match=r"pool\.forward needs a node, and the pool 'train' has none now.*resize\(1\)"):
        Pool(NONE).whole.check_awake("pool.forward")
