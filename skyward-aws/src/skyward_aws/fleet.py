"""Rent many machines by one call: an instant fleet over all zones, of a template that says what a machine is."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from skyward.provider import SkywardError, unless
from skyward_aws.failure import code_of, coded, is_refusal
from skyward_aws.instances import FLEET_TAG, listed, node_of, state
from skyward_aws.order import Order, machine, tags
from skyward_aws.region import Region
from skyward_aws.tagging import tagged

__all__ = ["MANY", "drop_templates", "fleet", "named", "rent_together"]

_log = logging.getLogger("skyward.provider.aws")

MANY = 9
"""The least number of machines for one fleet; up to eight launches are under way at the same time anyway."""

STALE = 600.0
"""Seconds after which a template is one that its client left behind."""

LOOKS = (1.0, 3.0, 6.0)
"""Seconds between listings for the machines of a call whose answer was lost; listings lag behind."""

_OF_NODE = ("Name", "skyward:node")
_KNOWN_AFTER = (0.5, 1.0, 2.0, 4.0, 8.0)


async def rent_together(
    region: Region, order: Order, nodes: Sequence[int], is_over: Callable[[], bool]
) -> dict[int, Mapping[str, Any]]:
    """
    Rent machines for nodes by one call, as far as EC2 has them and lets the account do so.

    Args:
        region: Where.
        order: What.
        nodes: Which have none yet.
        is_over: Returns whether nothing more is to be rented.

    Returns:
        A machine for each node that got one; none where the account may make no fleets, or templates.

    Raises:
        SkywardError: If no answer came, so that it is unknown what was rented.
    """
    template = ""
    try:
        template = await _template(region, order, nodes)
        if is_over():
            return {}
        answer = await region.call("CreateFleet", _subject(order), **fleet(order, nodes, template))
    except SkywardError as error:
        if is_refusal(error):
            _log.info("aws.no_fleet code=%s: each machine is rented by itself", code_of(error))
            return {}
        return await _found(region, order, nodes, error)
    finally:
        if template:
            await _drop(region, template)
    for each in answer.get("Errors", ()):
        _log.info("aws.fleet code=%s: %s", each.get("ErrorCode"), each.get("ErrorMessage"))
    fresh = [(name, entry) for entry in answer.get("Instances", ()) for name in entry["InstanceIds"]]
    rows = {node: _row(order, node, name, entry) for node, (name, entry) in zip(nodes, fresh, strict=False)}
    return await named(region, order, rows)


def fleet(order: Order, nodes: Sequence[int], template: str) -> dict[str, Any]:
    """
    Return the parameters of `CreateFleet`.

    On the spot market EC2 takes the zones where it takes back the fewest machines, of these the cheapest.

    Args:
        order: What is rented.
        nodes: For which nodes.
        template: Id of the template.
    """
    request = order.request
    kind = request.cluster.offer.instance_type
    places: list[dict[str, Any]] = [
        {"InstanceType": kind, "SubnetId": order.place.subnets[zone]} for zone in order.zones
    ]
    if request.spot:
        options: dict[str, Any] = {"SpotOptions": {"AllocationStrategy": "price-capacity-optimized"}}
    else:
        options = {"OnDemandOptions": {"AllocationStrategy": "prioritized"}}
        places = [{**place, "Priority": float(rank)} for rank, place in enumerate(places)]
    market = "spot" if request.spot else "on-demand"
    return {
        "ClientToken": _token(order, nodes, template),
        "Type": "instant",
        "LaunchTemplateConfigs": [
            {"LaunchTemplateSpecification": {"LaunchTemplateId": template, "Version": "1"}, "Overrides": places}
        ],
        "TargetCapacitySpecification": {"TotalTargetCapacity": len(nodes), "DefaultTargetCapacityType": market},
        **options,
        "TagSpecifications": tagged(["fleet"], tags(request, None)),
    }


async def named(region: Region, order: Order, rows: Mapping[int, Mapping[str, Any]]) -> dict[int, Mapping[str, Any]]:
    """
    Write on machines which nodes they are for, which a fleet cannot.

    Args:
        region: Where.
        order: What was rented.
        rows: The machines, by node.
    """
    request = order.request
    found: dict[int, Mapping[str, Any]] = {}
    for node, row in rows.items():
        given = [each for each in tags(request, node) if each["Key"] in _OF_NODE]
        found[node] = {**row, "Tags": [*(each for each in row["Tags"] if each["Key"] not in _OF_NODE), *given]}
        rate = order.rates.get(row["Placement"]["AvailabilityZone"])
        region.inventory.add(row["InstanceId"], found[node], request, rate)
    await asyncio.gather(*(_write(region, row["InstanceId"], row["Tags"]) for row in found.values()))
    return found


async def drop_templates(region: Region) -> None:
    """
    Delete the orphaned templates of dead clients; they cost nothing, and hold a host key.

    Args:
        region: Where; without the permission, they stay.
    """
    try:
        rows = await region.pages("DescribeLaunchTemplates", "LaunchTemplates", {"tag-key": ["skyward:pool"]})
    except SkywardError as error:
        _log.info("aws.templates code=%s", code_of(error))
        return
    for row in rows:
        if time.time() - row["CreateTime"].timestamp() >= STALE:
            await _drop(region, row["LaunchTemplateId"])


def _token(order: Order, nodes: Iterable[int], more: str = "") -> str:
    request = order.request
    words = (request.token, *nodes, *order.zones, request.spot, order.place.group, more)
    return hashlib.sha256("/".join(map(str, words)).encode()).hexdigest()


def _subject(order: Order) -> str:
    return f"{order.request.cluster.offer.instance_type} in {', '.join(order.zones)}"


async def _template(region: Region, order: Order, nodes: Sequence[int]) -> str:
    """Make the template, and return its id."""
    said = machine(order, None)
    said["UserData"] = base64.b64encode(said["UserData"].encode()).decode()
    token = _token(order, nodes)
    answer = await region.call(
        "CreateLaunchTemplate",
        _subject(order),
        ClientToken=token,
        LaunchTemplateName=f"skyward-{token[:32]}",
        LaunchTemplateData=said,
        TagSpecifications=tagged(["launch-template"], tags(order.request, None)),
    )
    return str(answer["LaunchTemplate"]["LaunchTemplateId"])


async def _drop(region: Region, template: str) -> None:
    drop = region.call("DeleteLaunchTemplate", template, LaunchTemplateId=template)
    try:
        await unless(coded("InvalidLaunchTemplate"), drop)
    except SkywardError as error:
        _log.warning("The launch template %s in %s stays, which costs nothing: %s", template, region, error)


async def _found(
    region: Region, order: Order, nodes: Sequence[int], error: SkywardError
) -> dict[int, Mapping[str, Any]]:
    """Find what was rented by a call without an answer; all of it, or it is not known."""
    for wait in LOOKS:
        await asyncio.sleep(wait)
        rows = await listed(region, pool=order.request.cluster.pool_id, token=order.request.token, fleet="yes")
        unknown = [row for row in rows if node_of(row) is None and state(row).name in ("PENDING", "RUNNING")]
        if len(unknown) == len(nodes):
            return await named(region, order, dict(zip(nodes, unknown, strict=True)))
    raise error


def _row(order: Order, node: int, name: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    """Describe a machine that was just rented as `DescribeInstances` will."""
    put = entry.get("LaunchTemplateAndOverrides", {}).get("Overrides", {})
    by_subnet = {subnet: zone for zone, subnet in order.place.subnets.items()}
    zone = by_subnet.get(put.get("SubnetId", "")) or put.get("AvailabilityZone") or order.zones[0]
    return {
        "InstanceId": name,
        "State": {"Name": "pending"},
        "InstanceType": order.request.cluster.offer.instance_type,
        "Placement": {"AvailabilityZone": zone},
        "LaunchTime": datetime.now(UTC),
        "Tags": [*tags(order.request, node), {"Key": FLEET_TAG, "Value": "yes"}],
        **({"InstanceLifecycle": "spot"} if order.request.spot else {}),
    }


async def _write(region: Region, name: str, written: Iterable[Mapping[str, str]]) -> None:
    """Write on one machine what a fleet could not; without it, only this client knows its node."""
    own = [each for each in written if each["Key"] in _OF_NODE]
    for wait in _KNOWN_AFTER:
        try:
            await region.call("CreateTags", name, Resources=[name], Tags=own)
        except SkywardError as error:
            if not code_of(error).startswith("InvalidInstanceID"):
                _log.warning("%s in %s bears no number of its node: %s", name, region, error)
                return
            await asyncio.sleep(wait)
        else:
            return
