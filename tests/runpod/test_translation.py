"""What RunPod says, as offers and instances, and what it hears: pure functions over recorded payloads."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest
from attrs import evolve

from skyward.errors import ConfigError
from skyward.hookspecs import Cluster, InstanceState, LaunchRequest, Offer, Tags
from skyward.model.instances.machine import SSHAddress
from skyward.model.spec.container import DockerImage, cuda, ubuntu
from skyward.model.spec.spec import Spec
from skyward.rest import Misread
from skyward_runpod import RunPod
from skyward_runpod.launching import Order, body, image_for
from skyward_runpod.market import Wish, counts, cpu_counts, cpu_offers, gpu_offers
from skyward_runpod.naming import TAGS, name_of, tags_of, written
from skyward_runpod.pods import described, state

# As in the OpenAPI document's example of listGpuTypes.
GPU: dict[str, Any] = {
    "id": "NVIDIA GeForce RTX 4090",
    "name": "RTX 4090",
    "pool": "ADA_24",
    "manufacturer": "NVIDIA",
    "memory": 24,
    "secure": True,
    "community": True,
    "price": {"secure": 0.44, "community": 0.31, "serverless": 1.1},
    "maxCount": {"secure": 8, "community": 4},
    "availability": "HIGH",
    "dataCenters": [{"id": "US-KS-2", "name": "US Kansas 2", "availability": "HIGH"}],
    "cudaVersions": [{"version": "12.4", "available": True}, {"version": "12.11", "available": False}],
}
# As in its example of listPods.
POD: dict[str, Any] = {
    "id": "7h9k2m4n6p",
    "name": "skyward-a1b2c3d4-1-0123456789abcdef-ann-laptop",
    "image": "runpod/pytorch:1.0.2-cu1281-torch280-ubuntu2404",
    "args": "",
    "disk": 50,
    "ports": ["8888/http", "22/tcp"],
    "env": {TAGS: '{"skyward:owner": "ann@laptop", "skyward:pool-name": "train"}'},
    "registry": None,
    "status": "RUNNING",
    "actions": ["stop", "restart", "terminate"],
    "mounts": {"persistent": {"size": 20, "path": "/workspace"}},
    "gpu": {"id": "NVIDIA GeForce RTX 4090", "count": 1},
    "cloud": "SECURE",
    "dataCenterId": "US-KS-2",
    "cudaVersion": "12.8",
    "ssh": {
        "proxy": {"host": "ssh.runpod.io", "port": 22, "username": "7h9k2m4n6p-64411eb2", "command": "ssh ..."},
        "direct": {"host": "195.26.233.3", "port": 34446, "username": "root", "command": "ssh ..."},
    },
    "template": "9x4m2p7v",
    "cost": 0.44,
    "locked": False,
    "globalNetworking": {"enabled": False},
    "runtime": None,
    "createdAt": "2026-06-01T12:00:00Z",
    "startedAt": "2026-06-01T12:02:00Z",
}
ANYWHERE = Wish(clouds=("SECURE",))
OFFER = Offer(
    provider="runpod",
    instance_type="NVIDIA GeForce RTX 4090:2",
    zone="COMMUNITY",
    accelerator_name="NVIDIA GeForce RTX 4090",
    accelerator_count=2,
    on_demand_price=0.62,
)


def cluster(offer: Offer = OFFER, **wishes: Any) -> Cluster:
    """Describe a pool."""
    return Cluster(pool_id="a1b2c3d4", pool_name="train", spec=Spec(**wishes), offer=offer, provider="runpod", nodes=2)


def order(offer: Offer = OFFER, **changes: Any) -> Order:
    """Describe a launch."""
    wishes = changes.pop("wishes", {})
    request = LaunchRequest(cluster=cluster(offer, **wishes), nodes=(0, 1), token="0123456789abcdef")
    return Order(request=request, **changes)


def written_body(given: Order | None = None, node: int = 1) -> dict[str, Any]:
    """Write what is sent."""
    return body(given or order(), node, "https://api.runpod.io")


def test_an_offer_says_what_is_known_and_nothing_else() -> None:
    """The price is for all GPUs together; vCPUs and memory are in no catalogue."""
    [offer] = gpu_offers([GPU], 2, "COMMUNITY", ANYWHERE)
    assert ("NVIDIA GeForce RTX 4090:2", "COMMUNITY", 0.62) == (offer.instance_type, offer.zone, offer.on_demand_price)
    assert (None, None, None) == (offer.vcpus, offer.memory_gb, offer.spot_price)
    assert (2, 24, True) == (offer.accelerator_count, offer.accelerator_memory_gb, offer.available)
    assert offer.accelerator is not None
    assert "RTX_4090" == offer.accelerator.name


@pytest.mark.parametrize(
    ("changes", "count"),
    [({"secure": False}, 1), ({"price": {"secure": 0, "community": 0}}, 1), ({}, 9)],
    ids=["not in this cloud", "without a price", "more than a machine has"],
)
def test_what_is_not_sold_is_no_offer(changes: dict[str, Any], count: int) -> None:
    """A price of a cloud that does not sell a kind means nothing."""
    assert [] == gpu_offers([{**GPU, **changes}], count, "SECURE", ANYWHERE)


@pytest.mark.parametrize(
    ("changes", "wish", "expected"),
    [
        ({"availability": "NONE"}, {}, False),
        ({"availability": "LOW"}, {}, True),
        ({}, {"region": "US-KS-2"}, True),
        ({}, {"region": "EU-RO-1"}, False),
        ({}, {"places": ("EU-RO-1", "US-KS-2")}, True),
        ({"dataCenters": [{"id": "US-KS-2", "availability": "NONE"}]}, {"region": "US-KS-2"}, False),
        ({}, {"networked": frozenset({"EU-RO-1"})}, False),
        ({}, {"least_cuda": "12.4"}, True),
        ({}, {"least_cuda": "12.8"}, False),
        ({"cudaVersions": None}, {"least_cuda": "12.8"}, True),
    ],
    ids=str,
)
def test_stock_is_that_of_the_places_and_drivers_that_are_wanted(
    changes: dict[str, Any], wish: dict[str, Any], expected: bool
) -> None:
    """A machine elsewhere, or with a driver too old for the image, is none."""
    [offer] = gpu_offers([{**GPU, **changes}], 1, "SECURE", evolve(ANYWHERE, **wish))
    assert expected is offer.available


def test_a_level_of_stock_that_is_new_leaves_out_what_has_it() -> None:
    """What cannot be read cannot be rented; if nothing can be read, that is an error and no empty list."""
    odd = {**GPU, "id": "NVIDIA L4", "availability": "PLENTY"}
    assert ["NVIDIA GeForce RTX 4090"] == [each.instance_type for each in gpu_offers([GPU, odd], 1, "SECURE", ANYWHERE)]
    with pytest.raises(Misread, match="'availability' is not one of HIGH, LOW, MEDIUM, NONE but 'PLENTY'"):
        gpu_offers([odd], 1, "SECURE", ANYWHERE)


CPU: dict[str, Any] = {
    "id": "cpu5c",
    "vcpu": {"min": 4, "max": 8},
    "ramGbPerVcpu": 2.5,
    "price": {"securePerVcpu": 0.04},
    "availability": "HIGH",
}


@pytest.mark.parametrize(
    ("kind", "vcpus", "expected"),
    [
        ("cpu5c", 2, []),
        ("cpu5c", 4, [("cpu5c:4", 4, 10.0, 0.16, 60)]),
        ("cpu5c", 8, [("cpu5c:8", 8, 20.0, 0.32, 120)]),
        ("cpu3c", 8, [("cpu3c:8", 8, 20.0, 0.32, 80)]),
        ("cpu5c", 16, []),
    ],
)
def test_what_a_machine_without_gpus_has_follows_its_vcpus(kind: str, vcpus: int, expected: list[Any]) -> None:
    """Its memory, its price, and the room in its container."""
    found = [
        (each.instance_type, each.vcpus, each.memory_gb, each.on_demand_price, each.disk_gb)
        for each in cpu_offers([{**CPU, "id": kind}], vcpus, ANYWHERE)
    ]
    assert expected == found


def test_a_machine_whose_container_cannot_be_large_enough_is_no_offer() -> None:
    """RunPod would refuse it; users need not know each kind's limit."""
    assert [] == cpu_offers([CPU], 4, evolve(ANYWHERE, disk_gb=61))
    assert 1 == len(cpu_offers([CPU], 4, evolve(ANYWHERE, disk_gb=60)))


def test_the_numbers_of_vcpus_that_will_do_are_the_ones_that_are_looked_for() -> None:
    """What is left of two says nothing of thirty-two."""
    assert (2, 4, 8, 16, 32) == cpu_counts(Spec())
    assert (8, 16, 32) == cpu_counts(Spec(vcpus=5))
    assert (16,) == cpu_counts(Spec(machine="cpu3c:16"))
    assert () == cpu_counts(Spec(machine="NVIDIA L40S"))


def test_the_number_of_gpus_that_is_asked_for_is_the_one_that_is_looked_for() -> None:
    """An answer for one says nothing of eight."""
    assert (8,) == counts(Spec(accelerator="H100:8"))
    assert (1,) == counts(Spec(accelerator="H100"))
    assert (4,) == counts(Spec(machine="NVIDIA L40S:4"))


def test_a_pod_that_runs_is_reached_at_its_public_port_by_a_known_key() -> None:
    """The proxy forwards nothing, and is not taken."""
    found = described(POD, cluster())
    assert isinstance(found.address, SSHAddress)
    assert ("195.26.233.3", 34446, "root") == (found.address.host, found.address.port, found.address.user)
    assert (found.address.host_key or "").startswith("ssh-ed25519 ")
    assert (1, "US-KS-2", 0.44) == (found.node, found.region, found.hourly_rate)
    assert "PRIVATE" not in repr(found)


def test_a_pod_without_its_public_port_is_on_its_way() -> None:
    """It is said to run before it can be reached."""
    found = described({**POD, "ssh": {"proxy": None, "direct": None}}, cluster())
    assert (InstanceState.PENDING, None, "public port") == (found.state, found.address, found.doing)


@pytest.mark.parametrize(
    ("status", "expected", "doing"),
    [
        ("PROVISIONING", InstanceState.PENDING, "allocation"),
        ("STARTING", InstanceState.PENDING, "image pull"),
        ("EXITED", InstanceState.ENDING, None),
        ("ERROR", InstanceState.ENDING, None),
        ("TERMINATED", InstanceState.ENDED, None),
    ],
)
def test_a_status_means_one_state(status: str, expected: InstanceState, doing: str | None) -> None:
    """A pod that exited is billed for its disk, and no client waits for it."""
    found = described({**POD, "status": status, "ssh": {"proxy": None, "direct": None}}, cluster())
    assert (expected, doing) == (found.state, found.doing)


def test_a_status_that_is_new_counts_as_ending() -> None:
    """The pod may still be billed, also where its row has no status."""
    assert InstanceState.ENDING is state({"id": "p1", "status": "HIBERNATED"}) is state({"id": "p1"})


def test_a_name_bears_pool_node_and_request_and_stays_short() -> None:
    """What has no room there is in a variable; an expiry could not be written anew."""
    tags = Tags(
        pool_id="a1b2c3d4",
        pool_name="train",
        node=12,
        owner="ann.long@" + "laptop" * 9,
        client="c1",
        token="0123456789abcdef",
        expires_at=1.8e9,
    )
    name = name_of(tags)
    assert len(name) <= 60
    assert evolve(tags, expires_at=None) == tags_of({"name": name, "env": {TAGS: written(tags)}})
    assert "a1b2c3d4" == getattr(tags_of({"name": name}), "pool_id", None)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "skyward",
        "skyward-notes",
        "skyward-notes-1-old",
        "skyward-a1b2c3d4-1-notes",
        "skyward-a1b2c3d4-x-0123456789abcdef",
        "my-skyward-a1b2c3d4-1-0123456789abcdef",
    ],
)
def test_others_pods_are_not_ours(name: str) -> None:
    """A name that is only like ours is another program's."""
    assert tags_of({"name": name, "env": {TAGS: '{"skyward:pool": "a"}'}}) is None


@pytest.mark.parametrize("env", [None, [], {TAGS: "{"}, {TAGS: "[]"}, {}], ids=repr)
def test_a_variable_that_somebody_changed_takes_nothing_from_the_name(env: Any) -> None:
    """Pool, node and request are still known."""
    found = tags_of({"name": "skyward-a1b2c3d4-1-0123456789abcdef-me", "env": env})
    assert Tags(pool_id="a1b2c3d4", node=1, token="0123456789abcdef") == found


def test_nothing_is_exposed_or_attached_that_nobody_asked_for() -> None:
    """One port, no volume, no network, no Jupyter; and the start fits between single quotes."""
    given = order()
    sent = written_body(given)
    assert ["22/tcp"] == sent["ports"]
    assert sent["startSsh"]
    unasked = {"mounts", "globalNetworking", "startJupyter", "templateId", "registry", "dataCenterIds"}
    assert set() == unasked & sent.keys()
    assert {"id": "NVIDIA GeForce RTX 4090", "count": 2, "minCudaVersion": "12.8"} == sent["gpu"]
    assert ("COMMUNITY", 50) == (sent["cloud"], sent["disk"])
    assert 2 == sent["args"].count("'")
    assert sent == written_body(given)


def test_a_pod_gets_its_own_keys_and_never_the_accounts() -> None:
    """Its end is a line that a shell takes, and knows the key by its name only."""
    given = order()
    sent = written_body(given)
    assert given.request.cluster.key.public == sent["env"]["PUBLIC_KEY"]
    assert "RUNPOD_API_KEY" not in sent["env"]
    end = "".join(text for name, text in sent["env"].items() if name.startswith("SKYWARD_START_END_"))
    assert 'Bearer $RUNPOD_API_KEY" "https://api.runpod.io/v2/pods/$RUNPOD_POD_ID"' in end
    subprocess.run(["sh", "-n", "-c", end], check=True)


@pytest.mark.parametrize(
    ("offer", "image", "tag", "floor"),
    [
        (OFFER, None, "runpod/base:1.0.3-cuda1281-ubuntu2404", "12.8"),
        (OFFER, cuda("12.4.1"), "nvidia/cuda:12.4.1-devel-ubuntu22.04", "12.4"),
        (OFFER, ubuntu("22.04"), "ubuntu:22.04", None),
        (evolve(OFFER, accelerator_name="AMD Instinct MI300X OAM"), None, "runpod/base:1.0.3-ubuntu2404", None),
    ],
    ids=["by itself", "chosen", "without CUDA", "AMD"],
)
def test_a_driver_that_can_run_the_image_is_asked_for(
    offer: Offer, image: DockerImage | None, tag: str, floor: str | None
) -> None:
    """The least version is that of the image; where there is none, any driver will do."""
    given = order(offer, image=image)
    assert tag == image_for(given).tag
    assert floor == written_body(given)["gpu"].get("minCudaVersion")


def test_wishes_reach_the_call() -> None:
    """Disk, places, registry and network, each only where it is wished for."""
    offer = evolve(OFFER, data={"places": ["EU-RO-1"]})
    sent = written_body(order(offer, registry="reg1", networked=True, disk_gb=80, wishes={"disk_gb": 120.5}))
    assert (121, ["EU-RO-1"], "reg1", True) == (
        sent["disk"],
        sent["dataCenterIds"],
        sent["registry"],
        sent["globalNetworking"],
    )
    cpu = written_body(order(Offer(provider="runpod", instance_type="cpu5c:8", zone="SECURE"), disk_gb=80))
    assert ({"id": "cpu5c", "vcpuCount": 8}, 80) == (cpu["cpu"], cpu["disk"])
    assert "gpu" not in cpu


@pytest.mark.parametrize(("kind", "disk"), [("cpu3c:2", 20), ("cpu5c:2", 30), ("cpu3c:4", 40), ("cpu3c:8", 50)])
def test_a_small_machine_without_gpus_has_a_small_container(kind: str, disk: int) -> None:
    """RunPod refuses more than its vCPUs give room for."""
    assert disk == written_body(order(Offer(provider="runpod", instance_type=kind, zone="SECURE")))["disk"]


def test_the_tags_are_in_a_variable_that_nobody_sees_who_logs_in() -> None:
    """Its name is one of those that the start keeps to itself."""
    assert TAGS.startswith("SKYWARD_START_")
    assert {"skyward:pool-name": "train"} == json.loads(written_body()["env"][TAGS])


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"cloud": "private"}, "cloud must be"),
        ({"country": "Romania"}, "country='ROMANIA' is no code"),
        ({"data_center": [5]}, "data_center must be the name of a data centre, or several"),
        ({"container_image": "two words"}, "container_image='two words' is no name of a Docker image"),
        ({"global_networking": True, "cloud": "all"}, 'goes with cloud="secure"'),
    ],
    ids=str,
)
def test_a_wrong_setting_is_refused_at_once(wrong: dict[str, Any], words: str) -> None:
    """The error names it."""
    with pytest.raises(ConfigError, match=words):
        RunPod(**wrong)


def test_values_are_equal_and_hide_the_key() -> None:
    """The same settings are the same provider; the key is in no repr."""
    assert RunPod(api_key="rpa_hidden") == RunPod(api_key="rpa_hidden")
    assert "rpa_hidden" not in repr(RunPod(api_key="rpa_hidden"))
    assert ("EU-RO-1",) == RunPod(data_center="EU-RO-1").data_center
    assert ("RO", "FR") == RunPod(country=["ro", "fr"]).country
