"""The tables of open pools and their nodes that `sky top` prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from skyward.cli.terminal import table
from skyward.model.fields.span import span

__all__ = ["NODES", "POOLS", "shown"]

POOLS = ("POOL", "PROCESS", "NODES", "SLOTS", "RUNNING", "QUEUED", "COST", "PRICE", "FOR")
NODES = ("POOL", "NODE", "MACHINE", "PROVIDER", "TYPE", "STATE", "CALLS", "PRICE", "AGE")


def shown(pools: Sequence[Mapping[str, Any]], *, now: float) -> str:
    """
    Return the tables of pools and of their nodes.

    Args:
        pools: What each pool says of itself.
        now: The time, in seconds since 1970.

    >>> node = {"node": 0, "machine": "node-0", "provider": "local", "state": "ready", "calls": 1}
    >>> pool = {"pool": "pool", "process": 7, "desired": 1, "slots": 2, "running": 1, "queued": 0, "nodes": [node]}
    >>> print(shown([pool], now=0.0).splitlines()[1])
    pool  7        1 of 1  2      1        0       $0    $0/h   ?
    """
    rows = [_pool(facts) for facts in pools]
    nodes = [_node(facts["pool"], node, now) for facts in pools for node in facts.get("nodes", ())]
    return "\n\n".join(table([head, *body], indent="") for head, body in ((POOLS, rows), (NODES, nodes)) if body)


def _pool(facts: Mapping[str, Any]) -> tuple[str, ...]:
    ready = sum(node["state"] == "ready" for node in facts.get("nodes", ()))
    return (
        str(facts["pool"]),
        str(facts.get("process", "?")),
        f"{ready} of {facts.get('desired', '?')}",
        str(facts.get("slots", "?")),
        str(facts.get("running", "?")),
        str(facts.get("queued", "?")),
        f"${facts.get('cost', 0.0):.4g}",
        f"${facts.get('hourly_rate', 0.0):.4g}/h",
        span(facts["seconds"]) if facts.get("seconds") else "?",
    )


def _node(pool: str, node: Mapping[str, Any], now: float) -> tuple[str, ...]:
    rate, since = node.get("hourly_rate"), node.get("launched_at")
    return (
        str(pool),
        str(node["node"]),
        str(node["machine"]),
        str(node["provider"]),
        str(node.get("type") or "?"),
        str(node["state"]),
        str(node.get("calls", "?")),
        "?" if rate is None else f"${rate:.4g}/h{' spot' if node.get('spot') else ''}",
        "?" if since is None else span(now - since),
    )
