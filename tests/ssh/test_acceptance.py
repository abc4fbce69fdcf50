"""
A rented machine that is not what was rented is handed back, and another one is rented.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import pytest
from attrs import define, evolve, field

import skyward as sky
from skyward.engine.nodes import upload_rates
from skyward.hookspecs import Instance, LaunchRequest, ProviderFacts, SSHAddress, hookimpl
from skyward.model.instances.offer import Offer
from skyward.model.spec.image import Image
from skyward.model.spec.spec import Spec
from skyward.ssh import acceptance
from skyward.ssh.acceptance import cuda_wanted, faults
from skyward.ssh.probe import Findings, Gpu, read
from tests.ssh.conftest import Site

GPUS = tuple(Gpu(name="NVIDIA H100 80GB HBM3", memory_gb=85.5) for _ in range(8))
FOUND = Findings(
    cache="/cache",
    writable=True,
    system="Linux",
    machine="x86_64",
    hostname="box",
    address=None,
    vcpus=96.0,
    memory_gb=1000.0,
    free_gb=400.0,
    disk_gb=480.0,
    runtimes=frozenset(),
    gets_uv=True,
    gpus=GPUS,
)
OFFER = Offer(
    provider="aws", instance_type="p5", accelerator_name="H100", accelerator_count=8, accelerator_memory_gb=80
)
SPEC = Spec(accelerator="H100:8", vcpus=96, memory_gb=1024, disk_gb=500)


def wrong(found: Findings, spec: Spec = SPEC, offer: Offer = OFFER, **image: Any) -> tuple[str, ...]:
    return faults(found, spec, offer, Image(**image))


def test_a_machine_as_offered_is_taken() -> None:
    """The kernel's part of memory and disk is not missed."""
    assert () == wrong(FOUND)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"gpus": GPUS[:7]}, "It has 7 of 8 GPUs."),
        ({"gpus": ()}, "nvidia-smi finds no GPU, and 8 × H100 was rented"),
        ({"gpus": tuple(Gpu(name="Tesla T4", memory_gb=16.1) for _ in range(8))}, "It has Tesla T4, and H100"),
        ({"vcpus": 48.0}, "It has 48 processors, and vcpus=96"),
        ({"memory_gb": 500.0}, "It has 500 GB of memory"),
        ({"disk_gb": 30.0}, "Its disk has 30 GB"),
        ({"ecc_errors": 3}, "3 uncorrected memory errors"),
        ({"xids": frozenset({13, 79})}, "Xid 79: a GPU is broken"),
    ],
)
def test_a_machine_with_a_fault_is_not(change: dict[str, Any], said: str) -> None:
    """And what is wrong is said."""
    (fault,) = wrong(evolve(FOUND, **change))
    assert said in fault


@pytest.mark.parametrize(
    "change", [{"xids": frozenset({13, 31, 43})}, {"disk_gb": None}, {"free_gb": None}, {"gpus": (*GPUS, GPUS[0])}]
)
def test_what_is_no_fault_of_the_machine(change: dict[str, Any]) -> None:
    """Programs that crashed on a GPU, and what cannot be told."""
    assert () == wrong(evolve(FOUND, **change))


def test_accelerators_of_others_are_not_looked_at() -> None:
    """There is no one program that lists them."""
    offer = evolve(OFFER, accelerator_name="Trainium2")
    assert () == wrong(evolve(FOUND, gpus=()), Spec(), offer)


def test_health_is_read_from_what_the_machine_says() -> None:
    """Where it says nothing, there is nothing wrong."""
    found = read("disk_kb=500000000\necc=0\necc=2\nxid=79\nxid=13\n")
    assert (found.disk_gb, found.ecc_errors, found.xids) == (512.0, 2, frozenset({79, 13}))
    found = read("driver=550.54.15\ncuda=12.4\n")
    assert ("550.54.15", "12.4") == (found.driver, found.cuda)
    assert (read("").ecc_errors, read("").xids, read("").disk_gb) == (0, frozenset(), None)


@pytest.mark.parametrize(
    ("cuda", "image", "fits"),
    [
        ("12.4", {"pip": ["torch==2.8.0"], "pip_extra_index_url": "https://download.pytorch.org/whl/cu128"}, True),
        ("12.4", {"pip": ["torch==2.8.0+cu130"]}, False),
        ("11.4", {"pip": ["jax[cuda12]"]}, False),
        ("11.4", {"pip": ["cupy-cuda12x"]}, False),
        ("13.0", {"pip": ["nvidia-cudnn-cu12"]}, True),
        ("11.4", {"pip": ["torch", "numpy"]}, True),
        ("", {"pip": ["jax[cuda12]"]}, True),
    ],
)
def test_a_driver_that_is_too_old_for_the_image_is_a_fault(cuda: str, image: dict[str, Any], *, fits: bool) -> None:
    """As far as the packages say what CUDA they are built for; minor versions get along."""
    found = wrong(evolve(FOUND, driver="470.82", cuda=cuda), **image)
    assert fits == (not found)
    assert fits or f"Its driver 470.82 runs CUDA {cuda} at most" in found[0]


@pytest.mark.parametrize(
    ("requirement", "wanted"),
    [("torch==2.8.0+cu126", "12.6"), ("tensorflow[and-cuda]", ""), ("cubes==12.1", ""), ("vllm-cu118", "11.8")],
)
def test_what_cuda_packages_are_built_for_is_in_their_names(requirement: str, wanted: str) -> None:
    """And nothing else is taken for it."""
    assert wanted == cuda_wanted(Image(pip=[requirement]))


@define
class Rented:
    """
    Rent one host after the other; those that are given back are not rented again.

    Args:
        ways: How each is reached.
    """

    ways: Sequence[SSHAddress]
    rented: list[str] = field(factory=list)
    ended: list[str] = field(factory=list)

    @hookimpl
    def skyward_facts(self) -> ProviderFacts:
        return ProviderFacts(name="rented", ends_own_bill=False)

    @hookimpl
    async def skyward_offers(self) -> Sequence[Offer]:
        facts = {"accelerator_name": "A100", "accelerator_count": 1, "accelerator_memory_gb": 80}
        return [Offer(provider="rented", instance_type="gpu", on_demand_price=0.0, **facts)]  # type: ignore[arg-type]

    @hookimpl
    async def skyward_launch(self, request: LaunchRequest) -> Sequence[Instance]:
        way = self.ways[len(self.rented)]
        self.rented.append(way.host)
        return [Instance(id=way.host, node=0, provider="rented", address=way, tags=request.tags_of(0))]

    @hookimpl
    async def skyward_instances(self) -> Sequence[Instance]:
        there = set(self.rented) - set(self.ended)
        return [Instance(id=way.host, node=0, provider="rented", address=way) for way in self.ways if way.host in there]

    @hookimpl
    async def skyward_terminate(self, ids: Sequence[str]) -> None:
        self.ended += ids


def gpu(site: Site, number: int, *, cuda: str) -> None:
    """Give a host a GPU, by a program that answers as NVIDIA's does."""
    path = site.hosts[number].base / "bin" / "nvidia-smi"
    path.write_text(
        "#!/bin/sh\ncase $* in\n*name,memory.total*) echo 'NVIDIA A100-SXM4-80GB, 81920' ;;\n"
        "*driver_version*) echo 470.82.01 ;;\n*ecc*) echo 0 ;;\n"
        f"*) echo '| NVIDIA-SMI 470.82.01   Driver Version: 470.82.01   CUDA Version: {cuda}     |' ;;\nesac\n"
    )
    path.chmod(0o755)


def ways(site: Site, **changes: Any) -> list[SSHAddress]:
    facts: dict[str, Any] = {"keys": (str(site.key),), "known_hosts": str(site.known_hosts), **changes}
    return [SSHAddress(host=one.address, port=one.port, user="root", **facts) for one in site.hosts]


def open_on(provider: Rented, **options: Any) -> sky.Compute:
    given = {"accelerator": "A100", "console": "silent", "logging": False, "provision_retry_delay": 0.0, "ttl": 60}
    return sky.Compute(provider=provider, **{**given, **options})


@pytest.mark.slow
def test_a_machine_with_an_old_driver_is_replaced(two: Site) -> None:
    """Before anything is installed on it."""
    gpu(two, 0, cuda="11.4")
    gpu(two, 1, cuda="12.4")
    provider, heard = Rented(ways(two)), []
    # Nothing is asked for from there: that it is named is enough.
    index = sky.PipIndex("https://download.pytorch.org/whl/cu128", ["torch"])
    pool = open_on(provider, image=sky.Image(pip_indexes=[index]))
    pool.on(sky.Error, lambda event: heard.append(event.message))
    with pool:
        assert 1 == pool.current_nodes()
        assert [two.hosts[0].address] == provider.ended
    assert any("Its driver 470.82.01 runs CUDA 11.4 at most" in message for message in heard), heard
    assert provider.rented == provider.ended


_SLOWLY = """
import os, socket, sys, threading, time
there = socket.create_connection((sys.argv[1], int(sys.argv[2])))
def back():
    while data := there.recv(65536):
        os.write(1, data)
    os._exit(0)
threading.Thread(target=back, daemon=True).start()
while data := os.read(0, 4096):
    there.sendall(data)
    time.sleep(len(data) / float(sys.argv[3]))
"""


def slowly(site: Site, way: SSHAddress) -> SSHAddress:
    """Reach a machine over a line that takes 100 kB in a second."""
    script = site.key.with_name("slowly.py")
    script.write_text(_SLOWLY)
    return evolve(way, proxy_command=(sys.executable, str(script), way.host, str(way.port), "1e5"))


@pytest.fixture
def floor(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask for more of a machine's network, so that a slow one is found in less time."""
    for module in (acceptance, upload_rates):
        monkeypatch.setattr(module, "NETWORK_FLOOR", 300_000.0)


@pytest.mark.slow
@pytest.mark.usefixtures("floor")
def test_a_machine_with_a_slow_network_is_replaced(two: Site) -> None:
    """And what it takes is said."""
    for number in range(2):
        gpu(two, number, cuda="12.4")
    slow, fast = ways(two)
    provider, heard = Rented([slowly(two, slow), fast]), []
    pool = open_on(provider)
    pool.on(sky.Error, lambda event: heard.append(event.message))
    with pool:
        assert [slow.host] == provider.ended
    assert any("kB/s, and 300 kB/s are the least" in message for message in heard), heard
    assert provider.rented == provider.ended


# tests/engine/nodes/test_upload_rates.py holds the rule.
@pytest.mark.usefixtures("floor")
@pytest.mark.everything
def test_machines_that_are_all_slow_are_not_to_blame(two: Site) -> None:
    """It is the client's own line, and only one of them is handed back."""
    for number in range(2):
        gpu(two, number, cuda="12.4")
    provider = Rented([slowly(two, way) for way in ways(two)])
    with open_on(provider):
        assert [two.hosts[0].address] == provider.ended
