"""What an open pool says of itself to other programs of its user: its nodes and calls, and how a node is reached."""

from __future__ import annotations

import asyncio
import os
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

import attrs

from skyward.engine.instances.identity import owner
from skyward.errors import NodeLostError
from skyward.model.instances.machine import LocalAddress

if TYPE_CHECKING:
    from skyward.engine.nodes.node_shell import NodeShell
    from skyward.engine.pool.running import Running

__all__ = ["node_address", "pool_facts"]


def pool_facts(running: Running, node: int | None = None) -> dict[str, Any]:
    """
    Return what a pool is at this moment, as plain values; called in the engine's loop.

    Args:
        running: The pool.
        node: The only node that is described; None for all.
    """
    state, dispatch, cost = running.state, running.dispatch, running.reporting.meter.cost()
    calls = Counter(call.on for call in dispatch.calls if call.on is not None)
    shells = [shell for shell in running.instances.shells if node in (None, shell.index)]
    return {
        "pool": running.name,
        "pool_id": running.provisioning.pool_id,
        "owner": owner(),
        "process": os.getpid(),
        "desired": state.desired,
        "slots": dispatch.slots,
        "queued": dispatch.queued + dispatch.waiting,
        "running": dispatch.running,
        "cost": cost.accumulated,
        "hourly_rate": cost.hourly_rate,
        "seconds": cost.seconds,
        "nodes": [_node_facts(running, shell, calls[shell.seat]) for shell in shells],
    }


def node_address(running: Running, node: int) -> dict[str, Any]:
    """
    Return how a node's machine is reached, with the key that logs in there: for its user's programs alone.

    Args:
        running: The pool.
        node: The node.

    Raises:
        NodeLostError: If it has no machine at this moment.
    """
    for shell in running.instances.shells:
        if shell.index == node and not shell.leaving and shell.instance.address is not None:
            address = shell.instance.address
            kind = "local" if isinstance(address, LocalAddress) else "ssh"
            return {"node": node, "machine": shell.instance.id, kind: attrs.asdict(address)}
    raise NodeLostError(f"Node {node} has no machine that can be reached now.", pool=running.name, node=node)


def _node_facts(running: Running, shell: NodeShell, calls: int) -> dict[str, Any]:
    instance, places = shell.instance, running.state.nodes
    leaves = shell.leaving or shell.index not in places
    rented_for = asyncio.get_running_loop().time() - shell.rented.at if shell.rented.at else None
    return {
        "node": shell.index,
        "machine": instance.id,
        "provider": instance.provider,
        "type": instance.instance_type,
        "region": instance.region,
        "state": "leaving" if leaves else places[shell.index].status.value,
        "hourly_rate": instance.hourly_rate,
        "spot": instance.spot,
        "launched_at": None if rented_for is None else time.time() - rented_for,
        "calls": calls,
    }
