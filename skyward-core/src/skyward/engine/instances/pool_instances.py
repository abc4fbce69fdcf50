"""One owner for what is known of a pool's instances: takes events into the table, and carries out what they ask for."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING

from skyward.errors import ProvisionError
from skyward.plan.instances.instance_events import (
    Began,
    Bill,
    Busy,
    Command,
    Confirmed,
    EndBill,
    Event,
    Gone,
    Listed,
    NotRunning,
    Terminated,
    TerminateInstances,
)
from skyward.plan.instances.instance_lifecycle import step, unended
from skyward.plan.instances.instance_list import look_until
from skyward.plan.instances.instance_record import InstanceTable, Key, Phase

if TYPE_CHECKING:
    from skyward.engine.events.reporting import Reporting
    from skyward.engine.nodes.node_shell import NodeShell
    from skyward.model.instances.machine import Instance

_log = logging.getLogger(__name__)

RUNNING_WITHIN = 600.0
"""Seconds until a rented instance has to run, where no option says otherwise."""

_THERE = frozenset(phase for phase in Phase if phase.of_node) | {Phase.TERMINATING}


class PoolInstances:
    """
    Own what is known of each instance of one pool, at all its clouds; lives in the engine's loop.

    Args:
        reporting: Counts what orphans cost, and reports what is confirmed to be gone.
        patience: Seconds that an instance may take until it runs; None for `RUNNING_WITHIN`.
    """

    def __init__(self, reporting: Reporting, patience: float | None = None) -> None:
        self._reporting = reporting
        self._patience = patience or RUNNING_WITHIN
        self._table = InstanceTable()
        self._shells: dict[Key, NodeShell] = {}

    @property
    def shells(self) -> tuple[NodeShell, ...]:
        """List the nodes whose instances are there, or are being terminated; from any thread."""
        # Copied at once, as the loop may add one meanwhile.
        return tuple(shell for key, shell in tuple(self._shells.items()) if self._phase(key) in _THERE)

    @staticmethod
    def now() -> float:
        """Return the time of events, in seconds of a monotonic clock."""
        return asyncio.get_running_loop().time()

    def add(self, shell: NodeShell) -> None:
        """Register the node of an instance."""
        self._shells[shell.rented.key] = shell

    def is_surplus(self, shell: NodeShell) -> bool:
        """Return whether a node's place had another instance already when this one was there."""
        return self._phase(shell.rented.key) is Phase.ORPHANED

    def is_ready(self, shell: NodeShell) -> bool:
        """Return whether a node takes calls, and its instance stays."""
        return self._phase(shell.rented.key) is Phase.READY

    def in_use(self, cloud: str) -> tuple[str, ...]:
        """List the ids of a cloud's instances that nodes have."""
        return tuple(record.id for record in self._table.of(cloud) if record.phase.of_node)

    def taken(self, cloud: str, nodes: Iterable[int]) -> frozenset[str]:
        """List the ids of a cloud's instances that nodes have other than these."""
        others = [(key, shell) for key, shell in self._shells.items() if shell.index not in set(nodes)]
        return frozenset(
            shell.instance.id
            for key, shell in others
            if shell.blueprint.cluster.pool_id == cloud and (phase := self._phase(key)) is not None and phase.of_node
        )

    def newest_boot(self, cloud: str) -> float | None:
        """Return when the latest of the instances was rented that do not run yet; None if all run."""
        pending = (record.since for record in self._table.of(cloud) if record.phase is Phase.PENDING)
        return max(pending, default=None)

    def unended(self, cloud: str) -> dict[str, str]:
        """Return the ids of instances that may exist although nothing needs them, each with the reason."""
        return unended(self._table, cloud)

    def look_until(self, cloud: str) -> float | None:
        """Return until when lists are looked at for what was rented unseen; None if one list tells."""
        return look_until(self._table, cloud)

    def listed(self, cloud: str, rows: Iterable[Instance]) -> tuple[Key, ...]:
        """
        Take a cloud's list of the pool's instances.

        Args:
            cloud: Id that the pool has there.
            rows: What is listed.

        Returns:
            The instances to be terminated.
        """
        event = Listed(cloud=cloud, instances=tuple(rows), at=self.now(), patience=self._patience)
        doomed = [command.keys for command in self.send(event) if isinstance(command, TerminateInstances)]
        return tuple(key for keys in doomed for key in keys)

    def send(self, event: Event) -> tuple[Command, ...]:
        """
        Take an event, and carry out what can be without waiting.

        Args:
            event: What happened.

        Returns:
            All that is to be done; what is assigned or terminated is left to the sender.
        """
        self._table, commands = step(self._table, event)
        for command in commands:
            try:
                self._execute(command)
            except Exception:
                # What else is to be done is more important: an instance may have to be terminated.
                _log.exception("instances.command_failed command=%s", command)
        self._forget_shells(event)
        return commands

    def _execute(self, command: Command) -> None:
        meter = self._reporting.meter
        match command:
            case Bill(instance, rate):
                meter.bill.orphaned(instance, rate)
            case EndBill((provider, name)):
                meter.bill.orphans_ended(provider, (name,))
            case Began(key) | Busy(key) | Gone(key) | NotRunning(key) | Confirmed(key):
                if (shell := self._shells.get(key)) is not None:
                    self._let_know(shell, command)

    def _let_know(self, shell: NodeShell, command: Command) -> None:
        match command:
            case Began(_, instance):
                shell.began(instance)
            case Busy(_, doing):
                shell.on_busy(shell, doing)
            case Gone(_, reason):
                shell.gone(reason)
            case NotRunning():
                late = f"{shell.where} did not run within {self._patience:g} s."
                shell.never(ProvisionError(late, node=shell.index))
            case Confirmed():
                when = "when the pool was left" if self._table.closing else "late"
                self._reporting.destroyed(shell, f"its end was confirmed {when}")

    def _forget_shells(self, event: Event) -> None:
        """Drop the nodes whose instances are confirmed to be gone."""
        match event:
            case Terminated(keys):
                done: Iterable[Key] = keys
            case Listed():
                done = list(self._shells)
            case _:
                return
        for key in done:
            if self._phase(key) in (None, Phase.TERMINATED):
                self._shells.pop(key, None)

    def _phase(self, key: Key) -> Phase | None:
        record = self._table.instances.get(key)
        return None if record is None else record.phase
