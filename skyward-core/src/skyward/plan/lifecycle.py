"""
The life of a pool and its nodes: `step(state, event)` gives the next state and what is to be done.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import TypeAlias

from attrs import evolve, field, frozen

from skyward.errors import ConfigError


class Status(Enum):
    """What a node is about."""

    LAUNCHING = "launching"
    """Its machine is asked for."""
    STARTING = "starting"
    """Its machine is there; environment, agent and workers are being made."""
    READY = "ready"
    """It takes calls."""
    LEAVING = "leaving"
    """It is being given back."""


@frozen
class NodeState:
    """A node: its status, and how often it failed to start in a row."""

    status: Status
    failures: int = 0


@frozen(kw_only=True)
class PoolState:
    """
    A pool: how many nodes it is to have, how many make it usable, and those there are.

    Args:
        desired: Nodes wanted.
        needed: Ready nodes that make the pool usable.
        attempts: Starts of one node that may fail in a row.
        nodes: The nodes by their index.
        usable: Whether the pool was announced as usable.
        closing: Whether it is being closed.
    """

    desired: int
    needed: int
    attempts: int = 3
    nodes: Mapping[int, NodeState] = field(factory=dict)
    usable: bool = False
    closing: bool = False

    @property
    def ready(self) -> tuple[int, ...]:
        """List the nodes that take calls."""
        return tuple(index for index, node in sorted(self.nodes.items()) if node.status is Status.READY)


@frozen
class Opened:
    """The pool was entered."""


@frozen
class Launched:
    """A node's machine is there."""

    node: int


@frozen
class Started:
    """A node takes calls."""

    node: int


@frozen
class StartFailed:
    """A node could not be made ready; where that `counts`, so often in a row and no more."""

    node: int
    reason: str
    final: bool = False
    counts: bool = True


@frozen
class Lost:
    """A ready node went away."""

    node: int
    reason: str


@frozen
class Leaves:
    """A ready node's machine is about to be taken back; it sees its calls out by itself, and its place is free."""

    node: int


@frozen
class Resized:
    """The user, or the autoscaler, wants another number of nodes."""

    desired: int
    removable: tuple[int, ...] = ()


@frozen
class Ended:
    """A leaving node's machine is given back."""

    node: int


@frozen
class Closed:
    """The pool was left."""


Event: TypeAlias = Opened | Launched | Started | StartFailed | Lost | Leaves | Resized | Ended | Closed


@frozen
class Launch:
    """Ask for machines."""

    nodes: tuple[int, ...]


@frozen
class Start:
    """Make a machine into a node."""

    node: int


@frozen
class Terminate:
    """Give a node's machine back."""

    node: int
    reason: str


@frozen
class Announce:
    """Tell that the pool is usable."""


@frozen
class GiveUp:
    """Tell that the pool cannot be had."""

    reason: str


Command: TypeAlias = Launch | Start | Terminate | Announce | GiveUp


def step(state: PoolState, event: Event) -> tuple[PoolState, tuple[Command, ...]]:
    """
    Decide what an event means.

    >>> state, commands = step(PoolState(desired=2, needed=2), Opened())
    >>> commands
    (Launch(nodes=(0, 1)),)
    """
    match event:
        case Opened():
            return _filled(state)
        case Launched(node):
            if state.closing or node not in state.nodes or state.nodes[node].status is not Status.LAUNCHING:
                return state, (
                    Terminate(node, "the pool is closing" if state.closing else "it is not wanted any more"),
                )
            return _with(state, node, Status.STARTING), (Start(node),)
        case Started(node):
            return _started(state, node)
        case StartFailed(node, reason, final, counts):
            return _start_failed(state, node, reason, final=final, counts=counts)
        case Lost(node, reason):
            if node not in state.nodes or state.nodes[node].status is Status.LEAVING:
                return state, ()
            state = _with(state, node, Status.LEAVING)
            return state, (Terminate(node, reason),)
        case Leaves(node):
            if state.closing or node not in state.ready:
                return state, ()
            return _with(state, node, Status.LAUNCHING), (Launch((node,)),)
        case Resized(desired, removable):
            return _resized(state, desired, removable)
        case Ended(node):
            state = evolve(state, nodes={index: kept for index, kept in state.nodes.items() if index != node})
            return (state, ()) if state.closing else _filled(state)
        case Closed():
            leaving = tuple(
                Terminate(index, "the pool is closing")
                for index, node in sorted(state.nodes.items())
                if node.status is not Status.LEAVING
            )
            nodes = {index: evolve(node, status=Status.LEAVING) for index, node in state.nodes.items()}
            return evolve(state, closing=True, nodes=nodes), leaving


def failures(state: PoolState, nodes: Iterable[int]) -> int:
    """Count how often the worst of some nodes failed to start in a row."""
    return max((state.nodes[node].failures for node in nodes if node in state.nodes), default=0)


def place(state: PoolState, target: int | str | None, parameter: str, pool: str) -> int | None:
    """
    Find the node that a placement target means.

    Args:
        state: The pool.
        target: A node, `"head"`, or None for any.
        parameter: What the target is called, for the error.
        pool: The pool's name, for the error.

    Raises:
        ConfigError: If the pool has no such node.

    >>> place(PoolState(desired=2, needed=2), "head", "target", "train")
    0
    """
    if target is None:
        return None
    if target == "head":
        return state.ready[0] if state.ready else 0
    if isinstance(target, bool) or not isinstance(target, int) or not 0 <= target < state.desired:
        raise ConfigError(
            f'{parameter} must be "head" or a node from 0 to {state.desired - 1}, not {target!r}.', pool=pool
        )
    return target


def _with(state: PoolState, node: int, status: Status, failures: int | None = None) -> PoolState:
    before = state.nodes.get(node, NodeState(status))
    after = evolve(before, status=status, failures=before.failures if failures is None else failures)
    return evolve(state, nodes={**state.nodes, node: after})


def _filled(state: PoolState) -> tuple[PoolState, tuple[Command, ...]]:
    """Ask for machines at the free places, lowest first."""
    if state.closing:
        return state, ()
    staying = sum(node.status is not Status.LEAVING for node in state.nodes.values())
    missing = state.desired - staying
    places = [index for index in range(state.desired + len(state.nodes)) if index not in state.nodes][: max(0, missing)]
    if not places:
        return state, ()
    nodes = {**state.nodes, **{index: NodeState(Status.LAUNCHING) for index in places}}
    return evolve(state, nodes=nodes), (Launch(tuple(places)),)


def _started(state: PoolState, node: int) -> tuple[PoolState, tuple[Command, ...]]:
    if state.closing or node not in state.nodes or state.nodes[node].status is Status.LEAVING:
        return state, ()
    state = _with(state, node, Status.READY, failures=0)
    if not state.usable and len(state.ready) >= min(state.needed, state.desired):
        return evolve(state, usable=True), (Announce(),)
    return state, ()


def _start_failed(
    state: PoolState, node: int, reason: str, *, final: bool, counts: bool
) -> tuple[PoolState, tuple[Command, ...]]:
    if node not in state.nodes or state.nodes[node].status is Status.LEAVING:
        return state, ()
    failures = state.nodes[node].failures + counts
    if final or (counts and failures >= state.attempts):
        # A pool that works goes on with the nodes it has; one that never did asks for nothing more.
        desired = max(0, state.desired - 1) if state.usable else 0
        state = evolve(_with(state, node, Status.LEAVING), desired=desired)
        if state.usable and state.ready:
            return state, (Terminate(node, reason),)
        return state, (Terminate(node, reason), GiveUp(reason))
    return _with(state, node, Status.LAUNCHING, failures=failures), (Terminate(node, reason), Launch((node,)))


def _resized(state: PoolState, desired: int, removable: tuple[int, ...]) -> tuple[PoolState, tuple[Command, ...]]:
    """Grow at free places; shrink by nodes that are not ready yet, then by those named, the highest places first."""
    staying = [index for index, node in sorted(state.nodes.items()) if node.status is not Status.LEAVING]
    surplus = len(staying) - desired
    state = evolve(state, desired=desired, needed=min(state.needed, desired))
    if surplus <= 0:
        return _filled(state)
    ready = set(state.ready)
    order = sorted(staying, key=lambda index: (index in ready, index not in removable, -index))
    commands = []
    for index in order[:surplus]:
        state = _with(state, index, Status.LEAVING)
        commands.append(Terminate(index, "the pool was made smaller"))
    return state, tuple(commands)
