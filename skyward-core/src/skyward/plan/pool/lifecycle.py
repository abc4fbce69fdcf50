"""
The life of a pool and its nodes: `step(state, event)` gives the next state and what is to be done.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from attrs import evolve, field, frozen

from skyward.errors import ConfigError
from skyward.plan.pool.places import NodeState, NodeStatus, Places


def _places(nodes: Mapping[int, NodeState]) -> Places:
    """Return nodes by their places as a value that shares what it can with the next."""
    return nodes if isinstance(nodes, Places) else Places(nodes)


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
    nodes: Places = field(factory=Places, converter=_places)
    usable: bool = False
    closing: bool = False

    @property
    def ready(self) -> tuple[int, ...]:
        """List the nodes that take calls."""
        return self.nodes.ready

    @property
    def ready_count(self) -> int:
        """Count the nodes that take calls."""
        return self.nodes.count(NodeStatus.READY)

    @property
    def staying(self) -> int:
        """Count the nodes that are not being terminated."""
        return len(self.nodes) - self.nodes.count(NodeStatus.LEAVING)

    def is_ready(self, node: int) -> bool:
        """Return whether a node takes calls."""
        return node in self.nodes and self.nodes[node].status is NodeStatus.READY


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
    """A ready node's machine is about to be reclaimed; it drains by itself, and its place is free."""

    node: int


@frozen
class Drains:
    """A ready node is about to leave a machine of its own, which its place may get again; it drains by itself."""

    node: int


@frozen
class Vacated:
    """A node that drained has left its machine, which can be taken again."""

    node: int


@frozen
class Resized:
    """The user, or the autoscaler, wants another number of nodes."""

    desired: int
    removable: tuple[int, ...] = ()


@frozen
class Ended:
    """A leaving node's machine is terminated."""

    node: int


@frozen
class Closed:
    """The pool was left."""


Event: TypeAlias = (
    Opened | Launched | Started | StartFailed | Lost | Leaves | Drains | Vacated | Resized | Ended | Closed
)


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
    """Report that the pool is usable."""


@frozen
class GiveUp:
    """Report that the pool cannot be opened."""

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
            return _filled(state, below=state.desired)
        case Launched(node):
            if state.closing or node not in state.nodes or state.nodes[node].status is not NodeStatus.LAUNCHING:
                return state, (
                    Terminate(node, "the pool is closing" if state.closing else "it is not wanted any more"),
                )
            return _with(state, node, NodeStatus.STARTING), (Start(node),)
        case Started(node):
            return _started(state, node)
        case StartFailed(node, reason, final, counts):
            return _start_failed(state, node, reason, final=final, counts=counts)
        case Lost(node, reason):
            if node not in state.nodes or state.nodes[node].status is NodeStatus.LEAVING:
                return state, ()
            state = _with(state, node, NodeStatus.LEAVING)
            return state, (Terminate(node, reason),)
        case Leaves(node):
            if state.closing or not state.is_ready(node):
                return state, ()
            return _with(state, node, NodeStatus.LAUNCHING), (Launch((node,)),)
        case Drains(node):
            return (_with(state, node, NodeStatus.LAUNCHING) if state.is_ready(node) else state), ()
        case Vacated(node):
            waits = node in state.nodes and state.nodes[node].status is NodeStatus.LAUNCHING
            return state, (Launch((node,)),) if waits and not state.closing else ()
        case Resized(desired, removable):
            return _resized(state, desired, removable)
        case Ended(node):
            state = evolve(state, nodes=state.nodes.without(node))
            # Other places that nodes are leaving are filled when those are gone, so that each has one number for ever.
            return (state, ()) if state.closing else _filled(state, below=state.desired)
        case Closed():
            leaving = tuple(
                Terminate(index, "the pool is closing")
                for index, node in state.nodes.items()
                if node.status is not NodeStatus.LEAVING
            )
            nodes = {index: evolve(node, status=NodeStatus.LEAVING) for index, node in state.nodes.items()}
            return evolve(state, closing=True, nodes=nodes), leaving


def orders(state: PoolState, nodes: Iterable[int]) -> dict[int, tuple[int, ...]]:
    """
    Group nodes that need machines by how often they failed to start in a row; those that are not wanted are left out.

    >>> state, _ = step(PoolState(desired=2, needed=2), Opened())
    >>> orders(state, (1, 0, 7))
    {0: (0, 1)}
    """
    groups: dict[int, list[int]] = {}
    for node in sorted(set(nodes)):
        if node in state.nodes and state.nodes[node].status is NodeStatus.LAUNCHING:
            groups.setdefault(state.nodes[node].failures, []).append(node)
    return {failures: tuple(group) for failures, group in sorted(groups.items())}


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


def _with(state: PoolState, node: int, status: NodeStatus, failures: int | None = None) -> PoolState:
    before = state.nodes.get(node, NodeState(status))
    after = evolve(before, status=status, failures=before.failures if failures is None else failures)
    return evolve(state, nodes=state.nodes.with_node(node, after))


def _filled(state: PoolState, *, below: int | None = None) -> tuple[PoolState, tuple[Command, ...]]:
    """Ask for machines at the free places, lowest first, those below a number only if one is given."""
    missing = state.desired - state.staying
    if state.closing or missing <= 0:
        return state, ()
    places = tuple(state.nodes.free(missing, below))
    if not places:
        return state, ()
    nodes = state.nodes
    for place in places:
        nodes = nodes.with_node(place, NodeState(NodeStatus.LAUNCHING))
    return evolve(state, nodes=nodes), (Launch(places),)


def _started(state: PoolState, node: int) -> tuple[PoolState, tuple[Command, ...]]:
    if state.closing or node not in state.nodes or state.nodes[node].status is NodeStatus.LEAVING:
        return state, ()
    state = _with(state, node, NodeStatus.READY, failures=0)
    if not state.usable and state.ready_count >= min(state.needed, state.desired):
        return evolve(state, usable=True), (Announce(),)
    return state, ()


def _start_failed(
    state: PoolState, node: int, reason: str, *, final: bool, counts: bool
) -> tuple[PoolState, tuple[Command, ...]]:
    if node not in state.nodes or state.nodes[node].status is NodeStatus.LEAVING:
        return state, ()
    failures = state.nodes[node].failures + counts
    if final or (counts and failures >= state.attempts):
        # A pool that works continues with the nodes it has; one that never did asks for nothing more.
        desired = max(0, state.desired - 1) if state.usable else 0
        state = evolve(_with(state, node, NodeStatus.LEAVING), desired=desired)
        if state.usable and state.ready_count:
            return state, (Terminate(node, reason),)
        return state, (Terminate(node, reason), GiveUp(reason))
    return _with(state, node, NodeStatus.LAUNCHING, failures=failures), (Terminate(node, reason), Launch((node,)))


def _resized(state: PoolState, desired: int, removable: tuple[int, ...]) -> tuple[PoolState, tuple[Command, ...]]:
    """Add nodes at free places; remove those that are not ready yet, then those named, the highest places first."""
    surplus = state.staying - desired
    state = evolve(state, desired=desired, needed=min(state.needed, desired))
    if surplus <= 0:
        return _filled(state)
    staying = [index for index, node in state.nodes.items() if node.status is not NodeStatus.LEAVING]
    ready = set(state.ready)
    order = sorted(staying, key=lambda index: (index in ready, index not in removable, -index))
    commands = []
    for index in order[:surplus]:
        state = _with(state, index, NodeStatus.LEAVING)
        commands.append(Terminate(index, "the pool was made smaller"))
    return state, tuple(commands)
