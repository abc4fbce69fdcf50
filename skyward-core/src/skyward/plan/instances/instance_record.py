"""
What is known of each instance of a pool, as a value: a table keyed by provider and instance id.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import TypeAlias
from zlib import crc32

from attrs import evolve, field, frozen

__all__ = ["InstanceMap", "InstanceRecord", "InstanceTable", "Key", "LaunchAttempt", "Phase"]

Key: TypeAlias = tuple[str, str]
"""Names an instance: its provider, and the provider's id of it."""

_BUCKETS = 256


class Phase(Enum):
    """What an instance is about; the way out of each phase is in `docs/architecture.md`."""

    REQUESTED = "requested"
    """A launch asked for it, and the answer is awaited: it may exist, and has no id yet."""
    PENDING = "pending"
    """It was rented for a node, and does not run yet."""
    RUNNING = "running"
    """It runs and has an address; its node is being made."""
    READY = "ready"
    """Its node takes calls."""
    DRAINING = "draining"
    """It is about to be reclaimed: calls on it go on, none begins, and its place is free for another."""
    LINGERING = "lingering"
    """Its pool was left, and it waits for the next one; its own watchdog ends it."""
    TERMINATING = "terminating"
    """Its termination was asked for, and the answer is awaited."""
    TERMINATED = "terminated"
    """Its end is confirmed; remembered for as long as lists that lag may show it."""
    ORPHANED = "orphaned"
    """It exists, and no node has it."""
    UNCONFIRMED = "unconfirmed"
    """It may exist: its termination failed, or the answer to its launch was lost."""

    @property
    def of_node(self) -> bool:
        """Return whether a node has the instance."""
        return self in _OF_NODE

    @property
    def runs(self) -> bool:
        """Return whether the instance was seen running, and a node has it."""
        return self in _OF_NODE and self is not Phase.PENDING


_OF_NODE = frozenset({Phase.PENDING, Phase.RUNNING, Phase.READY, Phase.DRAINING})


@frozen(kw_only=True)
class InstanceRecord:
    """
    Hold what is known of one instance.

    Args:
        provider: The provider's name.
        id: The provider's name for it.
        cloud: Id that the pool has at the cloud: whose lists have it.
        phase: What it is about.
        since: When it was rented or first seen, in seconds of a monotonic clock.
        node: Index of the node that it was rented for; None for one that never had a node.
        listed: Whether any list had it.
        missed: How many lists in a row have not had it.
        loose_since: Since when lists have had it although no node has it; None if none has.
        doing: What it does before it runs, as it was last said.
        reason: Why its termination is not confirmed.
        reported: Whether it was reported that it may still exist.
        token: Names the launch that rented it; empty where that is not known.
    """

    provider: str
    id: str
    cloud: str
    phase: Phase
    since: float
    node: int | None = None
    listed: bool = False
    missed: int = 0
    loose_since: float | None = None
    doing: str | None = None
    reason: str = ""
    reported: bool = False
    token: str = ""

    @property
    def key(self) -> Key:
        """Return what names it in the table."""
        return self.provider, self.id


@frozen(kw_only=True)
class LaunchAttempt:
    """
    Hold what is known of one launch.

    Args:
        token: Names the request: its idempotency token.
        cloud: Id that the pool has at the cloud that was asked.
        nodes: The nodes that it asked for, an instance each.
        rate: What one costs, in USD an hour.
        phase: REQUESTED while the answer is awaited, UNCONFIRMED after it was lost, PENDING once there is a record of
            each instance that was rented, TERMINATED if none was.
        at: When that began, in seconds of a monotonic clock.
    """

    token: str
    cloud: str
    nodes: tuple[int, ...]
    rate: float
    phase: Phase
    at: float


class InstanceMap(Mapping[Key, InstanceRecord]):
    """
    Hold records by their keys; immutable.

    A change copies one of 256 buckets: what happens to one of five thousand instances costs about what happens to
    one of ten.

    Args:
        records: The records.

    >>> record = InstanceRecord(provider="x", id="i-1", cloud="a1", phase=Phase.PENDING, since=0.0)
    >>> both = InstanceMap([record]).changed([evolve(record, id="i-2")])
    >>> sorted(both), len(both.changed(removed=[("x", "i-1")])), len(both)
    ([('x', 'i-1'), ('x', 'i-2')], 1, 2)
    """

    __slots__ = ("_buckets", "_count")

    def __init__(self, records: Iterable[InstanceRecord] = ()) -> None:
        self._buckets: dict[int, dict[Key, InstanceRecord]] = {}
        self._count = 0
        self._take(self._buckets, records, ())

    def __getitem__(self, key: Key) -> InstanceRecord:
        return self._buckets.get(_bucket(key), {})[key]

    def __iter__(self) -> Iterator[Key]:
        for bucket in self._buckets.values():
            yield from bucket

    def __len__(self) -> int:
        return self._count

    def __hash__(self) -> int:
        return hash(frozenset(self.values()))

    def __repr__(self) -> str:
        return f"InstanceMap({list(self.values())!r})"

    def records(self) -> Iterator[InstanceRecord]:
        """Yield all records."""
        for bucket in self._buckets.values():
            yield from bucket.values()

    def changed(self, records: Iterable[InstanceRecord] = (), removed: Iterable[Key] = ()) -> InstanceMap:
        """Return the same records but for some that are new or changed, and some that are removed."""
        after = InstanceMap()
        after._buckets = dict(self._buckets)
        after._count = self._count
        after._take(after._buckets, records, removed)
        return after

    def _take(
        self, buckets: dict[int, dict[Key, InstanceRecord]], records: Iterable[InstanceRecord], removed: Iterable[Key]
    ) -> None:
        own: set[int] = set()

        def bucket(key: Key) -> dict[Key, InstanceRecord]:
            number = _bucket(key)
            if number not in own:
                own.add(number)
                buckets[number] = dict(buckets.get(number, ()))
            return buckets[number]

        for record in records:
            held = bucket(record.key)
            self._count += record.key not in held
            held[record.key] = record
        for key in removed:
            self._count -= bucket(key).pop(key, None) is not None


@frozen(kw_only=True)
class InstanceTable:
    """
    Hold what is known of the instances of a pool.

    Args:
        instances: A record of each instance.
        launches: A record of each launch, by its token.
        closing: The clouds that the pool is leaving: what they list is terminated, whatever it is.
    """

    instances: InstanceMap = field(factory=InstanceMap)
    launches: Mapping[str, LaunchAttempt] = field(factory=dict)
    closing: frozenset[str] = frozenset()

    def of(self, cloud: str) -> Iterator[InstanceRecord]:
        """Yield the records of one cloud."""
        return (record for record in self.instances.records() if record.cloud == cloud)

    def with_launch(self, launch: LaunchAttempt) -> InstanceTable:
        """Return the same table but for one launch."""
        return evolve(self, launches={**self.launches, launch.token: launch})

    def changed(self, records: Iterable[InstanceRecord] = (), removed: Iterable[Key] = ()) -> InstanceTable:
        """Return the same table but for some instances."""
        return evolve(self, instances=self.instances.changed(records, removed))


def _bucket(key: Key) -> int:
    return crc32(key[1].encode()) % _BUCKETS
