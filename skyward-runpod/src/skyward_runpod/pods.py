"""The pods there are, described as instances."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from skyward.provider import (
    Instance,
    InstanceState,
    Misread,
    SSHAddress,
    facts,
    host_key,
    life,
    moment,
    number,
    optional,
    text,
    whole,
)
from skyward_runpod.naming import tags_of

if TYPE_CHECKING:
    from skyward.provider import Cluster

__all__ = ["described", "label", "state"]


_STATES = {
    "PROVISIONING": InstanceState.PENDING,
    "STARTING": InstanceState.PENDING,
    "RUNNING": InstanceState.RUNNING,
    # Its disk is still billed, and it is never started again.
    "EXITED": InstanceState.ENDING,
    "ERROR": InstanceState.ENDING,
    "TERMINATED": InstanceState.ENDED,
}
_DOING = {"PROVISIONING": "allocation", "STARTING": "image pull"}


def state(row: Mapping[str, Any]) -> InstanceState:
    """
    Return what RunPod says about a pod's life; a word that is not known, or none, counts as ending.

    Args:
        row: The pod.

    >>> state({"id": "p1", "status": "EXITED"}).name
    'ENDING'
    """
    return life(row.get("status"), _STATES, provider="runpod", instance=row.get("id"))


def label(token: str, node: int) -> str:
    """
    Name a pod within its pool, for its host key.

    Args:
        token: The request that it was rented for.
        node: Its node.
    """
    return f"{token}/{node}"


def described(row: Mapping[str, Any], cluster: Cluster | None = None) -> Instance:
    """
    Describe a pod of ours; a fact that cannot be understood is not known, with a warning.

    Args:
        row: The pod, as RunPod describes it.
        cluster: The pool it is of, if it is to be reached.

    Raises:
        Misread: If it has no id, or is none of ours.
    """
    tags = tags_of(row)
    if tags is None:
        raise Misread("'name' is none of ours")
    pod = text(row, "id")
    fact = facts("runpod", pod)
    node, now, doing, address = tags.node or 0, state(row), _DOING.get(str(row.get("status"))), None
    # It is found nowhere else: what `runtime` says may be missing in lists, and the proxy forwards nothing.
    host = fact("ssh.direct.host", lambda: optional(row, "ssh.direct.host", text))
    port = None if host is None else fact("ssh.direct.port", lambda: whole(row, "ssh.direct.port"))
    if now is InstanceState.RUNNING and host is not None and port is not None and cluster is not None:
        address = SSHAddress(
            host=host,
            port=port,
            user="root",
            private_key=cluster.key.private,
            host_key=host_key(cluster.key, label(tags.token, node)).public,
        )
    if now is InstanceState.RUNNING and address is None and cluster is not None:
        now, doing = InstanceState.PENDING, "public port"
    offer = cluster.offer if cluster is not None else None
    cost = fact("cost", lambda: optional(row, "cost", number))
    return Instance(
        id=pod,
        node=node,
        provider="runpod",
        state=now,
        address=address,
        instance_type=offer.instance_type if offer is not None else fact("gpu", lambda: _machine(row)),
        region=fact("dataCenterId", lambda: optional(row, "dataCenterId", text)),
        hourly_rate=cost or (offer.on_demand_price if offer is not None else None),
        on_demand_rate=offer.on_demand_price if offer is not None else cost or None,
        ip=host,
        private_ip=fact("globalNetworking.ip", lambda: optional(row, "globalNetworking.ip", text)),
        tags=tags,
        launched_at=fact("createdAt", lambda: optional(row, "createdAt", moment)),
        doing=doing,
        reason=f"its status is {row.get('status')}" if now is InstanceState.ENDING else None,
    )


def _machine(row: Mapping[str, Any]) -> str | None:
    """Name what was rented as an offer does."""
    for kind, many in (("gpu", "count"), ("cpu", "vcpuCount")):
        name = optional(row, f"{kind}.id", text)
        if name is not None:
            count = optional(row, f"{kind}.{many}", whole) or 1
            return name if count == 1 else f"{name}:{count}"
    return None
