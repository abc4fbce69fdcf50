"""
What becomes of a machine that failed its health checks: whether it is replaced, and whether it may be taken again.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import evolve, field, frozen

__all__ = ["MOST_UNPROVEN", "SHUNNED_AFTER", "MachineHealth", "HealthVerdict", "failed"]

SHUNNED_AFTER = 2
"""How often a machine may fail before this pool takes it no more."""

MOST_UNPROVEN = 3
"""Machines in a row that never passed their check, after which the check is suspected and not the machines."""


@frozen(kw_only=True)
class MachineHealth:
    """
    Count how often machines of a pool failed.

    Args:
        failures: How often each machine failed, by its name.
        unproven: How many machines that failed in a row had never passed.
    """

    failures: Mapping[str, int] = field(factory=dict)
    unproven: int = 0

    @property
    def shunned(self) -> frozenset[str]:
        """Return the machines that are not taken again."""
        return frozenset(name for name, count in self.failures.items() if count >= SHUNNED_AFTER)


@frozen(kw_only=True)
class HealthVerdict:
    """
    Say what becomes of a machine.

    Args:
        replace: Whether another takes its place.
        note: What its reason is to say besides; empty for nothing.
    """

    replace: bool
    note: str = ""


def failed(health: MachineHealth, machine: str, *, passed: bool) -> tuple[MachineHealth, HealthVerdict]:
    """
    Decide about a machine that failed, which its node cannot: what fails everywhere is no machine's fault.

    Args:
        health: What was counted before.
        machine: The machine's name.
        passed: Whether it passed the check before it failed.

    >>> health, verdict = failed(MachineHealth(), "gpu-box", passed=True)
    >>> verdict.replace, sorted(health.shunned)
    (True, [])
    >>> health, verdict = failed(health, "gpu-box", passed=True)
    >>> verdict.note, sorted(health.shunned)
    ('it failed twice, and this pool does not take it again', ['gpu-box'])
    """
    unproven = 0 if passed else health.unproven + 1
    if unproven > MOST_UNPROVEN:
        note = f"{MOST_UNPROVEN} machines before it never passed either, so that the check is suspected: it stays"
        return health, HealthVerdict(replace=False, note=note)
    count = health.failures.get(machine, 0) + 1
    after = evolve(health, failures={**health.failures, machine: count}, unproven=unproven)
    if count < SHUNNED_AFTER:
        return after, HealthVerdict(replace=True)
    return after, HealthVerdict(replace=True, note="it failed twice, and this pool does not take it again")
