"""Rent pods: one call for each node, nothing twice, and every one with its keys, its name and an end of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil
from typing import Any

from attrs import field, frozen

from skyward.provider import (
    CallBatch,
    DockerImage,
    Instance,
    LaunchRequest,
    container_start,
    host_key,
    runpod_base,
    text,
)
from skyward_runpod.account import KEY, Account
from skyward_runpod.failure import PODS
from skyward_runpod.market import kind_of, most_disk_gb
from skyward_runpod.naming import TAGS, name_of, tags_of, written
from skyward_runpod.pods import described, label, state

__all__ = ["BASE_CUDA", "DISK_GB", "Order", "body", "image_for", "launch"]

DISK_GB = 50
"""Default disk of a container in GB, as far as there may be: an image of PyTorch takes twenty."""

BASE_CUDA = "12.8"
"""The version of CUDA in what pods with NVIDIA's GPUs are made from, where none is chosen."""


# The key is the pod's own: it is good for this pod and nothing else.
_CURL = 'curl -fsS -m 20 -X DELETE -H "Authorization: Bearer $RUNPOD_API_KEY" "@URL@/v2/pods/$RUNPOD_POD_ID"'
_PYTHON = """python3 -c 'import os, urllib.request as r; e = os.environ; \
r.urlopen(r.Request("@URL@/v2/pods/" + e["RUNPOD_POD_ID"], method="DELETE", \
headers={"Authorization": "Bearer " + e["RUNPOD_API_KEY"]}), timeout=20)'"""
_END = f'{_CURL} || {_PYTHON} || runpodctl pod delete "$RUNPOD_POD_ID" || runpodctl remove pod "$RUNPOD_POD_ID"'


@frozen(kw_only=True)
class Order:
    """
    Hold what all pods of one launch have in common.

    Args:
        request: What core asks for.
        image: What they are made from; None for RunPod's base image with the CUDA that their GPUs want.
        disk_gb: Room in their container, in GB.
        registry: Id of the credential that the image is pulled with.
        networked: Whether they join the network between data centres.
        mounts: Where they find network volumes, by the volumes' ids.
    """

    request: LaunchRequest
    image: DockerImage | None = None
    disk_gb: float | None = None
    registry: str | None = None
    networked: bool = False
    mounts: Mapping[str, str] = field(factory=dict)


def image_for(order: Order) -> DockerImage:
    """
    Return what pods are made from.

    Args:
        order: What is rented.
    """
    if order.image is not None:
        return order.image
    name = order.request.cluster.offer.accelerator_name or ""
    return runpod_base(cuda=BASE_CUDA) if name and not name.startswith("AMD") else runpod_base()


def body(order: Order, node: int, url: str) -> dict[str, Any]:
    """
    Write the body of the call that rents a pod.

    Args:
        order: What is rented.
        node: The node it is for.
        url: Where the API is, for the pod's own end.
    """
    request, cluster = order.request, order.request.cluster
    offer, image = cluster.offer, image_for(order)
    kind, count = kind_of(offer.instance_type)
    usual = DISK_GB if offer.accelerator_name else min(DISK_GB, most_disk_gb(kind, count))
    start = container_start(
        cluster.key.public,
        host_key(cluster.key, label(request.token, node)),
        end=_END.replace("@URL@", url),
        hidden=KEY.variables,
        ttl=cluster.spec.ttl,
    )
    found: dict[str, Any] = {
        "name": name_of(request.tags_of(node)),
        "image": image.tag,
        "cloud": offer.zone or "SECURE",
        "args": f"sh -c '{start.script}'",
        "disk": ceil(cluster.spec.disk_gb or order.disk_gb or usual),
        # Without these two no client can reach it, whatever the image does.
        "ports": ["22/tcp"],
        "startSsh": True,
        # RunPod writes the account's keys there, unless something else has written.
        "env": {**start.env, TAGS: written(request.tags_of(node)), "PUBLIC_KEY": cluster.key.public},
    }
    if offer.accelerator_name:
        # A driver that is too old cannot run what is in the image.
        nvidia = image.cuda is not None and not offer.accelerator_name.startswith("AMD")
        found["gpu"] = {"id": kind, "count": count, **({"minCudaVersion": _minor(image.cuda)} if nvidia else {})}
    else:
        found["cpu"] = {"id": kind, "vcpuCount": count}
    if places := offer.data.get("places"):
        found["dataCenterIds"] = list(places)
    if order.registry is not None:
        found["registry"] = order.registry
    if order.networked:
        found["globalNetworking"] = True
    if order.mounts:
        found["mounts"] = {"network": [{"volumeId": name, "path": path} for name, path in order.mounts.items()]}
    return found


async def launch(account: Account, order: Order) -> Sequence[Instance]:
    """
    Rent a pod for each node, as far as there are any.

    Args:
        account: Who rents.
        order: What.

    Returns:
        An instance for each node that got one.

    Raises:
        CapacityError: If there is none.
        QuotaError: If the account may have none.
        ConfigError: If RunPod takes nothing that is asked for.
    """
    request, inventory = order.request, account.inventory
    offer = request.cluster.offer
    subject = f"{offer.instance_type}, {(offer.zone or 'SECURE').capitalize()} Cloud"

    async def create(nodes: Sequence[int]) -> Mapping[int, Mapping[str, Any]]:
        [node] = nodes
        json = body(order, node, account.url)
        with inventory.creating(request):
            row: Mapping[str, Any] = await account.api.post(PODS, json=json, subject=subject, read=_made)
        inventory.add(row["id"], row, request)
        return {node: row}

    before = await inventory.of_token(request, tags_of, state)
    rows = await CallBatch(create).rented(request.nodes, before=before)
    return account.api.understood(
        list(rows.values()), lambda rows: [described(row, request.cluster) for row in rows], f"POST {PODS}"
    )


def _made(answer: Any) -> Mapping[str, Any]:
    text(answer, "id")
    state(answer)
    row: Mapping[str, Any] = answer
    return row


def _minor(version: str | None) -> str:
    return ".".join((version or "").split(".")[:2])
