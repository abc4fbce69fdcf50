"""Whether a rented machine is what was rented, judged by what was found on it before anything is done to it."""

from __future__ import annotations

from skyward.model.accelerator import is_nvidia, recognise
from skyward.model.offer import Offer
from skyward.model.spec import Spec
from skyward.ssh.probe import Findings

__all__ = ["FATAL_XIDS", "faults"]

FATAL_XIDS = frozenset({48, 64, 74, 79, 95, 119, 120})
"""
What NVIDIA's driver writes into the kernel's log when a GPU is broken rather than misused.

Uncorrectable memory error, row that could not be remapped, NVLink, fallen off the bus, uncontained memory error, and
the GPU's own processor timing out or failing.
Source: https://docs.nvidia.com/deploy/xid-errors/
"""

_PART = 0.9
"""Least part of memory and disk that has to be there: some is the kernel's and the file system's."""


def faults(found: Findings, spec: Spec, offer: Offer) -> tuple[str, ...]:
    """
    Say what is wrong with a machine, a sentence each; nothing if it is as offered.

    Args:
        found: What is on it.
        spec: What the user asks for.
        offer: What was rented.
    """
    wrong = [*_accelerators(found, spec, offer)]
    if spec.vcpus and found.vcpus < spec.vcpus:
        wrong.append(f"It has {found.vcpus:g} processors, and vcpus={spec.vcpus:g} was asked for.")
    if spec.memory_gb and found.memory_gb < _PART * spec.memory_gb:
        wrong.append(f"It has {found.memory_gb:g} GB of memory, and memory_gb={spec.memory_gb:g} was asked for.")
    if spec.disk_gb and found.disk_gb is not None and found.disk_gb < _PART * spec.disk_gb:
        wrong.append(f"Its disk has {found.disk_gb:g} GB, and disk_gb={spec.disk_gb:g} was asked for.")
    if found.ecc_errors:
        wrong.append(f"Its GPUs count {found.ecc_errors} uncorrected memory errors.")
    if broken := sorted(found.xids & FATAL_XIDS):
        wrong.append(f"Its kernel's log has Xid {', '.join(map(str, broken))}: a GPU is broken.")
    return tuple(wrong)


def _accelerators(found: Findings, spec: Spec, offer: Offer) -> list[str]:
    """Say what is wrong with the GPUs; others than NVIDIA's are not looked at."""
    name = offer.accelerator_name or (spec.accelerator.name if spec.accelerator is not None else None)
    if not name or not is_nvidia(name):
        return []
    count = int(offer.accelerator_count or (spec.accelerator.count if spec.accelerator is not None else 1))
    if not found.gpus:
        return [f"nvidia-smi finds no GPU, and {count} × {name} was rented: its driver may be missing."]
    if len(found.gpus) < count:
        return [f"It has {len(found.gpus)} of {count} GPUs."]
    if spec.accelerator is None:
        return []
    gpu = found.gpus[0]
    there = recognise(gpu.name, count=len(found.gpus), memory_gb=gpu.memory_gb)
    return [] if spec.accelerator.accepts(there) else [f"It has {gpu.name}, and {spec.accelerator} was asked for."]
