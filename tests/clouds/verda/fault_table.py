"""The faults that Verda can have, for `tests.clouds.fault_page`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import skyward as sky
from tests.clouds import provoking
from tests.clouds.provoking import Fault, Row, everywhere
from tests.clouds.verda.cloud import MACHINE, Cloud, cloud

__all__ = ["FAULTS", "TITLE", "cloud", "provoke"]

TITLE = "Verda"


def _request(name: str, on: str, effect: str = "answer", works: bool = True, **facts: Any) -> Fault:
    """Describe a fault that a request has to meet."""
    options, provider = facts.pop("options", {}), facts.pop("provider", {})
    if "code" in facts:
        facts["body"] = {"code": facts.pop("code"), "message": facts.pop("message", "Refused on purpose")}
    over = facts.pop("over", False)
    return Fault(
        name,
        lambda verda: verda.fault(on, effect, **facts),
        works=works,
        options=options,
        provider=provider,
        meets=True,
        over=over,
    )


def _launch(name: str, effect: str = "answer", **facts: Any) -> Fault:
    return _request(name, "POST /v1/instances", effect, **facts)


def _end(name: str, effect: str = "answer", **facts: Any) -> Fault:
    return _request(name, "PUT /v1/instances", effect, **facts)


def _leaving_disks(verda: Cloud) -> None:
    """Have Verda overlook what was said about disks when a machine was rented."""
    verda.ask("keeps_disks", True)


_DATA: dict[str, Any] = {"volumes": [sky.Disk("data")]}


def _in_use(verda: Cloud) -> None:
    verda.ask("attached", {"volume": verda.volume(), "instance": "77"})
    verda.fault("GET /v1/instances/77", status=200, body={"id": "77", "status": "running"})


def _disk(name: str, provoke: Callable[[Cloud], Any] = Cloud.volume, **facts: Any) -> Fault:
    """Describe what is wrong with a disk of the user's."""
    return Fault(name, provoke, works=False, **{"options": _DATA, **facts})


_SPOT, _SHORT = {"allocation": "spot"}, {"bootstrap_timeout": 8}
_NONE = {"status": 503, "code": "service_unavailable", "message": "Not enough resources to deploy it"}
_BROKEN = {"status": 500, "code": "server_error"}
_HTML = "<html><body>Bad gateway</body></html>"
_HERE = {"region": "FIN-01"}

FAULTS = (
    everywhere(Fault("no credentials", works=False, without=("VERDA_CLIENT_ID", "VERDA_CLIENT_SECRET"))),
    everywhere(Fault("wrong credentials", works=False, provider={"client_id": "somebody", "client_secret": "wrong"})),
    _request("wrong credentials, as a 400", "POST /v1/oauth2/token", status=400, code="invalid_request", works=False),
    _request("a token is refused, once", "GET /v1/instances", status=401, code="unauthorized_request", times=1),
    _request(
        "tokens are refused, always", "GET /v1/instance-types", status=401, code="unauthorized_request", works=False
    ),
    Fault("tokens last for two seconds", lambda verda: verda.ask("token_life", 2)),
    Fault("no credit", lambda verda: verda.ask("balance", 0), works=False),
    _launch("credit runs out at the launch", status=402, code="insufficient_funds", works=False),
    _launch("quota", status=400, code="invalid_request", message="GPU quota exceeded", works=False),
    _launch("no capacity in one location", where={"location_code": "FIN-01"}, **_NONE),
    _launch("no capacity anywhere", works=False, **_NONE),
    Fault("no capacity after the launch", lambda verda: verda.ask("next_status", "no_capacity")),
    Fault("waits for capacity", lambda verda: verda.ask("next_status", "pending"), options={"provision_timeout": 4}),
    everywhere(Fault("price over the cap", works=False, options={"max_hourly_cost": 0.0001})),
    Fault("unknown location", works=False, provider={"region": "FIN-1"}),
    _disk("unknown disk", options={"volumes": [sky.Disk("dta")]}),
    _disk("disk of another location", provider={"region": "FIN-02"}),
    _disk("disk in use", _in_use),
    _disk("two nodes, and a disk for one", options={**_DATA, "nodes": 2}),
    Fault("unknown instance type", works=False, options={"machine": "CPU.4V.16"}),
    Fault("unknown image", works=False, provider={"image": "ubuntu-42.04"}),
    everywhere(
        _launch("429 with Retry-After", status=429, body="Too many requests", times=2, headers={"Retry-After": "1"})
    ),
    everywhere(_launch("429 without Retry-After", status=429, body="Too many requests", times=2)),
    _launch("503 that is an outage, once", status=503, body=_HTML, times=1),
    everywhere(_launch("500, once", times=1, **_BROKEN)),
    everywhere(_launch("500, always", works=False, provider=_HERE, **_BROKEN)),
    everywhere(_launch("the answer to a launch is cut off", "cut", times=1)),
    everywhere(_launch("the answers to all launches are cut off", "cut")),
    _launch("the answer to a launch is no id", status=200, body=_HTML, times=1),
    Fault("tags are refused", lambda verda: verda.ask("refuses", {"path": "", "tags": True})),
    Fault("keys are kept at the other path", lambda verda: verda.ask("refuses", {"path": "sshkeys", "tags": False})),
    _request("the answer to a key is cut off", "POST /v1/sshkeys", "cut", times=1),
    _request("scripts cannot be made", "POST /v1/scripts", works=False, provider=_HERE, **_BROKEN),
    everywhere(_launch("boots late", "slow", seconds=2.0, times=1)),
    everywhere(_launch("never boots", "never", times=1, options={"provision_timeout": 4})),
    everywhere(_launch("boots, but refuses SSH", "refuse", times=1, options=_SHORT)),
    everywhere(_launch("boots with another host key", "key", times=1, options=_SHORT)),
    everywhere(_launch("dies at boot", "dies", times=1)),
    Fault("its startup script runs late", lambda verda: verda.ask("script_delay", 2.0)),
    everywhere(Fault("dies during bootstrap", when="InstanceProvisioned")),
    everywhere(Fault("spot machine taken during bootstrap", options=_SPOT, when="InstanceProvisioned")),
    everywhere(Fault("spot machine taken during a task", options=_SPOT, when="task")),
    everywhere(Fault("spot machine taken during exit", options=_SPOT, when="PoolStopping")),
    Fault("disk of a spot machine that was taken is left", _leaving_disks, options=_SPOT, when="InstanceProvisioned"),
    everywhere(_end("an end fails twice", times=2, **_BROKEN)),
    everywhere(
        _end(
            "an end is refused until the pool was left",
            status=403,
            code="insufficient_permissions",
            works=False,
            over=True,
            options={"shutdown_timeout": 10},
        )
    ),
    everywhere(_end("an end is cut off twice", "cut", times=2)),
    _end(
        "an end is refused, as the machine is being provisioned",
        status=403,
        code="forbidden_action",
        message="Can't discontinue a provisioning instance",
        times=3,
    ),
    _end(
        "an end fails within a success (207)",
        status=207,
        body=[{"action": "delete", "instanceId": "it", "status": "error", "error": "Busy", "statusCode": 500}],
        times=2,
    ),
    _end("an end is confirmed, and nothing is done", status=204, times=2),
    everywhere(_request("the list of machines is HTML, twice", "GET /v1/instances", status=200, body=_HTML, times=2)),
    _request(
        "a machine is in a state that nobody knows, for a moment",
        "GET /v1/instances",
        "edit",
        body={"status": "zombie"},
        times=2,
    ),
    _request("what is sold is HTML", "GET /v1/instance-types", status=200, body=_HTML, works=False),
    _request("prices vanished", "GET /v1/instance-types", "edit", body={"price_per_hour": None}, works=False),
    _request("prices are words", "GET /v1/instance-types", "edit", body={"price_per_hour": "ask us"}, works=False),
    everywhere(Fault("lists trail launches by two seconds", lambda verda: verda.lag(2.0))),
)
"""All that is in the section, in its order."""


def provoke(fault: Fault, verda: Cloud) -> Row:
    """
    Have one fault happen to a pool, and see what comes of it; keys and scripts that are left count as instances.

    Args:
        fault: The fault.
        verda: The cloud; calm, and with its variables in the environment.
    """
    row = provoking.provoke(fault, verda, MACHINE)
    verda.ask("drop", ["data"])
    left = verda.left()
    assert [] == left["keys"] + left["scripts"], "a key or a script was left"
    return row
