"""
The life of a pool and its nodes: `step(state, event)` gives the next state and what is to be done.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from attrs import evolve, field, frozen

from skyward.errors import ConfigError
from skyward.model.spec.nodes import Nodes
from skyward.model.spec.options import Options
from skyward.plan.pool.lifecycle_events import (
    Announce,
    Asked,
    Closed,
    Command,
    Drains,
    Ended,
    Event,
    GiveUp,
    Launch,
    Launched,
    Leaves,
    Lost,
    Opened,
    Resized,
    Start,
    Started,
    StartFailed,
    Terminate,
    Vacated,
)
from skyward.plan.pool.places import NodeState, NodeStatus, Places

ATTEMPTS = 3
"""Starts of one node that may fail in a row until a pool has worked, if nothing else is said."""


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
        attempts: Starts of one node that may fail in a row until the pool has worked.
        replacements: The same once it has worked; None for any number.
        nodes: The nodes by their index.
        usable: Whether the pool was announced as usable.
        proven: Whether it has worked: it was usable and had a ready node.
        closing: Whether it is being closed.
    """

    desired: int
    needed: int
    attempts: int = ATTEMPTS
    replacements: int | None = None
    nodes: Places = field(factory=Places, converter=_places)
    usable: bool = False
    proven: bool = False
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
        """Count the nodes that are wanted."""
        return len(self.nodes) - self.nodes.count(NodeStatus.LEAVING) - self.nodes.count(NodeStatus.WITHDRAWN)

    @property
    def late(self) -> int:
        """Count the nodes that failed to start so often that nothing waits for them."""
        if self.ready_count >= self.staying:
            return 0
        coming = (NodeStatus.LAUNCHING, NodeStatus.STARTING)
        return sum(node.failures >= self.attempts and node.status in coming for node in self.nodes.values())

    @property
    def whole(self) -> bool:
        """Return whether each node is ready that can be had."""
        missing = self.desired - self.ready_count
        return missing <= 0 or (self.ready_count > 0 and self.late >= missing)

    def is_ready(self, node: int) -> bool:
        """Return whether a node takes calls."""
        return node in self.nodes and self.nodes[node].status is NodeStatus.READY


def initial(nodes: Nodes, options: Options) -> PoolState:
    """
    Return a pool before it is opened.

    Args:
        nodes: How many nodes it is to have.
        options: How often a start may fail.

    >>> initial(Nodes(4, min=2), Options()).needed
    2
    """
    return PoolState(
        desired=nodes.initial,
        needed=nodes.floor,
        attempts=options.max_provision_attempts or ATTEMPTS,
        replacements=options.max_replacement_attempts,
    )


def step(state: PoolState, event: Event) -> tuple[PoolState, tuple[Command, ...]]:
    """
    Decide what an event means.

    >>> state, commands = step(PoolState(desired=2, needed=2), Opened())
    >>> commands
    (Launch(nodes=(0, 1)),)
    """
    match event:
        case Opened(places) if places:
            nodes = {place: NodeState(NodeStatus.LAUNCHING) for place in places}
            return evolve(state, desired=len(places), needed=len(places), nodes=nodes), (Launch(places),)
        case Opened():
            state, commands = _filled(state, below=state.desired)
            # A pool that starts with its first call is usable without a node.
            return (state, commands) if state.needed else (evolve(state, usable=True), (*commands, Announce()))
        case Asked(ordered):
            for node in unasked(state, ordered):
                state = _with(state, node, NodeStatus.LAUNCHING, asked=True)
            return state, ()
        case Launched(node):
            if node in state.nodes and state.nodes[node].status is NodeStatus.WITHDRAWN:
                return _with(state, node, NodeStatus.LEAVING), (Terminate(node, "it is not wanted any more"),)
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
            if node not in state.nodes or state.nodes[node].status not in (NodeStatus.STARTING, NodeStatus.READY):
                # What is asked for has no machine yet that could be lost.
                return state, ()
            return _with(state, node, NodeStatus.LEAVING), (Terminate(node, reason),)
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


def unasked(state: PoolState, nodes: Iterable[int]) -> tuple[int, ...]:
    """
    Return the nodes among some that need a machine which no cloud is being asked for.

    >>> state, _ = step(PoolState(desired=3, needed=3), Opened())
    >>> unasked(step(state, Asked((1,)))[0], (2, 1, 0, 7))
    (0, 2)
    """
    return tuple(
        node
        for node in sorted(set(nodes))
        if node in state.nodes and state.nodes[node].status is NodeStatus.LAUNCHING and not state.nodes[node].asked
    )


def orders(state: PoolState, nodes: Iterable[int]) -> dict[int, tuple[int, ...]]:
    """
    Group nodes that need machines by how often they failed to start in a row.

    Those that are not wanted, or that a cloud is being asked for already, are left out.

    >>> state, _ = step(PoolState(desired=2, needed=2), Opened())
    >>> orders(state, (1, 0, 7))
    {0: (0, 1)}
    """
    groups: dict[int, list[int]] = {}
    for node in unasked(state, nodes):
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
    if isinstance(target, bool) or not isinstance(target, int) or not 0 <= target < max(1, state.desired):
        # Node 0 is the first that a pool without nodes gets.
        last = max(0, state.desired - 1)
        raise ConfigError(f'{parameter} must be "head" or a node from 0 to {last}, not {target!r}.', pool=pool)
    return target


_RANKS = {NodeStatus.LAUNCHING: 0, NodeStatus.STARTING: 1, NodeStatus.READY: 2}
"""In which order nodes leave a pool that shrinks."""


def _with(
    state: PoolState, node: int, status: NodeStatus, failures: int | None = None, *, asked: bool = False
) -> PoolState:
    if failures is None:
        failures = state.nodes[node].failures if node in state.nodes else 0
    after = NodeState(status, failures, asked)
    return evolve(state, nodes=state.nodes.with_node(node, after))


def _filled(state: PoolState, *, below: int | None = None) -> tuple[PoolState, tuple[Command, ...]]:
    """
    Ask for machines at the free places, lowest first, those below a number only if one is given.

    Nodes that were withdrawn are wanted again before a cloud is asked for more.
    """
    missing = state.desired - state.staying
    if state.closing or missing <= 0:
        return state, ()
    if state.nodes.count(NodeStatus.WITHDRAWN):
        withdrawn = [node for node, held in state.nodes.items() if held.status is NodeStatus.WITHDRAWN]
        wanted = [node for node in withdrawn if below is None or node < below][:missing]
        for node in wanted:
            state = _with(state, node, NodeStatus.LAUNCHING, asked=True)
        missing -= len(wanted)
    places = tuple(state.nodes.free(missing, below))
    if not places:
        return state, ()
    nodes = state.nodes
    for place in places:
        nodes = nodes.with_node(place, NodeState(NodeStatus.LAUNCHING))
    return evolve(state, nodes=nodes), (Launch(places),)


def _started(state: PoolState, node: int) -> tuple[PoolState, tuple[Command, ...]]:
    if state.closing or node not in state.nodes or state.nodes[node].status is not NodeStatus.STARTING:
        return state, ()
    state = _with(state, node, NodeStatus.READY, failures=0)
    if state.usable:
        return evolve(state, proven=True), ()
    if state.ready_count >= min(state.needed, state.desired):
        return evolve(state, usable=True, proven=True), (Announce(),)
    return state, ()


def _start_failed(
    state: PoolState, node: int, reason: str, *, final: bool, counts: bool
) -> tuple[PoolState, tuple[Command, ...]]:
    if node not in state.nodes or state.nodes[node].status is NodeStatus.LEAVING:
        return state, ()
    if state.nodes[node].status is NodeStatus.WITHDRAWN:
        return _with(state, node, NodeStatus.LEAVING), (Terminate(node, reason),)
    failures = state.nodes[node].failures + counts
    limit = state.replacements if state.proven else state.attempts
    if final or (counts and limit is not None and failures >= limit):
        # A pool that has worked continues with the nodes it has; one that never did asks for nothing more.
        desired = max(0, state.desired - 1) if state.proven else 0
        state = evolve(_with(state, node, NodeStatus.LEAVING), desired=desired)
        if state.proven and state.staying:
            return state, (Terminate(node, reason),)
        return state, (Terminate(node, reason), GiveUp(reason))
    return _with(state, node, NodeStatus.LAUNCHING, failures=failures), (Terminate(node, reason), Launch((node,)))


def _resized(state: PoolState, desired: int, removable: tuple[int, ...]) -> tuple[PoolState, tuple[Command, ...]]:
    """
    Add nodes at free places; remove those that are not ready yet, then those named, the highest places first.

    The head goes last. What a cloud is being asked for cannot be stopped: it is withdrawn until the cloud answers.
    """
    surplus = state.staying - desired
    state = evolve(state, desired=desired, needed=min(state.needed, desired))
    if surplus <= 0:
        return _filled(state)
    staying = [index for index, node in state.nodes.items() if node.status in _RANKS]
    head = state.ready[0] if state.ready else None
    named, nodes = set(removable), state.nodes
    order = sorted(
        staying,
        key=lambda index: (
            _RANKS[nodes[index].status], nodes[index].asked, index == head, index not in named, -index
        ),
    )  # fmt: skip
    commands = []
    for index in order[:surplus]:
        if state.nodes[index].asked:
            state = _with(state, index, NodeStatus.WITHDRAWN)
            continue
        state = _with(state, index, NodeStatus.LEAVING)
        commands.append(Terminate(index, "the pool was made smaller"))
    return state, tuple(commands)
