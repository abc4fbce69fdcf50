"""
The places of a pool and the nodes in them, as a value: a change shares all but a few entries with what it changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from itertools import islice

from attrs import frozen

_BLOCK = 32


class NodeStatus(Enum):
    """What a node is about."""

    LAUNCHING = "launching"
    """Its machine is asked for."""
    STARTING = "starting"
    """Its machine is there; environment, agent and workers are being made."""
    READY = "ready"
    """It takes calls."""
    LEAVING = "leaving"
    """It is being terminated."""
    WITHDRAWN = "withdrawn"
    """Its machine is asked for and not wanted any more: what the cloud answers is terminated, or wanted again."""


@frozen
class NodeState:
    """A node: its status, how often it failed to start in a row, and whether a cloud is being asked for its machine."""

    status: NodeStatus
    failures: int = 0
    asked: bool = False


class Places(Mapping[int, NodeState]):
    """
    Hold the nodes of a pool by their places, which are numbers from 0; immutable.

    A change copies a block of 32 places and the list of blocks, and how many nodes are of a status is counted along:
    what happens to one of a thousand nodes costs about what happens to one of ten.

    Args:
        nodes: The nodes by their places.

    >>> places = Places({0: NodeState(NodeStatus.READY)}).with_node(3, NodeState(NodeStatus.LAUNCHING))
    >>> list(places), places.count(NodeStatus.READY), list(places.free(3)), len(places.without(0))
    ([0, 3], 1, [1, 2, 4], 1)
    """

    __slots__ = ("_blocks", "_counts", "_ready")

    def __init__(self, nodes: Mapping[int, NodeState] | None = None) -> None:
        self._blocks: dict[int, dict[int, NodeState]] = {}
        self._counts = dict.fromkeys(NodeStatus, 0)
        self._ready: tuple[int, ...] | None = None
        for place, node in (nodes or {}).items():
            self._blocks.setdefault(place // _BLOCK, {})[place] = node
            self._counts[node.status] += 1

    def __getitem__(self, place: int) -> NodeState:
        return self._blocks[place // _BLOCK][place]

    def __iter__(self) -> Iterator[int]:
        for _, block in sorted(self._blocks.items()):
            yield from sorted(block)

    def __len__(self) -> int:
        return sum(self._counts.values())

    def __hash__(self) -> int:
        return hash(frozenset(self.items()))

    def __repr__(self) -> str:
        return f"Places({dict(self)!r})"

    @property
    def ready(self) -> tuple[int, ...]:
        """List the places of nodes that take calls; made once for each value, and not to count them."""
        if self._ready is None:
            self._ready = tuple(place for place in self if self[place].status is NodeStatus.READY)
        return self._ready

    def count(self, status: NodeStatus) -> int:
        """Count the nodes of a status."""
        return self._counts[status]

    def free(self, count: int, below: int | None = None) -> Iterator[int]:
        """
        Return the lowest places that have no node.

        Args:
            count: How many, at most.
            below: What all of them are below; None for no bound.
        """
        return islice(self._gaps(len(self) + count if below is None else below), count)

    def with_node(self, place: int, node: NodeState) -> Places:
        """Return the same nodes but for one."""
        return self._changed(place, node)

    def without(self, place: int) -> Places:
        """Return the same nodes without one; harmless if there is none."""
        return self._changed(place, None) if place in self else self

    def _gaps(self, end: int) -> Iterator[int]:
        for number in range((end + _BLOCK - 1) // _BLOCK):
            block = self._blocks.get(number, {})
            if len(block) < _BLOCK:
                yield from (
                    place for place in range(number * _BLOCK, min(end, (number + 1) * _BLOCK)) if place not in block
                )

    def _changed(self, place: int, node: NodeState | None) -> Places:
        number = place // _BLOCK
        block = dict(self._blocks.get(number, {}))
        before = block.pop(place, None)
        if node is not None:
            block[place] = node
        after = Places()
        after._blocks = {**self._blocks, number: block}
        after._counts = dict(self._counts)
        if before is not None:
            after._counts[before.status] -= 1
        if node is not None:
            after._counts[node.status] += 1
        return after
