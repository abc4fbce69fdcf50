"""The faults of EC2 on the page of faults."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import skyward as sky
from tests.clouds.aws.cloud import ROOT, Cloud, cloud
from tests.clouds.provoking import USUAL, Fault, Row, add, provoke as provoked
from tests.waiting import until

__all__ = ["FAULTS", "TITLE", "cloud", "provoke"]

TITLE = "AWS"
MACHINE = "m7i.large"


def _request(name: str, action: str, effect: str = "error", works: bool = True, **facts: Any) -> Fault:
    """Describe a fault that a request has to meet."""
    options = facts.pop("options", {})
    return Fault(name, lambda aws: aws.fault(action, effect, **facts), works=works, options=options, meets=True)


def _launch(name: str, effect: str = "error", **facts: Any) -> Fault:
    return _request(name, "RunInstances", effect, **facts)


def _image(name: str, action: str, *, kept: bool = False, effect: str = "error", **facts: Any) -> Fault:
    """Describe a fault of a machine image; of one that is kept already, or of one that is to be made."""

    def provoke(aws: Cloud) -> None:
        if kept:
            _pool(aws, {"warm_image": True})
            until(aws.images)
        aws.fault(action, effect, **facts)

    return Fault(name, provoke, options={"warm_image": True}, meets=True)


def _pool(aws: Cloud, options: Mapping[str, Any]) -> None:
    with sky.Compute(provider=aws.provider(), **{"machine": MACHINE, **USUAL, **options}) as pool:
        assert 5 == (add(2, 3) >> pool)


def _forbid(aws: Cloud) -> None:
    page = (ROOT / "docs" / "aws.md").read_text(encoding="utf-8")
    aws.allow(sorted(set(re.findall(r'"((?:ec2|pricing|ssm):\w+)"', page)) - {"ec2:RunInstances"}))


_SPOT, _SHORT = {"allocation": "spot"}, {"bootstrap_timeout": 8}
_NOT_ALLOWED = {"code": "UnauthorizedOperation", "status": 403, "message": "You are not authorized."}
_PROTECTED = "The instance may not be terminated."
_QUOTA = "You have requested more vCPU capacity than your current vCPU limit"

FAULTS = (
    Fault("no credentials", works=False, without=("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")),
    Fault("wrong credentials", works=False, provider={"access_key": "AKIAWRONG", "secret_key": "wrong"}),
    Fault("a permission is missing", _forbid, works=False),
    _launch("quota", code="VcpuLimitExceeded", message=_QUOTA, works=False),
    _launch("no capacity in one zone", code="InsufficientInstanceCapacity", status=500, times=1),
    _launch("no capacity anywhere", code="InsufficientInstanceCapacity", status=500, works=False),
    Fault("price over the cap", works=False, options={"max_hourly_cost": 0.001}),
    Fault("unknown region", works=False, provider={"region": "us-eest-1"}),
    Fault("unknown instance type", works=False, options={"machine": "m7i.lrge"}),
    _launch("429 with Retry-After", code="TooManyRequests", status=429, times=2, headers={"Retry-After": "1"}),
    _launch("429 without Retry-After", code="TooManyRequests", status=429, times=2),
    _launch("503, throttled", code="RequestLimitExceeded", status=503, times=2),
    _launch("500, twice", code="InternalError", status=500, times=2),
    _launch("500, always", code="InternalError", status=500, works=False),
    _launch("the answer to a launch is cut off, twice", "cut", times=2),
    _launch("the answers to all launches are cut off", "cut"),
    _launch("boots late", "slow", seconds=2.0, times=1),
    _launch("never boots", "never", times=1, options={"provision_timeout": 4}),
    _launch("boots, but refuses SSH", "refuse", times=1, options=_SHORT),
    _launch("boots with another host key", "key", times=1),
    _launch("dies at boot", "dies", times=1),
    Fault("dies during bootstrap", when="InstanceProvisioned"),
    Fault("spot machine taken during bootstrap", options=_SPOT, when="InstanceProvisioned"),
    Fault("spot machine taken during a task", options=_SPOT, when="task"),
    Fault("spot machine taken during exit", options=_SPOT, when="PoolStopping"),
    _request("terminate fails twice", "TerminateInstances", code="InternalError", status=500, times=2),
    _request("terminate is not allowed", "TerminateInstances", works=False, **_NOT_ALLOWED),
    _request("terminate is refused for good", "TerminateInstances", code="OperationNotPermitted", message=_PROTECTED),
    _request("terminate is cut off twice", "TerminateInstances", "cut", times=2),
    _image("an image may not be made", "CreateImage", code="UnauthorizedOperation", status=403),
    _image("no room for an image", "CreateImage", code="SnapshotLimitExceeded"),
    _image("an image vanishes before the launch", "RunInstances", code="InvalidAMIID.NotFound", times=1, kept=True),
    _image("an image does not boot", "RunInstances", effect="dies", times=1, kept=True),
    Fault("the API's clock is an hour ahead", lambda aws: aws.skew(3600.0)),
    Fault("the API's clock is an hour behind", lambda aws: aws.skew(-3600.0)),
    _request(
        "the API refuses our clock",
        "DescribeInstanceTypes",
        code="RequestExpired",
        message="Request has expired.",
        works=False,
    ),
    Fault("lists trail launches by two seconds", lambda aws: aws.lag(2.0)),
)
"""All that is in the section, in its order."""


def provoke(fault: Fault, cloud: Cloud) -> Row:
    """Have one fault happen to a pool, and see what comes of it."""
    return provoked(fault, cloud, MACHINE)
