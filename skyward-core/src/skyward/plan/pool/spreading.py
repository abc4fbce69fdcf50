"""
Which node gets a large buffer from which, when several nodes of one network need it: over the client's line about once.

The client sends it to the first node; each node that has it hands it on to others, `FAN_OUT` at a time, so the number
of copies grows geometrically and every one of them helps (a binomial broadcast, as MPI libraries build it, made
at each step by what is known then: Thakur, Rabenseifner and Gropp, 2005, doi:10.1177/1094342005051521).
A node that cannot be reached, stalls or sends other bytes costs one try; after `MOST_TRIES` the client sends the
buffer itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Set as AbstractSet
from typing import TypeAlias

from attrs import evolve, field, frozen

from skyward.model.instances.transfer import TransferOutcome

CLIENT = -1
"""Stands for the client where a node's number stands for a node."""

FAN_OUT = 2
"""Nodes that one node serves at a time: where one encrypted stream does not fill a node's line, the copies triple in
the time of one transfer; where it does, they grow by 1.7 against 2 with one at a time (8 nodes at 1 Gbit/s have 256 MiB
8.8 s after the first one against 6.8 s, `tests/simulated/swarm.py`), and a receiver that stalls keeps no source."""

MOST_TRIES = 3
"""Nodes that a node tries to get one buffer from, before the client sends it."""

MOST_IN_VAIN = 3
"""Failed connections after which nodes are taken for unable to reach each other, if none has worked; also failures
after which a node is no source any more, unless it was one with success."""


@frozen
class Upload:
    """The client sends the buffer to a node."""

    node: int


@frozen
class Fetch:
    """A node fetches the buffer from another."""

    node: int
    source: int


Move: TypeAlias = "Upload | Fetch"


@frozen
class Roads:
    """
    Know which nodes of a network can fetch from which, learnt from what failed; it holds for the pool's life.

    Args:
        barred: Pairs of source and node that do not work.
        apart: Nodes that take no part: they neither serve nor fetch.
        false: Nodes that sent other bytes, and are no sources any more.
        vain: Failures of each source in a row.
        unreached: Connections that failed before any worked.
        proved: Whether one has worked.
        shut: Whether nothing is passed on at all.
    """

    barred: frozenset[tuple[int, int]] = frozenset()
    apart: frozenset[int] = frozenset()
    false: frozenset[int] = frozenset()
    vain: Mapping[int, int] = field(factory=dict)
    unreached: int = 0
    proved: bool = False
    shut: bool = False

    @property
    def closed(self) -> bool:
        """Return whether nodes do not reach each other at all, as far as is known."""
        return self.shut or (not self.proved and self.unreached >= MOST_IN_VAIN)

    @property
    def clear(self) -> bool:
        """Return whether every node can fetch from every other, as far as is known."""
        return not (self.barred or self.apart or self.false or self.vain or self.closed)

    def serves(self, source: int) -> bool:
        """Return whether a node may be a source at all."""
        return not (
            self.closed or source in self.apart or source in self.false or self.vain.get(source, 0) >= MOST_IN_VAIN
        )

    def lead(self, source: int, node: int) -> bool:
        """Return whether a node may fetch from another."""
        return node not in self.apart and (source, node) not in self.barred and self.serves(source)

    def learn(self, source: int, node: int, outcome: TransferOutcome) -> Roads:
        """
        Record how a transfer ended.

        >>> roads = Roads().learn(1, 2, TransferOutcome.UNREACHED)
        >>> roads.lead(1, 2), roads.lead(1, 3)
        (False, True)
        """
        if outcome is TransferOutcome.OK:
            vain = {other: count for other, count in self.vain.items() if other != source}
            return self if self.proved and source not in self.vain else evolve(self, proved=True, vain=vain)
        if outcome is TransferOutcome.GONE:
            return self
        if outcome is TransferOutcome.UNABLE:
            return self.without(node)
        if outcome is TransferOutcome.WRONG:
            return evolve(self, false=self.false | {source})
        return evolve(
            self,
            barred=self.barred | {(source, node)},
            vain={**self.vain, source: self.vain.get(source, 0) + 1},
            unreached=self.unreached + (outcome is TransferOutcome.UNREACHED),
        )

    def without(self, node: int) -> Roads:
        """Exclude a node."""
        return evolve(self, apart=self.apart | {node})


@frozen
class Copies:
    """
    Know where the copies of one buffer are.

    Args:
        holders: Nodes that have confirmed that they have it, the first one first.
        arriving: Nodes that it is on its way to, and from where.
        wanted: Nodes that need it and that it is not on its way to, in the order in which they asked.
        stalled: Nodes that the client sends it to, without progress.
        tries: How often each node has failed to fetch it.
    """

    holders: tuple[int, ...] = ()
    arriving: Mapping[int, int] = field(factory=dict)
    wanted: tuple[int, ...] = ()
    stalled: frozenset[int] = frozenset()
    tries: Mapping[int, int] = field(factory=dict)

    @property
    def settled(self) -> bool:
        """Return whether every node that needs it has it."""
        return not (self.arriving or self.wanted)

    def want(self, node: int) -> Copies:
        """Record that a node needs the buffer."""
        if node in self.holders or node in self.arriving or node in self.wanted:
            return self
        return evolve(self, wanted=(*self.wanted, node))

    def landed(self, node: int) -> Copies:
        """Record that a node has the buffer."""
        left = self.without(node)
        return evolve(left, holders=(*left.holders, node))

    def failed(self, node: int, outcome: TransferOutcome) -> Copies:
        """Record that a node did not get the buffer from where it was to come; it still needs it."""
        source = self.arriving.get(node)
        if source is None:
            return self
        tries = {**self.tries, node: self.tries.get(node, 0) + 1}
        left = evolve(self.without(node), wanted=(node, *self.wanted), tries=tries)
        return left.lost(source) if outcome in (TransferOutcome.GONE, TransferOutcome.WRONG) else left

    def stall(self, node: int) -> Copies:
        """Record that what the client sends to a node makes no progress; nothing waits for it any more."""
        return evolve(self, stalled=self.stalled | {node})

    def lost(self, node: int) -> Copies:
        """Record that a node does not have the buffer any more."""
        return evolve(self, holders=_but(self.holders, node)) if node in self.holders else self

    def without(self, node: int) -> Copies:
        """Remove a node; what fetches from it reports by itself how that ends."""
        return Copies(
            holders=_but(self.holders, node),
            arriving=_but_key(self.arriving, node),
            wanted=_but(self.wanted, node),
            stalled=self.stalled - {node},
            tries=_but_key(self.tries, node),
        )


def _but(nodes: tuple[int, ...], node: int) -> tuple[int, ...]:
    return tuple(other for other in nodes if other != node) if node in nodes else nodes


def _but_key(nodes: Mapping[int, int], node: int) -> Mapping[int, int]:
    return {other: value for other, value in nodes.items() if other != node} if node in nodes else nodes


def decide(
    copies: Copies, roads: Roads, able: AbstractSet[int], busy: Mapping[int, int]
) -> tuple[Copies, tuple[Move, ...]]:
    """
    Return what is to be done for the nodes that need a buffer; a node that nothing is said of waits.

    A node waits only while the buffer is on its way somewhere from where it can be had later, or while a node that has
    it is busy or about to open its port: each of these ends, and is decided about again then.

    Args:
        copies: Where the copies are.
        roads: Which node can fetch from which.
        able: Nodes that others can connect to now.
        busy: How many transfers each node serves now, of all buffers.

    >>> copies, moves = decide(Copies().want(1).want(2), Roads(), {1, 2}, {})
    >>> moves
    (Upload(node=1),)
    >>> decide(copies.landed(1), Roads(), {1, 2}, {})[1]
    (Fetch(node=2, source=1),)
    >>> decide(copies.landed(1), Roads(), {1, 2}, {1: FAN_OUT})[1]
    ()
    """
    arriving, serving = dict(copies.arriving), dict(busy)
    moves: list[Move] = []
    waiting: list[int] = []
    clear = roads.clear and not copies.tries
    holders = copies.holders if clear else tuple(holder for holder in copies.holders if roads.serves(holder))
    free = [holder for holder in holders if holder in able and serving.get(holder, 0) < FAN_OUT]
    for place, node in enumerate(copies.wanted):
        if clear and not free and (holders or arriving.keys() - copies.stalled):
            # All the others wait alike: with a thousand nodes, looking at each takes longer than all the rest.
            waiting += copies.wanted[place:]
            break
        tired = copies.tries.get(node, 0) >= MOST_TRIES
        sources = [] if tired else [source for source in free if roads.lead(source, node)]
        if sources:
            source = min(sources, key=lambda source: serving.get(source, 0))
            serving[source] = serving.get(source, 0) + 1
            if serving[source] >= FAN_OUT:
                free.remove(source)
            arriving[node] = source
            moves.append(Fetch(node, source))
        elif not tired and _hopes(node, holders, arriving, copies.stalled, roads):
            waiting.append(node)
        else:
            arriving[node] = CLIENT
            moves.append(Upload(node))
    if not moves:
        return copies, ()
    return evolve(copies, arriving=arriving, wanted=tuple(waiting)), tuple(moves)


def _hopes(
    node: int, holders: tuple[int, ...], arriving: Mapping[int, int], stalled: AbstractSet[int], roads: Roads
) -> bool:
    """Return whether a node can have the buffer later from one that has it, or that it is on its way to."""
    return any(roads.lead(holder, node) for holder in holders) or any(
        other not in stalled and roads.lead(other, node) for other in arriving
    )
