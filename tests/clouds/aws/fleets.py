"""
Launch templates and instant fleets in the test cloud, which moto has not whole: it drops most of what a template says.

A fleet's machines are launched one by one, each as `RunInstances` would launch it, and meet the faults of that.
"""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Callable
from xml.sax.saxutils import escape

from attrs import evolve, field, frozen

from tests.clouds.aws.faults import Request

DATA = "LaunchTemplateData."
_SPACE = "http://ec2.amazonaws.com/doc/2016-11-15/"

Launch = Callable[[Request], "tuple[str, str] | str"]
"""Launches one machine: its id, or the code and message of a refusal."""


@frozen
class Template:
    """One launch template."""

    name: str
    region: str
    said: dict[str, str]
    tags: dict[str, str]
    at: float = field(factory=time.time)


class Templates:
    """Keep launch templates, and launch fleets of them."""

    def __init__(self) -> None:
        self.all: dict[str, Template] = {}
        self._tokens: dict[tuple[str, str], str] = {}

    def make(self, request: Request) -> bytes | tuple[str, str]:
        """Answer `CreateLaunchTemplate`."""
        token = (request.region, request.params.get("ClientToken", ""))
        name = self._tokens.get(token)
        if name is None:
            wanted = request.params["LaunchTemplateName"]
            if any((wanted, request.region) == (each.name, each.region) for each in self.all.values()):
                return "InvalidLaunchTemplateName.AlreadyExistsException", "Launch template name already in use."
            name = f"lt-{secrets.token_hex(9)[:17]}"
            said = {key[len(DATA) :]: text for key, text in request.params.items() if key.startswith(DATA)}
            self.all[name] = Template(wanted, request.region, said, _tags(request, "launch-template"))
            self._tokens[token] = name
        if name not in self.all:
            return "InvalidLaunchTemplateId.NotFound", f"The specified launch template, {name}, does not exist."
        return _answer("CreateLaunchTemplate", f"<launchTemplate>{self._xml(name)}</launchTemplate>")

    def told(self, request: Request) -> bytes:
        """Answer `DescribeLaunchTemplates`."""
        keys = request.filtered("tag-key")
        found = (
            name
            for name, each in self.all.items()
            if each.region == request.region and (not keys or set(keys) & set(each.tags))
        )
        items = "".join(f"<item>{self._xml(name)}</item>" for name in found)
        return _answer("DescribeLaunchTemplates", f"<launchTemplates>{items}</launchTemplates>")

    def drop(self, request: Request) -> bytes | tuple[str, str]:
        """Answer `DeleteLaunchTemplate`."""
        name = request.params["LaunchTemplateId"]
        if name not in self.all:
            return "InvalidLaunchTemplateId.NotFound", f"The specified launch template, {name}, does not exist."
        text = self._xml(name)
        del self.all[name]
        return _answer("DeleteLaunchTemplate", f"<launchTemplate>{text}</launchTemplate>")

    def fleet(self, request: Request, launch: Launch, prices: Callable[[str], float]) -> bytes | tuple[str, str]:
        """
        Answer `CreateFleet`.

        Args:
            request: The request.
            launch: Launches one machine.
            prices: Tells what a machine of the fleet's type costs in a subnet on the spot market.
        """
        params = request.params
        assert params["Type"] == "instant", params["Type"]
        config = "LaunchTemplateConfigs.1."
        name = params[f"{config}LaunchTemplateSpecification.LaunchTemplateId"]
        assert params[f"{config}LaunchTemplateSpecification.Version"] in ("1", "$Default", "$Latest")
        template = self.all.get(name)
        if template is None or template.region != request.region:
            return "InvalidLaunchTemplateId.NotFound", f"The specified launch template, {name}, does not exist."
        places = _places(params, f"{config}Overrides.")
        market = params["TargetCapacitySpecification.DefaultTargetCapacityType"]
        if market == "spot":
            assert params["SpotOptions.AllocationStrategy"] == "price-capacity-optimized"
            places.sort(key=lambda place: prices(place["SubnetId"]))
        else:
            assert params["OnDemandOptions.AllocationStrategy"] == "prioritized"
            places.sort(key=lambda place: float(place.get("Priority", "inf")))
        got: dict[str, list[str]] = {}
        refused: dict[str, tuple[str, str]] = {}
        for number in range(int(params["TargetCapacitySpecification.TotalTargetCapacity"])):
            for place in (each for each in places if each["SubnetId"] not in refused):
                answer = launch(_one(request, template, place, market, number))
                if isinstance(answer, str):
                    got.setdefault(place["SubnetId"], []).append(answer)
                    break
                refused[place["SubnetId"]] = answer
        kinds = {place["SubnetId"]: place["InstanceType"] for place in places}

        def put(subnet: str) -> str:
            over = f"<subnetId>{subnet}</subnetId><instanceType>{kinds[subnet]}</instanceType>"
            template = f"<launchTemplateSpecification><launchTemplateId>{name}</launchTemplateId>"
            template += "<version>1</version></launchTemplateSpecification>"
            return (
                f"<launchTemplateAndOverrides>{template}<overrides>{over}</overrides></launchTemplateAndOverrides>"
                f"<lifecycle>{market}</lifecycle>"
            )

        rows = (
            f"<item>{put(subnet)}<instanceIds>{''.join(f'<item>{each}</item>' for each in names)}</instanceIds>"
            f"<instanceType>{kinds[subnet]}</instanceType></item>"
            for subnet, names in got.items()
        )
        errors = (
            f"<item>{put(subnet)}<errorCode>{code}</errorCode><errorMessage>{escape(text)}</errorMessage></item>"
            for subnet, (code, text) in refused.items()
        )
        return _answer(
            "CreateFleet",
            f"<fleetId>fleet-{secrets.token_hex(8)}</fleetId><errorSet>{''.join(errors)}</errorSet>"
            f"<fleetInstanceSet>{''.join(rows)}</fleetInstanceSet>",
        )

    def _xml(self, name: str) -> str:
        each = self.all[name]
        at = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(each.at))
        tags = "".join(f"<item><key>{escape(k)}</key><value>{escape(v)}</value></item>" for k, v in each.tags.items())
        return (
            f"<launchTemplateId>{name}</launchTemplateId><launchTemplateName>{each.name}</launchTemplateName>"
            f"<createTime>{at}</createTime><defaultVersionNumber>1</defaultVersionNumber>"
            f"<latestVersionNumber>1</latestVersionNumber><tagSet>{tags}</tagSet>"
        )


def _places(params: dict[str, str], front: str) -> list[dict[str, str]]:
    """Read the overrides of a fleet."""
    found: dict[int, dict[str, str]] = {}
    for key, text in params.items():
        if read := re.fullmatch(re.escape(front) + r"(\d+)\.(\w+)", key):
            found.setdefault(int(read[1]), {})[read[2]] = text
    return [found[number] for number in sorted(found)]


def _one(request: Request, template: Template, place: dict[str, str], market: str, number: int) -> Request:
    """Write the launch of one of a fleet's machines as a request of its own."""
    spot = {"InstanceMarketOptions.MarketType": "spot"} if market == "spot" else {}
    more = {
        "Action": "RunInstances",
        "Version": "2016-11-15",
        "ClientToken": f"{number}-{request.params['ClientToken']}"[:64],
        "MinCount": "1",
        "MaxCount": "1",
        "InstanceType": place["InstanceType"],
        "NetworkInterface.1.SubnetId": place["SubnetId"],
    }
    return evolve(request, action="RunInstances", params={**template.said, **more, **spot})


def _tags(request: Request, kind: str) -> dict[str, str]:
    """Read what is to be written on what a request makes."""
    params = request.params
    for key, text in params.items():
        if key.startswith("TagSpecification.") and key.endswith(".ResourceType") and text == kind:
            front = f"{key.removesuffix('ResourceType')}Tag."
            names = [each for each in params if each.startswith(front) and each.endswith(".Key")]
            return {params[each]: params[f"{each.removesuffix('Key')}Value"] for each in names}
    return {}


def _answer(action: str, inner: str) -> bytes:
    return f'<?xml version="1.0"?><{action}Response xmlns="{_SPACE}">{inner}</{action}Response>'.encode()
