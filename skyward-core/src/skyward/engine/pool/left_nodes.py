"""What another client needs of the nodes of a pool; and nodes that a client has claimed, returned."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from attrs import evolve

from skyward.engine.instances.detached_records import KeptAnswer, LeftCall
from skyward.engine.instances.detachment import Detachment, DetachTerms
from skyward.engine.instances.linger import Linger
from skyward.link.messages import task_of
from skyward.plan.instances.lingering import LEAST

if TYPE_CHECKING:
    from skyward.engine.nodes.node_shell import NodeShell
    from skyward.engine.pool.running import Running

__all__ = ["answers", "left_calls", "return_claimed", "terms"]


def terms(running: Running, name: str, lease: float, lost: Sequence[LeftCall] = ()) -> DetachTerms:
    """
    Return what a pool is to another client.

    Args:
        running: The pool.
        name: What it is attached by.
        lease: Seconds until its machines end.
        lost: Calls that were lost before.
    """
    # What is of this program alone is said once more when the pool is attached.
    options = evolve(
        running.options,
        on_event=None,
        selection="cheapest",
        console=True,
        logging=True,
        ports=(),
        linger=0.0,
        warm_image=False,
        pool_deadline=None,
        budget=running.reporting.meter.left(),
    )
    members = running.membership.version
    return DetachTerms(name=name, spec=running.spec, options=options, lease=lease, members=members, lost=tuple(lost))


def left_calls(running: Running, shells: Sequence[NodeShell]) -> Mapping[NodeShell, Sequence[LeftCall]]:
    """
    Return the calls of each node that it has not answered, oldest first.

    Args:
        running: The pool.
        shells: The nodes.
    """
    inherited = running.inherited
    found: dict[int, list[LeftCall]] = {shell.seat: list(inherited.open_on(shell.index)) for shell in shells}
    # Their results are on this computer's disk then, whatever becomes of the node.
    for unused in inherited.unused() if shells else ():
        found[shells[0].seat].append(unused.call)
    for call in running.dispatch.calls:
        if call.on is not None and call.on in found:
            found[call.on].append(
                LeftCall(id=call.id, function=call.function.name, lane=call.lane, timeout=call.timeout)
            )
    return {shell: sorted(found[shell.seat], key=lambda call: task_of(call.id)) for shell in shells}


def answers(running: Running) -> list[KeptAnswer]:
    """
    Return the results that an attached pool has and its program did not use.

    Args:
        running: The pool.
    """
    return [unused.answer for unused in running.inherited.unused()]


async def return_claimed(running: Running) -> None:
    """
    Leave the nodes of a pool that could not be attached as they were, with their results and their lease.

    Args:
        running: The pool, whose nodes were claimed, and not asked for anything yet.

    Raises:
        OSError: If it cannot be written down; they are terminated then.
    """
    provisioning, inherited = running.provisioning, running.inherited
    linger = provisioning.linger
    shells = [shell for shell in running.instances.shells if shell.rented.resumed is not None]
    if not shells or not isinstance(linger, Linger):
        return
    for shell in shells:
        shell.host = shell.host or provisioning.reach(shell)
    lease = max(LEAST, inherited.ends_at - time.time())
    leaving = Detachment(linger, terms(running, running.name, lease, inherited.lost_before), shells)
    await leaving.return_claimed(left_calls(running, shells), answers(running))
    provisioning.linger = provisioning.terminator.linger = leaving
