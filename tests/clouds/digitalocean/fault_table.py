"""The faults of DigitalOcean on the page of faults."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import skyward as sky
from tests.clouds.digitalocean.cloud import CPU, Cloud, cloud
from tests.clouds.provoking import Fault, Row, everywhere, provoke as provoked

__all__ = ["FAULTS", "TITLE", "cloud", "provoke"]

TITLE = "DigitalOcean"

_LAUNCH, _DELETE, _LIST, _SIZES = "POST /v2/droplets", "DELETE /v2/droplets/*", "GET /v2/droplets", "GET /v2/sizes"
_HTML = "<html><title>502 Bad Gateway</title></html>"


def _request(name: str, on: str, effect: str = "answer", works: bool = True, **facts: Any) -> Fault:
    """Describe a fault that a request has to meet."""
    given = {name: facts.pop(name, {}) for name in ("options", "provider")}
    over = facts.pop("over", False)
    return Fault(name, lambda ocean: ocean.fault(on, effect, **facts), works=works, meets=True, over=over, **given)


def _refused(name: str, on: str, status: int, message: str, **facts: Any) -> Fault:
    return _request(name, on, status=status, body={"id": "refused", "message": message}, **facts)


def _switch_off(ocean: Cloud, row: Mapping[str, Any]) -> None:
    ocean.ask(f"shutdown?id={row['id']}")


_DATA: dict[str, Any] = {"volumes": [sky.Disk("data")]}


def _in_use(ocean: Cloud) -> None:
    ocean.volume(droplets=[77])
    ocean.fault("GET /v2/droplets/77", status=200, body={"droplet": {"id": 77}})


def _disk(name: str, works: bool = False, provoke: Callable[[Cloud], None] = Cloud.volume, **facts: Any) -> Fault:
    """Describe what is wrong with a disk of the user's."""
    return Fault(name, provoke, works=works, **{"options": _DATA, **facts})


_SHORT, _ONE, _HOUR = {"bootstrap_timeout": 8}, {"region": "nyc3"}, {"Retry-After": "3600"}
_QUOTA = "creating this/these droplet(s) will exceed your droplet limit"
_NONE_LEFT = "Size is not available in this region."
_NOT_ALLOWED = "You are not authorized to perform this operation"
_LOCKED = "Droplet already has a pending event."

FAULTS = (
    everywhere(Fault("no token", works=False, without=("DIGITALOCEAN_TOKEN",))),
    everywhere(Fault("wrong token", works=False, provider={"token": "dop_v1_wrong"})),
    _refused("a scope is missing", _LAUNCH, 403, "You are not authorized to perform this operation", works=False),
    Fault("the account is locked", lambda ocean: ocean.set(status="locked"), works=False),
    _refused("quota", _LAUNCH, 422, _QUOTA, works=False),
    _refused("no capacity in one region", _LAUNCH, 422, _NONE_LEFT, times=1),
    _refused("no capacity anywhere", _LAUNCH, 422, _NONE_LEFT, works=False),
    _refused("a refusal that nobody knows, once", _LAUNCH, 422, "Moon is full", times=1),
    _refused("a refusal that nobody knows, always", _LAUNCH, 422, "Moon is full", works=False),
    everywhere(Fault("price over the cap", works=False, options={"max_hourly_cost": 0.001})),
    Fault("unknown region", works=False, provider={"region": "nyc33"}),
    _disk("unknown disk", options={"volumes": [sky.Disk("dta")]}),
    _disk("disk of another region", provider={"region": "ams3"}),
    _disk("disk in use", provoke=_in_use),
    _disk("two nodes, and a disk for one", options={**_DATA, "nodes": 2}),
    Fault("unknown size", works=False, options={"machine": "s-2vcpu-4tb"}),
    Fault("spot is asked for", works=False, options={"allocation": "spot"}),
    everywhere(_refused("429 with Retry-After", _LAUNCH, 429, "Too many", times=2, headers={"Retry-After": "1"})),
    everywhere(_refused("429 without Retry-After", _LAUNCH, 429, "Too many", times=2)),
    everywhere(_request("429 in plain text", _LAUNCH, status=429, body="API rate limit exceeded", times=2)),
    everywhere(_refused("429, back in an hour", _LAUNCH, 429, "Too many", headers=_HOUR, works=False, provider=_ONE)),
    everywhere(_request("503 in HTML, always", _LAUNCH, status=503, body=_HTML, works=False, provider=_ONE)),
    everywhere(_refused("500 to a launch, once", _LAUNCH, 500, "Server Error", times=1)),
    everywhere(_refused("500 to lists, twice", _LIST, 500, "Server Error", times=2)),
    _refused("500 to the key, twice", "POST /v2/account/keys", 500, "Server Error", times=2),
    everywhere(_request("the answer to a launch is cut off", _LAUNCH, "cut", times=1)),
    everywhere(_request("the answers to all launches are cut off", _LAUNCH, "cut")),
    _request("the answer to the key is cut off", "POST /v2/account/keys", "cut", times=1),
    everywhere(_request("boots late", _LAUNCH, "slow", seconds=2.0, times=1)),
    everywhere(_request("never boots", _LAUNCH, "never", times=1, options={"provision_timeout": 4})),
    everywhere(_request("boots, but refuses SSH", _LAUNCH, "refuse", times=1, options=_SHORT)),
    everywhere(_request("boots with another host key", _LAUNCH, "key", times=1)),
    _request("the launch is taken, and fails", _LAUNCH, "dies", times=1),
    everywhere(Fault("deleted by somebody during bootstrap", when="InstanceProvisioned")),
    everywhere(Fault("deleted by somebody during a task", when="task")),
    everywhere(Fault("deleted by somebody during exit", when="PoolStopping")),
    Fault("switched off during bootstrap", when="InstanceProvisioned", take=_switch_off),
    Fault("switched off during a task", when="task", take=_switch_off),
    everywhere(_refused("delete fails twice", _DELETE, 500, "Server Error", times=2)),
    everywhere(
        _refused("delete is refused until the pool was left", _DELETE, 403, _NOT_ALLOWED, works=False, over=True)
    ),
    everywhere(_request("delete is cut off twice", _DELETE, "cut", times=2)),
    _refused("delete is refused three times, as it is being made", _DELETE, 422, _LOCKED, times=3),
    everywhere(Fault("lists trail launches by two seconds", lambda ocean: ocean.lag(2.0))),
    _request("HTML instead of sizes", _SIZES, status=200, body=_HTML, works=False),
    everywhere(_request("HTML instead of a list, twice", _LIST, status=200, body=_HTML, times=2)),
    _request("the answer to a launch has no ids", _LAUNCH, "edit", body={"droplets": [{}]}, times=1),
    _request("a price as text", _SIZES, "edit", body={"price_hourly": "6.74"}, works=False),
    _request("sizes without prices", _SIZES, "edit", body={"price_hourly": None}, works=False),
    _request("lists without droplets, twice", _LIST, "edit", body={"droplets": None}, times=2),
    _request("a new state word, twice", _LIST, "edit", body={"status": "migrating"}, times=2),
)
"""All that is in the section, in its order."""


def provoke(fault: Fault, cloud: Cloud) -> Row:
    """Have one fault happen to a pool, and see what comes of it; its key has to go as well."""
    row = provoked(fault, cloud, CPU)
    assert [] == cloud.ssh_keys(), "a key is left"
    assert [] == [tag for tag in cloud.tags() if re.match("skyward:", tag)], "tags are left"
    return row
