"""Calls that are placed together or not at all: the ranks of a broadcast."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Group(NamedTuple):
    """Calls that are placed together: for each its id, its node and its rank there."""

    members: tuple[tuple[int, int, int], ...]

    @property
    def key(self) -> int:
        """Name the group: its first call."""
        return self.members[0][0]


class Groups:
    """
    Find the group that a call is queued with.

    >>> groups = Groups()
    >>> groups.add([(3, 0, 0), (4, 1, 0)]).key
    3
    >>> groups.of(4), groups.of(5), groups.on(1)
    ((3, 4), (), {4})
    >>> groups.remove(4), groups.of(3)
    ((3, 4), ())
    """

    __slots__ = ("_groups", "_keys")

    def __init__(self) -> None:
        self._groups: dict[int, Group] = {}
        self._keys: dict[int, int] = {}

    def __contains__(self, call: int) -> bool:
        return call in self._keys

    def add(self, members: Sequence[tuple[int, int, int]]) -> Group:
        """Take a group, and return it: for each call its id, its node and its rank there."""
        group = Group(tuple(members))
        self._groups[group.key] = group
        for call, _, _ in group.members:
            self._keys[call] = group.key
        return group

    def key(self, call: int) -> int:
        """Return the name of the group of a call that is in one."""
        return self._keys[call]

    def of(self, call: int) -> tuple[int, ...]:
        """Return the calls of a call's group; none for one that is in no group."""
        key = self._keys.get(call)
        return () if key is None else tuple(member for member, _, _ in self._groups[key].members)

    def on(self, node: int) -> set[int]:
        """Return the calls that are for a node."""
        return {call for group in self._groups.values() for call, its_node, _ in group.members if its_node == node}

    def remove(self, call: int) -> tuple[int, ...]:
        """Remove the group of a call, and return all of its calls."""
        calls = self.of(call)
        del self._groups[self._keys[call]]
        for member in calls:
            del self._keys[member]
        return calls

    def clear(self) -> None:
        """Remove all groups."""
        self._groups.clear()
        self._keys.clear()
