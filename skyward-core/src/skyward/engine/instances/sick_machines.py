"""Machines whose nodes failed a health check: what becomes of each, and which are not taken again."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from skyward.plan.pool.machine_health import MachineHealth, failed

if TYPE_CHECKING:
    from skyward.engine.instances.provisioning import Provisioning
    from skyward.engine.nodes.node_shell import NodeShell

__all__ = ["SickMachines"]

DRAINED_WITHIN = 60.0
"""Seconds that calls of a node have to end that failed a check; then they are lost, and tried again elsewhere."""

_SENTENCE = 1000


class SickMachines:
    """
    Check the nodes that report a failed check; lives in the engine's loop.

    Args:
        of: Returns what a node's machine was taken by.
    """

    def __init__(self, of: Callable[[NodeShell], Provisioning]) -> None:
        self._of = of
        self._health = MachineHealth()

    def judged(self, shell: NodeShell, notice: dict[str, Any]) -> dict[str, Any]:
        """
        Return a notice with what becomes of it; one that is about no check has that alone.

        Args:
            shell: The node.
            notice: What it sent: `reason`, `certain`, and `check` and `passed` where a check failed.
        """
        if "check" not in notice:
            return {name: notice[name] for name in ("reason", "certain", "at") if name in notice}
        reason, certain = str(notice.get("reason", ""))[:_SENTENCE], notice.get("certain") is True
        judged = {"check": str(notice["check"])[:100], "reason": reason, "certain": certain, "at": None}
        if not certain:
            return judged
        cloud = self._of(shell)
        machine = machine_of(shell)
        self._health, verdict = failed(self._health, machine, passed=notice.get("passed") is True)
        if machine in self._health.shunned:
            cloud.shun(machine)
        return {
            **judged,
            "reason": f"{reason}; {verdict.note}" if verdict.note else reason,
            "certain": verdict.replace,
            "within": DRAINED_WITHIN,
            "own": not cloud.facts.rents,
            "at": time.time() if verdict.replace else None,
        }


def machine_of(shell: NodeShell) -> str:
    """
    Name a machine as it would be met again: by what its offer says of it, else by its instance's id.

    Args:
        shell: Its node.
    """
    machine = shell.rented.candidate.offer.data.get("machine")
    return str(machine) if machine is not None else shell.instance.id
