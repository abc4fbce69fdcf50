"""The faults of Vast.ai on the page of faults."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import skyward as sky
from tests.clouds.provoking import Fault, Row, everywhere, provoke as provoked
from tests.clouds.vastai.cloud import Cloud, cloud

__all__ = ["FAULTS", "TITLE", "cloud", "provoke"]

TITLE = "Vast.ai"

_MACHINE = "1x RTX 4090"
_SEARCH, _LAUNCH, _DESTROY, _LIST = (
    "POST /api/v0/bundles/",
    "PUT /api/v0/asks/*",
    "DELETE /api/v0/instances/*",
    "GET /api/v1/instances/",
)
_SPOT = {"allocation": "spot"}
# Of these there is one listing, so that all are soon tried.
_ONE = {"machine": "8x H100 SXM"}
_SHORT = {"bootstrap_timeout": 8}
_HTML = "<html><title>502 Bad Gateway</title></html>"
_FAST = "API requests too frequent endpoint threshold=4.5"
_GONE = "error 410/3907: no_such_ask Instance type is no longer available."


def _request(name: str, on: str, effect: str = "answer", works: bool = True, **facts: Any) -> Fault:
    """Describe a fault that a request has to meet."""
    options = facts.pop("options", {})
    return Fault(name, lambda vast: vast.fault(on, effect, **facts), works=works, options=options, meets=True)


def _refused(name: str, on: str, status: int, error: str, msg: str = "no", **facts: Any) -> Fault:
    return _request(name, on, status=status, body={"success": False, "error": error, "msg": msg}, **facts)


def _lost(vast: Cloud, row: Mapping[str, Any]) -> None:
    vast.contract(row["id"], status="offline", says="no heartbeat")


def _broken(vast: Cloud, row: Mapping[str, Any]) -> None:
    vast.contract(row["id"], status="created", says="Error: OCI runtime create failed: no such runtime")


def _disk(name: str, **facts: Any) -> Fault:
    """Describe what is wrong with a disk of the user's, which is on the machine of the first listings."""
    return Fault(name, lambda vast: vast.volumes(v7=3100007), works=False, **facts)


FAULTS = (
    everywhere(Fault("no key", works=False, without=("VAST_API_KEY",))),
    Fault("wrong key, answered with 404", works=False, provider={"api_key": "wrong-key"}),
    _refused("the key may not rent", _LAUNCH, 403, "forbidden", works=False),
    _disk("unknown disk", options={"volumes": [sky.Disk("17")]}),
    _disk(
        "disk on a machine that has nothing of the kind",
        options={"machine": "8x H100 SXM", "volumes": [sky.Disk("7")]},
    ),
    Fault("no credit left", lambda vast: vast.credit(0.0), works=False),
    _request("no credit left, in plain text", _LAUNCH, status=402, body="Insufficient credits", works=False),
    _refused("the searches of the day are used up", _SEARCH, 429, "search_quota_exceeded", works=False),
    _refused("a listing is gone, twice", _LAUNCH, 410, "no_such_ask", _GONE, times=2),
    _refused("a listing is not known, once", _LAUNCH, 404, "invalid_args", _GONE, times=1),
    _refused("all listings are gone", _LAUNCH, 410, "no_such_ask", _GONE, works=False, options=_ONE),
    _request(
        "every bid is too low, and leaves a contract",
        _SEARCH,
        "edit",
        works=False,
        body={"min_bid": 0.001},
        options={**_ONE, **_SPOT},
    ),
    _request(
        "every bid is too low, and on demand will do",
        _SEARCH,
        "edit",
        body={"min_bid": 0.001},
        options={**_ONE, "allocation": "spot-if-available"},
    ),
    everywhere(Fault("price over the cap", works=False, options={"max_hourly_cost": 0.001})),
    Fault("a region that is no country", works=False, options={"region": "us-east-1"}),
    Fault("a country without listings", works=False, provider={"region": "IS"}),
    Fault("unknown kind of machine", works=False, options={"machine": "1x RTX 4900"}),
    everywhere(
        _request("429 with Retry-After", _LAUNCH, status=429, body=_FAST, times=1, headers={"Retry-After": "1"})
    ),
    everywhere(_request("429 in plain text", _LAUNCH, status=429, body=_FAST, times=2)),
    everywhere(_request("429 to lists, twice", _LIST, status=429, body=_FAST, times=2)),
    everywhere(_refused("500 to a launch, once", _LAUNCH, 500, "oh", times=1)),
    everywhere(_request("503 in HTML to launches, always", _LAUNCH, status=503, body=_HTML, works=False, options=_ONE)),
    _refused("a success that is none, once", _LAUNCH, 200, "oh", times=1),
    everywhere(_request("the answer to a launch is cut off", _LAUNCH, "cut", times=1)),
    everywhere(_request("the answers to all launches are cut off", _LAUNCH, "cut")),
    _request("the answer to a launch has no number", _LAUNCH, "edit", body={"new_contract": None}, times=1),
    everywhere(_request("boots late", _LAUNCH, "slow", seconds=2.0, times=1)),
    everywhere(_request("never boots", _LAUNCH, "never", times=1, options={"provision_timeout": 10})),
    everywhere(_request("boots, but refuses SSH", _LAUNCH, "refuse", times=1, options=_SHORT)),
    everywhere(_request("the container exits at once", _LAUNCH, "dies", times=1)),
    Fault("the container cannot be made", when="InstanceLaunched", take=_broken),
    everywhere(Fault("destroyed by somebody during bootstrap", when="InstanceProvisioned")),
    everywhere(Fault("destroyed by somebody during a task", when="task")),
    Fault("the host is offline during a task", when="task", take=_lost),
    everywhere(Fault("outbid during bootstrap", options=_SPOT, when="InstanceProvisioned")),
    Fault("outbid during a task", options=_SPOT, when="task"),
    everywhere(Fault("outbid during exit", options=_SPOT, when="PoolStopping")),
    everywhere(_refused("destroy fails twice", _DESTROY, 500, "oh", times=2)),
    everywhere(_refused("destroy is refused for good", _DESTROY, 403, "forbidden", where={"own": False})),
    everywhere(_request("429 to destroy, twice", _DESTROY, status=429, body=_FAST, times=2)),
    _refused("destroy says that it is no success, twice", _DESTROY, 200, "oh", times=2),
    everywhere(_request("destroy is cut off twice", _DESTROY, "cut", times=2)),
    everywhere(Fault("lists trail launches by two seconds", lambda vast: vast.lag(2.0))),
    everywhere(_refused("500 to lists, twice", _LIST, 500, "oh", times=2)),
    _request("lists without instances, twice", _LIST, "edit", body={"instances": None}, times=2),
    everywhere(_request("HTML instead of a list, twice", _LIST, status=200, body=_HTML, times=2)),
    _request("a new state word, twice", _LIST, "edit", body={"actual_status": "hibernating"}, times=2),
    _request("HTML instead of listings", _SEARCH, status=200, body=_HTML, works=False),
    _request("a price as text", _SEARCH, "edit", body={"dph_total": "0.40"}, works=False),
    _request("listings without prices", _SEARCH, "edit", body={"dph_total": None}, works=False),
)
"""All that is in the section, in its order."""


def provoke(fault: Fault, cloud: Cloud) -> Row:
    """Have one fault happen to a pool, and see what comes of it; each with a key, and a pace, of its own."""
    os.environ.update(cloud.environment())
    return provoked(fault, cloud, _MACHINE)
