"""Machines and their disks end for good: a success may hide a failure, and a disk may outlive its machine."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from skyward.provider import Instance, InstanceState, Tags, end_for_good, optional, text
from skyward_verda.account import Account
from skyward_verda.failure import read_list, unless_gone
from skyward_verda.instances import pool_of, state, tags_of

__all__ = ["PROVISIONING", "end_machines", "loose", "remove_loose", "volume_as_instance", "volumes"]

PROVISIONING = 900.0
"""Seconds in which an end is asked for again and again, because no machine can be deleted that is not made yet."""

_DETACHING = 30.0
_GOING = ("deleting", "deleted")
_HINT = "Delete them in Verda's console, or type: sky down"


async def end_machines(account: Account, ids: Sequence[str]) -> None:
    """
    End machines with the disks that they boot from, and return when Verda lists none of them any more.

    Args:
        account: Who asks.
        ids: Which; one that is gone already is no error.

    Raises:
        ProvisionError: If one may still be billed.
    """
    if not ids:
        return
    rows: dict[str, Mapping[str, Any]] = {}

    async def left(those: Sequence[str]) -> Collection[str]:
        rows.clear()
        rows.update({text(row, "id"): row for row in await account.rows()})
        return [each for each in those if each in rows and state(rows[each]) is not InstanceState.ENDED]

    async def end(name: str) -> None:
        row = rows[name]
        if row.get("status") != "deleting":
            await unless_gone(account.api.put("/instances", json=_order(row), subject=name))

    await end_for_good(await left(ids), end=end, left=left, provider="verda", hint=_HINT, within=PROVISIONING)


def _order(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the order to delete a machine with its disk; others, that the user attached, are detached."""
    disk = optional(row, "os_volume_id", text)
    # Named, it goes at once; not named, it would lie in the trash.
    with_disk = {} if disk is None else {"volume_ids": [disk], "delete_permanently": True}
    return {"id": [row["id"]], "action": "delete", **with_disk}


async def volumes(account: Account) -> list[Mapping[str, Any]]:
    """
    List the disks of our machines.

    Args:
        account: Who asks.

    Raises:
        SkywardError: If there is no answer: that is no empty list.
    """
    rows = await account.api.get("/volumes", read=read_list)
    return [row for row in rows if isinstance(row, Mapping) and pool_of(str(row.get("name", ""))) is not None]


def loose(disks: Sequence[Mapping[str, Any]], machines: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """
    Return the disks whose machines are gone: a spot machine that is reclaimed may leave its disk, which is billed.

    Args:
        disks: Our disks.
        machines: Our machines.

    >>> there = {"id": "i-4", "hostname": "skyward-a1-0123456789abcdef-4", "status": "running"}
    >>> loose([{"name": "skyward-a1-0123456789abcdef-3"}], [there])
    [{'name': 'skyward-a1-0123456789abcdef-3'}]
    """
    there = {row["hostname"] for row in machines if state(row) is not InstanceState.ENDED}
    return [disk for disk in disks if disk["name"] not in there and disk.get("status") not in _GOING]


async def remove_loose(account: Account, pools: Collection[str]) -> None:
    """
    Delete the disks of pools whose machines are gone.

    Args:
        account: Who asks.
        pools: The pools.

    Raises:
        ProvisionError: If one is left, which is billed.
    """
    disks = [row for row in await volumes(account) if pool_of(row["name"]) in pools]
    # In this order: a machine that is rented in between has its disk in no list yet.
    found = loose(disks, await account.rows()) if disks else []

    async def left(_those: Sequence[str]) -> Collection[str]:
        return {row["id"] for row in await volumes(account) if row.get("status") not in _GOING}

    async def delete(name: str) -> None:
        await unless_gone(account.api.delete(f"/volumes/{name}", json={"is_permanent": True}, also=(404,)))

    ids = [text(row, "id") for row in found]
    await end_for_good(ids, end=delete, left=left, provider="verda", hint=_HINT, within=_DETACHING)


def volume_as_instance(disk: Mapping[str, Any]) -> Instance:
    """
    Describe a disk that outlived its machine, as what is left of that.

    Args:
        disk: The disk.
    """
    tags = tags_of({"hostname": disk["name"]}) or Tags(pool_id="")
    return Instance(
        id=text(disk, "id"),
        node=tags.node or 0,
        provider="verda",
        state=InstanceState.ENDING,
        instance_type="volume",
        region=optional(disk, "location", text),
        tags=tags,
    )
