"""
A rented machine that is not what was rented is handed back.
"""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve

from skyward.model.offer import Offer
from skyward.model.spec import Spec
from skyward.ssh.acceptance import faults
from skyward.ssh.probe import Findings, Gpu, read

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


def test_a_machine_as_offered_is_taken() -> None:
    """The kernel's part of memory and disk is not missed."""
    assert faults(FOUND, SPEC, OFFER) == ()


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
    (fault,) = faults(evolve(FOUND, **change), SPEC, OFFER)
    assert said in fault


@pytest.mark.parametrize(
    "change", [{"xids": frozenset({13, 31, 43})}, {"disk_gb": None}, {"free_gb": None}, {"gpus": (*GPUS, GPUS[0])}]
)
def test_what_is_no_fault_of_the_machine(change: dict[str, Any]) -> None:
    """Programs that crashed on a GPU, and what cannot be told."""
    assert faults(evolve(FOUND, **change), SPEC, OFFER) == ()


def test_accelerators_of_others_are_not_looked_at() -> None:
    """There is no one program that lists them."""
    offer = evolve(OFFER, accelerator_name="Trainium2")
    assert faults(evolve(FOUND, gpus=()), Spec(), offer) == ()


def test_health_is_read_from_what_the_machine_says() -> None:
    """Where it says nothing, there is nothing wrong."""
    found = read("disk_kb=500000000\necc=0\necc=2\nxid=79\nxid=13\n")
    assert (found.disk_gb, found.ecc_errors, found.xids) == (512.0, 2, {79, 13})
    assert (read("").ecc_errors, read("").xids, read("").disk_gb) == (0, frozenset(), None)
