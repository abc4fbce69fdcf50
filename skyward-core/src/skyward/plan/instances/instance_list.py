"""
What a cloud's list of instances means for the table: which run, are gone, are orphans, or are confirmed to be gone.
"""

from __future__ import annotations

from collections.abc import Iterable

from attrs import evolve, frozen

from skyward.model.instances.machine import Instance, InstanceState
from skyward.plan.instances.instance_events import (
    Began,
    Bill,
    Busy,
    Command,
    Confirmed,
    EndBill,
    Gone,
    Listed,
    NotRunning,
    TerminateInstances,
)
from skyward.plan.instances.instance_record import InstanceRecord, InstanceTable, Key, Phase

__all__ = ["APPEARING", "LATE", "MISSES", "ORPHANED_FOR", "confirmed", "look_until", "runs", "take_list"]

APPEARING = 60.0
"""Seconds for which an instance may be missing from lists after it was rented: they lag behind."""

LATE = 8.0
"""Seconds for which a pool that is left waits for lists to show what it may have rented."""

MISSES = 2
"""Lists in a row that an instance has to be missing from to count as gone; one may come from a replica that lags."""

ORPHANED_FOR = 20.0
"""Seconds after which an orphan is terminated; the answer to its launch may be on its way."""


@frozen
class _Outcome:
    """What becomes of one record: how it is from now on, None if it is forgotten, and what is to be done."""

    record: InstanceRecord | None
    commands: tuple[Command, ...] = ()
    terminate: bool = False


def take_list(table: InstanceTable, event: Listed) -> tuple[InstanceTable, tuple[Command, ...]]:
    """
    Compare a list with the table, in time that grows with the sum of both.

    >>> from skyward.model.instances.machine import SSHAddress
    >>> row = Instance(id="i-1", node=0, provider="x", address=SSHAddress(host="10.0.0.1"))
    >>> _, commands = take_list(InstanceTable(), Listed(cloud="a1", instances=(row,), at=5.0, patience=300.0))
    >>> [type(command).__name__ for command in commands]
    ['Bill']
    """
    rows = {(row.provider, row.id): row for row in event.instances}
    closing = event.cloud in table.closing
    records: list[InstanceRecord] = []
    removed: list[Key] = []
    commands: list[Command] = []
    doomed: set[Key] = set()
    for record in table.of(event.cloud):
        outcome = _outcome(record, rows.pop(record.key, None), event, closing=closing)
        commands += outcome.commands
        if outcome.terminate:
            doomed.add(record.key)
        if outcome.record is None:
            removed.append(record.key)
        elif outcome.record is not record:
            records.append(outcome.record)
    awaited = () if closing else _awaited(table, event.cloud)
    for key, row in rows.items():
        if row.state is InstanceState.ENDED or not row.rented or key in table.instances or _may_be_of(row, awaited):
            continue
        launch = table.launches.get(row.tags.token) if row.tags is not None else None
        commands.append(Bill(row, None if launch is None else launch.rate))
        records.append(
            InstanceRecord(
                provider=row.provider,
                id=row.id,
                cloud=event.cloud,
                phase=Phase.TERMINATING if closing else Phase.ORPHANED,
                since=event.at,
                listed=True,
                loose_since=event.at,
                token="" if row.tags is None else row.tags.token,
            )
        )
        if closing:
            doomed.add(key)
    if doomed:
        listed = ((row.provider, row.id) for row in event.instances)
        commands.append(TerminateInstances(tuple(key for key in dict.fromkeys(listed) if key in doomed)))
    return table.changed(records, removed), tuple(commands)


def look_until(table: InstanceTable, cloud: str) -> float | None:
    """
    Return until when a pool that leaves a cloud looks at lists: what it may have rented appears late, or not at all.

    Args:
        table: What is known.
        cloud: Id that the pool has at the cloud.

    Returns:
        The time, in seconds of a monotonic clock; None if one list tells.
    """
    lost = [one.at for one in table.launches.values() if one.cloud == cloud and one.phase is Phase.UNCONFIRMED]
    settled = (Phase.TERMINATED, Phase.LINGERING)
    unseen = [one.since for one in table.of(cloud) if one.phase not in settled and not one.listed]
    return max((at + LATE for at in (*lost, *unseen)), default=None)


def runs(instance: Instance) -> bool:
    """Return whether an instance runs, and can be reached."""
    return instance.state is InstanceState.RUNNING and instance.address is not None


def confirmed(record: InstanceRecord) -> _Outcome:
    """Return what becomes of an instance whose end is confirmed."""
    after = evolve(record, phase=Phase.TERMINATED, missed=0, loose_since=None, reason="", reported=False)
    if record.node is None:
        return _Outcome(after, (EndBill(record.key),))
    return _Outcome(after, (Confirmed(record.key),) if record.reported else ())


def _outcome(record: InstanceRecord, row: Instance | None, event: Listed, *, closing: bool) -> _Outcome:
    if record.phase is Phase.LINGERING:
        # It is the next pool's, or its own watchdog's.
        return _Outcome(record)
    there = row is not None and row.state is not InstanceState.ENDED
    if record.phase is Phase.TERMINATED:
        return _after_the_end(record, row if there else None, event.at, closing=closing)
    if closing and there:
        return _Outcome(evolve(record, phase=Phase.TERMINATING, listed=True, missed=0), terminate=True)
    if record.phase.of_node and not closing:
        return _of_node(record, row, event)
    if record.phase is Phase.TERMINATING and not closing:
        return _Outcome(record)
    if there:
        return _loose(record, event.at)
    if row is not None or _vanished(record, event.at, closing=closing):
        # Lists are no confirmation: one that shows it again shows an orphan.
        return _Outcome(None, confirmed(record).commands)
    return _Outcome(evolve(record, missed=record.missed + 1))


def _of_node(record: InstanceRecord, row: Instance | None, event: Listed) -> _Outcome:
    """Return what a list means for an instance that a node has."""
    seen = _seen(record, row)
    if why := _end_of(record, row, event.at):
        return _Outcome(seen, (Gone(record.key, why),))
    if record.phase is not Phase.PENDING:
        return _Outcome(seen)
    if row is not None and runs(row):
        return _Outcome(evolve(seen, phase=Phase.RUNNING), (Began(record.key, row),))
    if event.at - record.since > event.patience:
        return _Outcome(seen, (NotRunning(record.key),))
    if row is not None and row.doing and row.doing != record.doing:
        return _Outcome(seen, (Busy(record.key, row.doing),))
    return _Outcome(seen)


def _seen(record: InstanceRecord, row: Instance | None) -> InstanceRecord:
    if row is None:
        return evolve(record, missed=record.missed + 1)
    doing = row.doing or record.doing
    if record.listed and not record.missed and doing == record.doing:
        return record
    return evolve(record, listed=True, missed=0, doing=doing)


def _end_of(record: InstanceRecord, row: Instance | None, now: float) -> str:
    """Return why an instance counts as gone; nothing if it does not."""
    if row is not None:
        end = _ENDS.get(row.state, "")
        return end and (_reason(row) or end)
    if record.listed:
        return "the provider lists it no more" if record.missed + 1 >= MISSES else ""
    return "" if record.phase.runs or now - record.since < APPEARING else "the provider never listed it"


_ENDS = {
    InstanceState.ENDING: "the provider is ending it",
    InstanceState.ENDED: "the provider says that it ended",
}


def _reason(row: Instance) -> str:
    """Return the provider's reason for an instance's end, as part of a sentence; nothing if there is none."""
    reason = " ".join((row.reason or "").split()).rstrip(".")
    return f"the provider says: {reason}" if reason else ""


def _loose(record: InstanceRecord, now: float) -> _Outcome:
    """Return what becomes of an instance that is listed and that no node has."""
    since = now if record.loose_since is None else record.loose_since
    after = evolve(record, listed=True, missed=0, loose_since=since)
    if now - since < ORPHANED_FOR:
        return _Outcome(after)
    return _Outcome(evolve(after, phase=Phase.TERMINATING), terminate=True)


def _after_the_end(record: InstanceRecord, row: Instance | None, now: float, *, closing: bool) -> _Outcome:
    """Return what becomes of an instance whose end was confirmed: lists may lag, or the confirmation was wrong."""
    if row is None:
        return _Outcome(None if record.missed + 1 >= MISSES else evolve(record, missed=record.missed + 1))
    if not row.rented:
        return _Outcome(None)
    if closing or row.state is InstanceState.ENDING:
        return _Outcome(evolve(record, missed=0))
    return _loose(record, now)


def _vanished(record: InstanceRecord, now: float, *, closing: bool) -> bool:
    """Return whether an instance that no node has is gone because lists do not have it."""
    if not record.listed and now - record.since < (LATE if closing else APPEARING):
        return False
    return closing or record.missed + 1 >= MISSES


def _awaited(table: InstanceTable, cloud: str) -> Iterable[str]:
    """Return the tokens of launches whose answers are awaited."""
    return {one.token for one in table.launches.values() if one.cloud == cloud and one.phase is Phase.REQUESTED}


def _may_be_of(row: Instance, awaited: Iterable[str]) -> bool:
    """Return whether a launch whose answer is awaited may have rented an instance."""
    if not awaited:
        return False
    return row.tags is None or not row.tags.token or row.tags.token in awaited
