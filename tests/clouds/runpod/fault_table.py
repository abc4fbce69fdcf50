"""The faults of RunPod on the page of faults."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import skyward as sky
from tests.clouds.provoking import Fault, Row, everywhere, provoke as provoked
from tests.clouds.runpod.cloud import Cloud, cloud
from tests.clouds.runpod.server import FULL

__all__ = ["FAULTS", "TITLE", "cloud", "provoke"]

TITLE = "RunPod"

_LAUNCH, _DELETE, _LIST, _CPUS = "POST /v2/pods", "DELETE /v2/pods/*", "GET /v2/pods", "GET /v2/catalog/cpus"
_HTML = "<html><title>502 Bad Gateway</title></html>"
_MACHINE = "cpu5c:2"


def _request(name: str, on: str, effect: str = "answer", works: bool = True, **facts: Any) -> Fault:
    """Describe a fault that a request has to meet."""
    options = facts.pop("options", {})
    provider = facts.pop("provider", {})

    def provoke(runpod: Cloud) -> None:
        runpod.fault(on, effect, **facts)

    return Fault(name, provoke, works=works, options=options, provider=provider, meets=True)


def _refused(name: str, on: str, status: int, detail: str, **facts: Any) -> Fault:
    return _request(name, on, status=status, body={"title": "Refused", "status": status, "detail": detail}, **facts)


def _stop(runpod: Cloud, row: Mapping[str, Any]) -> None:
    runpod.stop(row["id"])


_SHORT = {"bootstrap_timeout": 8}
# Both of RunPod's clouds sell it, so that there is another offer.
_TWO = {"options": {"accelerator": "RTX 4090", "machine": None}, "provider": {"cloud": "all"}}
_DATA = {"id": "agv6w2qcg7", "name": "data", "dataCenter": "EU-RO-1"}
_ELSEWHERE: dict[str, Any] = {"options": {"volumes": [sky.Disk("data")]}, "provider": {"data_center": "US-KS-2"}}
_UNKNOWN = {"volumes": [sky.Disk("dta")]}
_BALANCE = "Your account balance is too low to run this pod."

FAULTS = (
    everywhere(Fault("no key", works=False, without=("RUNPOD_API_KEY",))),
    everywhere(Fault("wrong key", works=False, provider={"api_key": "wrong-key"})),
    _refused("the key may only read", _LAUNCH, 403, "access denied", works=False),
    _refused("balance exhausted", _LAUNCH, 402, _BALANCE, works=False),
    _refused("spend limit", _LAUNCH, 400, "You have reached your spend limit.", works=False),
    _refused("no capacity in one cloud (400)", _LAUNCH, 400, FULL, times=1, **_TWO),
    _refused(
        "one cloud is closed to the account (403)",
        _LAUNCH,
        403,
        "access denied",
        where={"cloud": "COMMUNITY"},
        # The other one is more than twice as dear, and not rented without permission.
        options={**_TWO["options"], "max_hourly_cost": 5.0},
        provider=_TWO["provider"],
    ),
    _refused("no capacity anywhere (400)", _LAUNCH, 400, FULL, works=False),
    _refused("a rule is broken that nobody knows (400)", _LAUNCH, 400, "Moon is full.", works=False),
    Fault("sold out in the catalogue", lambda runpod: runpod.stock(cpu5c=0), works=False),
    everywhere(Fault("price over the cap", works=False, options={"max_hourly_cost": 0.001})),
    Fault("unknown data centre", works=False, provider={"data_center": "EU-R0-1"}),
    Fault("unknown disk", lambda runpod: runpod.volumes(_DATA), works=False, options=_UNKNOWN),
    Fault("disk of another data centre", lambda runpod: runpod.volumes(_DATA), works=False, **_ELSEWHERE),
    Fault("unknown kind of machine", works=False, options={"machine": "cpu9x:2"}),
    Fault("unknown image", works=False, provider={"container_image": "me/missing-image:1"}),
    Fault("spot is asked for", works=False, options={"allocation": "spot"}),
    everywhere(
        _refused("429 with Retry-After", _LAUNCH, 429, "rate limit exceeded", times=2, headers={"Retry-After": "1"})
    ),
    everywhere(_request("429 in plain text", _LAUNCH, status=429, body="Too many requests", times=2)),
    everywhere(
        _refused(
            "429, back in an hour", _LAUNCH, 429, "rate limit exceeded", headers={"Retry-After": "3600"}, works=False
        )
    ),
    everywhere(_request("503 in HTML, always", _LAUNCH, status=503, body=_HTML, works=False)),
    everywhere(_refused("500 to a launch, once", _LAUNCH, 500, "upstream error", times=1)),
    everywhere(_refused("500 to lists, twice", _LIST, 500, "upstream error", times=2)),
    everywhere(_request("the answer to a launch is cut off", _LAUNCH, "cut", times=1)),
    everywhere(_request("the answers to all launches are cut off", _LAUNCH, "cut")),
    everywhere(_request("the image is pulled late", _LAUNCH, "slow", seconds=2.0, times=1)),
    everywhere(_request("never starts", _LAUNCH, "never", times=1, options={"provision_timeout": 4})),
    everywhere(_request("runs, but refuses SSH", _LAUNCH, "refuse", times=1, options=_SHORT)),
    everywhere(_request("runs with another host key", _LAUNCH, "key", times=1)),
    everywhere(_request("ends in ERROR", _LAUNCH, "dies", times=1)),
    everywhere(Fault("deleted by somebody during bootstrap", when="InstanceProvisioned")),
    everywhere(Fault("deleted by somebody during a task", when="task")),
    everywhere(Fault("deleted by somebody during exit", when="PoolStopping")),
    Fault("stopped, and billed for its disk, during bootstrap", when="InstanceProvisioned", take=_stop),
    Fault("stopped, and billed for its disk, during a task", when="task", take=_stop),
    everywhere(_refused("delete fails twice", _DELETE, 500, "upstream error", times=2)),
    everywhere(_refused("delete is refused for good", _DELETE, 403, "access denied", where={"own": False})),
    everywhere(_request("delete is cut off twice", _DELETE, "cut", times=2)),
    _refused("delete conflicts twice (409)", _DELETE, 409, "pod is locked", times=2),
    everywhere(Fault("lists trail launches by two seconds", lambda runpod: runpod.lag(2.0))),
    _request("HTML instead of the catalogue", _CPUS, status=200, body=_HTML, works=False),
    _request("HTML instead of a list, twice", _LIST, status=200, body=_HTML, times=2, works=False),
    _request("the answer to a launch has no id", _LAUNCH, "edit", body={"id": None}, times=1),
    _request("a price as text", _CPUS, "edit", body={"price": {"securePerVcpu": "0.04"}}, works=False),
    _request("a price that is null", _CPUS, "edit", body={"price": {"securePerVcpu": None}}, works=False),
    _request("lists without pods, once", _LIST, "edit", body={"pods": None}, times=1, works=False),
    _request("a new status word, twice", _LIST, "edit", body={"status": "HIBERNATED"}, times=2),
    Fault("20 calls in four seconds are allowed", lambda runpod: runpod.policy(20, 4.0)),
)
"""All that is in the section, in its order."""


def provoke(fault: Fault, cloud: Cloud) -> Row:
    """Have one fault happen to a pool, and see what comes of it."""
    return provoked(fault, cloud, _MACHINE)
