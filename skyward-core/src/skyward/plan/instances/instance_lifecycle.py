"""
The life of a pool's instances: `step(table, event)` gives the next table and what is to be done.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve

from skyward.plan.instances.instance_events import (
    Assign,
    BecameReady,
    Bill,
    CloudLeft,
    Command,
    Event,
    LaunchAnswered,
    LaunchRefused,
    LaunchRequested,
    LaunchUnanswered,
    Lingers,
    Listed,
    Reclaimed,
    Released,
    Surplus,
    Terminated,
    TerminateInstances,
    TerminationFailed,
    TerminationRefused,
)
from skyward.plan.instances.instance_list import confirmed, runs, take_list
from skyward.plan.instances.instance_record import InstanceRecord, InstanceTable, Key, LaunchAttempt, Phase

__all__ = ["REMEMBERED", "step", "unended"]

REMEMBERED = 900.0
"""Seconds for which a launch that is over is remembered: lists may show late what it rented."""

_Step = tuple[InstanceTable, tuple[Command, ...]]


def step(table: InstanceTable, event: Event) -> _Step:
    """
    Decide what an event means.

    Args:
        table: What is known.
        event: What happened.

    >>> from skyward.model.instances.machine import Instance
    >>> table, _ = step(InstanceTable(), LaunchRequested(token="t", cloud="a1", nodes=(0,), rate=0.1, at=0.0))
    >>> rented = (Instance(id="i", node=0, provider="x"),)
    >>> table, commands = step(table, LaunchAnswered(token="t", instances=rented, at=1.0))
    >>> table.instances["x", "i"].phase, [type(command).__name__ for command in commands]
    (<Phase.PENDING: 'pending'>, ['Assign'])
    """
    match event:
        case LaunchRequested():
            launch = LaunchAttempt(
                token=event.token,
                cloud=event.cloud,
                nodes=event.nodes,
                rate=event.rate,
                phase=Phase.REQUESTED,
                at=event.at,
            )
            return _without_old_launches(table, event.at).with_launch(launch), ()
        case LaunchAnswered():
            return _answered(table, event)
        case LaunchRefused():
            return _launch_is(table, event.token, Phase.TERMINATED, event.at), ()
        case LaunchUnanswered():
            return _launch_is(table, event.token, Phase.UNCONFIRMED, event.at), ()
        case Listed():
            return take_list(_without_old_launches(table, event.at), event)
        case BecameReady(key):
            return _moved(table, key, (Phase.PENDING, Phase.RUNNING), Phase.READY), ()
        case Reclaimed(key):
            return _moved(table, key, (Phase.PENDING, Phase.RUNNING, Phase.READY), Phase.DRAINING), ()
        case Released(key):
            return _released(table, key)
        case Lingers(key):
            return _moved(table, key, (Phase.READY,), Phase.LINGERING), ()
        case Terminated(keys):
            return _terminated(table, keys)
        case TerminationRefused(key, reason):
            return table.changed(evolve(one, reason=reason) for one in _existing(table, (key,))), ()
        case TerminationFailed(keys, reason):
            failed = _existing(table, keys)
            return table.changed(
                evolve(one, phase=Phase.UNCONFIRMED, reason=reason, reported=True) for one in failed
            ), ()
        case CloudLeft(cloud):
            return evolve(table, closing=table.closing | {cloud}), ()


def unended(table: InstanceTable, cloud: str) -> dict[str, str]:
    """
    Return the instances of a cloud that may exist although nothing needs them, each with the reason; oldest first.

    Args:
        table: What is known.
        cloud: Id that the pool has at the cloud. While it stays there, these are the ones whose termination failed.
    """
    left = [one for one in table.of(cloud) if one.phase not in (Phase.TERMINATED, Phase.LINGERING)]
    left.sort(key=lambda one: (one.since, one.id))
    if cloud not in table.closing:
        left = [one for one in left if one.phase is Phase.UNCONFIRMED or one.reason]
    return {one.id: one.reason or "Its end is not confirmed." for one in left}


def _answered(table: InstanceTable, event: LaunchAnswered) -> _Step:
    launch = table.launches[event.token]
    table = _launch_is(table, event.token, Phase.PENDING, event.at)
    records: dict[Key, InstanceRecord] = {}
    commands: list[Command] = []
    node: int | None
    free = set(launch.nodes)
    taken = {one.node for one in table.instances.records() if one.phase.of_node and one.phase is not Phase.DRAINING}
    for instance in event.instances:
        key = instance.provider, instance.id
        known = records.get(key) or table.instances.get(key)
        if known is not None and _is_rented_again(known, launch):
            known = None
        if known is not None and known.phase is not Phase.ORPHANED:
            # Confirmed to be gone, being terminated, or given to a node by this answer.
            continue
        if instance.node in free:
            free.discard(instance.node)
            phase = Phase.RUNNING if runs(instance) else Phase.PENDING
            # The place of the node may have been given away while the instance was on its way.
            phase = Phase.ORPHANED if instance.node in taken else phase
            commands.append(Surplus(instance) if phase is Phase.ORPHANED else Assign(instance))
            node = instance.node
        elif known is None:
            phase, node = Phase.ORPHANED, None
            commands.append(Bill(instance, launch.rate))
        else:
            continue
        records[key] = InstanceRecord(
            provider=instance.provider,
            id=instance.id,
            cloud=launch.cloud,
            phase=phase,
            since=event.at,
            node=node,
            listed=known is not None,
            token=event.token,
        )
    return table.changed(records.values()), tuple(commands)


def _is_rented_again(known: InstanceRecord, launch: LaunchAttempt) -> bool:
    """Return whether a launch gave what an earlier one had given: hosts keep their ids, as those of `sky.SSH`."""
    if known.phase not in (Phase.TERMINATING, Phase.TERMINATED, Phase.UNCONFIRMED) or known.token == launch.token:
        return False
    return bool(known.token) or known.since < launch.at


def _released(table: InstanceTable, key: Key) -> _Step:
    record = table.instances.get(key)
    if record is None or record.phase is Phase.TERMINATED:
        return table, ()
    return table.changed([_at_rest(record, Phase.TERMINATING)]), (TerminateInstances((key,)),)


def _terminated(table: InstanceTable, keys: Sequence[Key]) -> _Step:
    commands: list[Command] = []
    records = []
    for record in _existing(table, keys):
        outcome = confirmed(record)
        commands += outcome.commands
        records += [outcome.record] if outcome.record is not None else []
    return table.changed(records), tuple(commands)


def _existing(table: InstanceTable, keys: Sequence[Key]) -> list[InstanceRecord]:
    """List those of some instances whose end is not confirmed; none that was rented again meanwhile."""
    known = [table.instances[key] for key in keys if key in table.instances]
    return [record for record in known if record.phase is not Phase.TERMINATED and not record.phase.of_node]


def _moved(table: InstanceTable, key: Key, before: Sequence[Phase], after: Phase) -> InstanceTable:
    record = table.instances.get(key)
    if record is None or record.phase not in before:
        return table
    return table.changed([evolve(record, phase=after)])


def _at_rest(record: InstanceRecord, phase: Phase) -> InstanceRecord:
    """Return a record in another phase, as no list has shown it in that one yet."""
    return evolve(record, phase=phase, loose_since=None, missed=0)


def _without_old_launches(table: InstanceTable, now: float) -> InstanceTable:
    kept = {
        token: one
        for token, one in table.launches.items()
        if one.phase is Phase.REQUESTED or now - one.at <= REMEMBERED
    }
    return table if len(kept) == len(table.launches) else evolve(table, launches=kept)


def _launch_is(table: InstanceTable, token: str, phase: Phase, at: float) -> InstanceTable:
    launch = table.launches.get(token)
    if launch is None or launch.phase is not Phase.REQUESTED:
        return table
    return table.with_launch(evolve(launch, phase=phase, at=at))
