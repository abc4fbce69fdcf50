"""The machines there are: listed by tag, described as instances, ended for good."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from attrs import field, frozen

from skyward.provider import (
    CredentialsError,
    Instance,
    InstanceState,
    SkywardError,
    SSHAddress,
    Tags,
    end_for_good,
    facts,
    host_key,
    identified,
    life,
    unless,
)
from skyward_aws.failure import code_of, coded
from skyward_aws.region import Region
from skyward_aws.tagging import tags_in, to_tags

if TYPE_CHECKING:
    from skyward.provider import KeyPair

__all__ = [
    "FLEET_TAG",
    "Door",
    "alive",
    "check_end",
    "described",
    "is_of_fleet",
    "label",
    "listed",
    "machines",
    "node_of",
    "owned",
    "renew",
    "state",
    "tags_of",
    "terminate",
]

_log = logging.getLogger("skyward.provider.aws")

FLEET_TAG = "skyward:fleet"
"""Tag of machines that were rented many at once, which have one host key together."""

_STATES = {
    "pending": InstanceState.PENDING,
    "running": InstanceState.RUNNING,
    "shutting-down": InstanceState.ENDING,
    "stopping": InstanceState.ENDING,
    # Its disk is still billed.
    "stopped": InstanceState.ENDING,
    "terminated": InstanceState.ENDED,
}
_ENDS = (InstanceState.ENDING, InstanceState.ENDED)
_UNKNOWN = "InvalidInstanceID"
_UNBILLED = ("shutting-down", "terminated")
_KNOWN_AFTER = (0.5, 1.0, 2.0, 4.0, 0.0)


@frozen(kw_only=True)
class Door:
    """
    Say how machines are reached.

    Args:
        user: Who logs in.
        port: Port of SSH.
        key: The pool's key, which they let in, and know us by.
        tunnel: The command that leads to a machine, in which `{id}` stands for its id; none if it has a public address.
    """

    user: str
    port: int
    key: KeyPair = field(repr=False, eq=False)
    tunnel: tuple[str, ...] = ()


def tags_of(row: Mapping[str, Any]) -> Tags | None:
    """Read what is written on a machine; None if it is none of ours."""
    return Tags.from_strings(tags_in(row))


def node_of(row: Mapping[str, Any]) -> int | None:
    """Return the node that a machine was rented for, as far as it says so."""
    tags = tags_of(row)
    return None if tags is None else tags.node


def state(row: Mapping[str, Any]) -> InstanceState:
    """
    Return what AWS says about a machine's life; a word that is not known counts as ending.

    >>> state({"InstanceId": "i-1", "State": {"Name": "shutting-down"}}).name
    'ENDING'
    """
    word = facts("aws", row.get("InstanceId"))("State", lambda: row["State"]["Name"])
    return life(word, _STATES, provider="aws", instance=row.get("InstanceId"))


def label(token: str, node: int | None) -> str:
    """
    Name a machine within its pool, for its host key.

    Args:
        token: The request that it was rented for.
        node: Its node; None for machines rented together, which share one user data.
    """
    return f"{token}/{'fleet' if node is None else node}"


def is_of_fleet(row: Mapping[str, Any]) -> bool:
    """Return whether a machine was rented together with others, by one call."""
    return FLEET_TAG in tags_in(row)


def described(
    row: Mapping[str, Any],
    region: str,
    door: Door | None = None,
    *,
    rate: float | None = None,
    on_demand: float | None = None,
) -> Instance:
    """
    Describe a machine; a fact that cannot be read is not known, with a warning.

    Args:
        row: The machine, as `DescribeInstances` describes it.
        region: Where it is.
        door: How it is reached; None if it is not.
        rate: What it costs, in USD per hour.
        on_demand: What it would cost on demand, in USD per hour.
    """
    fact = facts("aws", row["InstanceId"])
    tags = tags_of(row) or Tags(pool_id="")
    node, now, private = tags.node or 0, state(row), row.get("PrivateIpAddress")
    ip = row.get("PublicIpAddress") or private
    address = None
    if door is not None and now is InstanceState.RUNNING:
        host = row["InstanceId"] if door.tunnel else row.get("PublicIpAddress")
        address = _address(door, host, label(tags.token, None if is_of_fleet(row) else node))
        # An address may come a little later than the state.
        now = now if address is not None else InstanceState.PENDING
    return Instance(
        id=row["InstanceId"],
        node=node,
        provider="aws",
        state=now,
        address=address,
        instance_type=row.get("InstanceType"),
        region=region,
        spot=row.get("InstanceLifecycle") == "spot",
        hourly_rate=rate,
        on_demand_rate=on_demand,
        ip=ip,
        private_ip=private,
        tags=tags if tags.pool_id else None,
        launched_at=fact("LaunchTime", partial(_seconds, row)),
        reason=fact("StateReason", partial(_reason, row)) if now in _ENDS else None,
    )


def _seconds(row: Mapping[str, Any]) -> float | None:
    """Return when a machine was launched, in seconds since 1970."""
    return float(row["LaunchTime"].timestamp()) if "LaunchTime" in row else None


def _reason(row: Mapping[str, Any]) -> str | None:
    """Return why a machine ends, in EC2's words, which open with its code such as `Server.InternalError`."""
    why = row.get("StateReason", {})
    reason: str | None = why.get("Message") or why.get("Code") or row.get("StateTransitionReason") or None
    return reason


def _address(door: Door, host: str | None, name: str) -> SSHAddress | None:
    if not host:
        return None
    return SSHAddress(
        host=host,
        proxy_command=tuple(word.replace("{id}", host) for word in door.tunnel),
        port=door.port,
        user=door.user,
        private_key=door.key.private,
        host_key=host_key(door.key, name).public,
    )


async def listed(region: Region, **tags: str) -> list[Mapping[str, Any]]:
    """
    List machines by their tags, whatever their state.

    Args:
        region: Where.
        tags: What the tags `skyward:…` of these names must hold; `"*"` for anything.
    """
    there = await _described(region, {f"tag:skyward:{name}": [value] for name, value in tags.items()})
    return identified(there, lambda each: each["InstanceId"], provider="aws", field="InstanceId")


async def machines(region: Region, pool_id: str) -> dict[str, Mapping[str, Any]]:
    """
    List the machines of a pool, those among them that were rented here and that listings lack as yet.

    Args:
        region: Where.
        pool_id: The pool.
    """
    inventory, asked_at = region.inventory, time.monotonic()

    def tagged(row: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a row with its tags, which may lag behind."""
        known = inventory.created.get(row["InstanceId"])
        return row if known is None or node_of(row) is not None else {**row, "Tags": known.row.get("Tags", ())}

    rows = {row["InstanceId"]: tagged(row) for row in await listed(region, pool=pool_id)}
    return await inventory.completed(rows, asked_at, pool_id=pool_id)


async def owned(region: Region) -> list[Instance]:
    """
    List all machines of Skyward in a region that may cost money, whichever client rented them.

    Args:
        region: Where.
    """
    found = [described(row, region.name) for row in await listed(region, pool="*")]
    return [each for each in found if each.state is not InstanceState.ENDED]


async def renew(region: Region, ids: Sequence[str], expires_at: float) -> None:
    """
    Write a later expiry on machines.

    Args:
        region: Where they are.
        ids: Which; one that is gone already is no error.
        expires_at: Seconds since 1970.
    """
    tags = to_tags({"skyward:expires": str(int(expires_at))})

    async def write(resources: Sequence[str]) -> Any:
        return await region.call("CreateTags", ", ".join(resources), Resources=resources, Tags=tags)

    # One that is gone keeps the others from being written on.
    if await unless(coded(_UNKNOWN), write(ids)) is None and (there := await _states(region, ids)):
        await write([*there])


async def terminate(region: Region, ids: Sequence[str]) -> None:
    """
    End machines, and return when AWS says that they are billed no longer.

    Args:
        region: Where they are.
        ids: Which; one that is gone already is no error.

    Raises:
        ProvisionError: If one may still be billed.
    """
    inventory = region.inventory

    async def end(*those: str) -> None:
        try:
            order = region.call("TerminateInstances", ", ".join(those), InstanceIds=[*those])
            await unless(coded(_UNKNOWN), order)
        except SkywardError as error:
            if code_of(error) != "OperationNotPermitted":
                raise
            # Its protection does not go while we wait.
            raise CredentialsError(error.message, provider="aws", hint=error.hint) from error

    async def left(those: Sequence[str]) -> list[str]:
        there = await _states(region, those)
        # One whose state is not reported is billed, as far as we know.
        billed = [each for each in there if there[each] not in _UNBILLED]
        billed += [each for each in those if each not in there and inventory.unlisted(each)]
        inventory.forget(set(those).difference(billed))
        return billed

    if not ids:
        return
    with contextlib.suppress(SkywardError):
        # An id that is not known keeps all the others alive, so each is asked for by itself then.
        await end(*ids)
        ids = await left(ids)
    hint = f"Type: aws ec2 terminate-instances --region {region} --instance-ids {{ids}}"
    await end_for_good(ids, end=end, left=left, provider="aws", hint=hint)


async def check_end(region: Region, ids: Sequence[str]) -> None:
    """
    Check that machines may be ended, by a dry run; where AWS does not tell, nothing is said.

    Args:
        region: Where they are.
        ids: Which; the permission may depend on their tags.

    Raises:
        CredentialsError: If they may not be ended.
    """
    for wait in _KNOWN_AFTER:
        try:
            await region.call("TerminateInstances", ", ".join(ids), InstanceIds=list(ids), DryRun=True)
        except SkywardError as error:
            if isinstance(error, CredentialsError):
                raise CredentialsError(
                    f"This account may rent machines and not end them, so none is used. {error.message}",
                    provider="aws",
                    hint=error.hint,
                ) from error
            if not code_of(error).startswith(_UNKNOWN):
                # A dry run that is allowed is an error as well.
                _log.debug("aws.dry_run code=%s", code_of(error))
                return
        await asyncio.sleep(wait)


async def alive(region: Region, ids: Sequence[str]) -> list[str]:
    """
    Return those of some machines that exist, and are not being ended.

    Args:
        region: Where they are.
        ids: Which.
    """
    return [name for name, word in (await _states(region, ids)).items() if word not in _UNBILLED]


async def _states(region: Region, ids: Sequence[str]) -> dict[str, str | None]:
    """Return the states of those of some machines that AWS knows."""
    there = [each for each in await _described(region, {"instance-id": ids}) if "InstanceId" in each]
    return {each["InstanceId"]: each.get("State", {}).get("Name") for each in there}


async def _described(region: Region, where: Mapping[str, Sequence[str]]) -> list[Mapping[str, Any]]:
    rows = await region.pages("DescribeInstances", "Reservations", where)
    return [each for row in rows for each in row.get("Instances", ())]
