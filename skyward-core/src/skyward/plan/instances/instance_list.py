"""
What a provider's list of machines means for the nodes of a pool.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from attrs import frozen

from skyward.model.instances.machine import Instance, InstanceState

__all__ = ["APPEARING", "MISSES", "ListFindings", "Known", "Orphan", "compare"]

APPEARING = 60.0
"""Seconds for which a machine may be missing from lists after it was rented: they lag behind."""

MISSES = 2
"""Lists in a row that a machine has to be missing from to count as gone; one may come from a replica that lags."""

ORPHANED_FOR = 20.0
"""Seconds after which a machine that no node has is ended; the answer to its launch may be on its way."""


@frozen(kw_only=True)
class Known:
    """
    Say what is known of the machine of a node.

    Args:
        id: The provider's name for it.
        since: When it was rented, in seconds of a monotonic clock.
        runs: Whether it was seen running, and has an address.
        seen: Whether any list had it.
        missed: How many lists in a row have not had it.
        doing: What it does before it runs, as it was last said.
    """

    id: str
    since: float
    runs: bool = False
    seen: bool = False
    missed: int = 0
    doing: str | None = None


@frozen
class Orphan:
    """
    Name a machine of the pool that no node has.

    Args:
        id: The provider's name for it.
        since: When it was first seen, in seconds of a monotonic clock.
    """

    id: str
    since: float


@frozen(kw_only=True)
class ListFindings:
    """
    Say what a list of machines tells.

    Args:
        known: The machines of the nodes, as they are known now.
        running: Those that began to run.
        busy: Ids of those on their way that began something else, each with what they do, in words.
        gone: Ids of those that ended, each with the reason in words.
        overdue: Ids of those that should run by now.
        orphans: Those that no node has.
        unwanted: Ids of the orphans that have to be ended.
    """

    known: tuple[Known, ...]
    running: tuple[Instance, ...]
    busy: tuple[tuple[str, str], ...]
    gone: tuple[tuple[str, str], ...]
    overdue: tuple[str, ...]
    orphans: tuple[Orphan, ...]
    unwanted: tuple[str, ...]


def compare(
    known: Iterable[Known],
    listed: Iterable[Instance],
    *,
    orphans: Iterable[Orphan] = (),
    held: Collection[str] = (),
    under_way: Collection[str] = (),
    now: float,
    patience: float,
) -> ListFindings:
    """
    Compare what is known of a pool's machines with a list of them.

    Args:
        known: The machines that nodes have.
        listed: What the provider lists.
        orphans: What no node had at the last list.
        held: Ids of machines that are looked after besides the nodes: those that are being given back.
        under_way: Tokens of launches whose answers are awaited: their machines are no orphans.
        now: The time, in seconds of a monotonic clock.
        patience: Seconds that a machine may take until it runs.

    >>> from skyward.model.instances.machine import SSHAddress
    >>> runs = Instance(id="i-1", node=0, provider="x", address=SSHAddress(host="10.0.0.1"))
    >>> compare([Known(id="i-1", since=0.0)], [runs], now=5.0, patience=300.0).running == (runs,)
    True
    """
    rows = {row.id: row for row in listed if row.state is not InstanceState.ENDED}
    ended = {row.id: row for row in listed if row.state is InstanceState.ENDED}
    after: list[Known] = []
    running: list[Instance] = []
    busy: list[tuple[str, str]] = []
    gone: list[tuple[str, str]] = []
    overdue: list[str] = []
    ours = set(held)
    for machine in known:
        ours.add(machine.id)
        row = rows.get(machine.id)
        if why := _end_of(machine, row, ended.get(machine.id), now=now):
            gone.append((machine.id, why))
        elif row is not None and not machine.runs and row.state is InstanceState.RUNNING and row.address is not None:
            running.append(row)
        elif not machine.runs and now - machine.since > patience:
            overdue.append(machine.id)
        elif row is not None and not machine.runs and row.doing and row.doing != machine.doing:
            busy.append((machine.id, row.doing))
        after.append(_after(machine, row))
    before = {orphan.id: orphan for orphan in orphans}
    loose = [
        before.get(row.id, Orphan(row.id, now))
        for row in rows.values()
        if row.id not in ours and row.state is not InstanceState.ENDING and not _awaited(row, under_way)
    ]
    return ListFindings(
        known=tuple(after),
        running=tuple(running),
        busy=tuple(busy),
        gone=tuple(gone),
        overdue=tuple(overdue),
        orphans=tuple(loose),
        unwanted=tuple(orphan.id for orphan in loose if now - orphan.since >= ORPHANED_FOR),
    )


def _end_of(machine: Known, row: Instance | None, ended: Instance | None, *, now: float) -> str:
    """Return why a machine counts as gone; nothing if it does not."""
    if ended is not None:
        return _reason(ended) or "the provider says that it ended"
    if row is not None:
        return (_reason(row) or "the provider is ending it") if row.state is InstanceState.ENDING else ""
    if machine.seen:
        return "the provider lists it no more" if machine.missed + 1 >= MISSES else ""
    return "" if machine.runs or now - machine.since < APPEARING else "the provider never listed it"


def _reason(row: Instance) -> str:
    """Return the provider's reason for a machine's end, as part of a sentence; nothing if there is none."""
    reason = " ".join((row.reason or "").split()).rstrip(".")
    return f"the provider says: {reason}" if reason else ""


def _after(machine: Known, row: Instance | None) -> Known:
    if row is None:
        return Known(
            id=machine.id,
            since=machine.since,
            runs=machine.runs,
            seen=machine.seen,
            missed=machine.missed + 1,
            doing=machine.doing,
        )
    runs = machine.runs or (row.state is InstanceState.RUNNING and row.address is not None)
    return Known(id=machine.id, since=machine.since, runs=runs, seen=True, doing=row.doing or machine.doing)


def _awaited(row: Instance, under_way: Collection[str]) -> bool:
    """Return whether a launch whose answer is awaited may have rented a machine."""
    if not under_way:
        return False
    return row.tags is None or not row.tags.token or row.tags.token in under_way
