"""Whether a rented machine is what was rented, judged by what was found on it before anything is done to it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from skyward.errors import ProvisionError
from skyward.model.accelerators.accelerator import is_nvidia, recognise
from skyward.model.instances.offer import Offer
from skyward.model.spec.image import Image
from skyward.model.spec.spec import Spec
from skyward.node.health.findings import FATAL_XIDS
from skyward.ssh.probe import Findings

__all__ = ["FATAL_XIDS", "NEEDED_GB", "NETWORK_FLOOR", "check_usable", "cuda_wanted", "faults", "too_slow"]

NEEDED_GB = 0.1
"""Room that our own side and its logs want on a machine, in GB."""

NETWORK_FLOOR = 50_000.0
"""Bytes in a second that a machine has to take at least; with less, a gigabyte of packages takes half a day."""

# "torch==2.8.0+cu128", "https://download.pytorch.org/whl/cu128", "jax[cuda12]", "cupy-cuda12x", "nvidia-cudnn-cu12".
_CUDA = re.compile(r"(?<![a-z0-9])cu(?:da)?(\d{2})(\d?)(?:x|[-_](?:local|pip))?(?![a-z0-9.])", re.IGNORECASE)

_PART = 0.9
"""Least part of memory and disk that has to be there: some is the kernel's and the file system's."""


def cuda_wanted(image: Image) -> str:
    """
    Return the newest CUDA that the packages of an image are said to be built for; empty where none says so.

    Args:
        image: What is installed, and from where.

    >>> cuda_wanted(Image(pip=["torch==2.8.0"], pip_extra_index_url="https://download.pytorch.org/whl/cu128"))
    '12.8'
    >>> cuda_wanted(Image(pip=["jax[cuda12]", "numpy"]))
    '12'
    """
    return max(_versions(image), key=_numbers, default="")


def check_usable(found: Findings, said: str, where: str) -> None:
    """
    Check that a machine can hold a node at all.

    Args:
        found: What was found on it.
        said: What it said besides.
        where: Its name, for the error.

    Raises:
        ProvisionError: If it cannot.
    """
    if not found.cache:
        raise ProvisionError(f"{where} has no POSIX shell that answers: {said[-300:]}")
    if found.unsafe:
        raise ProvisionError(
            f"{where}: {found.cache} is not used, because {found.unsafe}.",
            hint="Set SKYWARD_CACHE there to a directory that only you can change, or mend its owner and mode.",
        )
    if not found.writable:
        raise ProvisionError(
            f"{where}: {found.cache} cannot be written to.",
            hint="Set SKYWARD_CACHE there to a directory that can, or log in as another user.",
        )
    if found.free_gb is not None and found.free_gb < NEEDED_GB:
        raise ProvisionError(
            f"{where} has {found.free_gb * 1000:.0f} MB left at {found.cache}, and {NEEDED_GB * 1000:.0f} "
            "MB are needed.",
            hint="Free some space there, or set SKYWARD_CACHE to a directory that has room.",
        )


def too_slow(rate: float, before: Sequence[float]) -> bool:
    """
    Return whether it is a machine's fault that it takes what it is sent below `NETWORK_FLOOR`.

    The first that does is not believed, and handed back; when all have been as slow, it is the client's own line.

    Args:
        rate: Bytes in a second that it took.
        before: What the pool's other machines took.

    >>> too_slow(2e4, []), too_slow(2e4, [3e4]), too_slow(2e4, [3e4, 1e6]), too_slow(1e6, [])
    (True, False, True, False)
    """
    return rate < NETWORK_FLOOR and (not before or max(before) >= NETWORK_FLOOR)


def faults(found: Findings, spec: Spec, offer: Offer, image: Image) -> tuple[str, ...]:
    """
    Return what is wrong with a machine, a sentence each; nothing if it is as offered.

    Args:
        found: What is on it.
        spec: What the user asks for.
        offer: What was rented.
        image: What will be installed.
    """
    wrong = [*_accelerators(found, spec, offer), *_driver(found, image)]
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
    """Return what is wrong with the GPUs; others than NVIDIA's are not looked at."""
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


def _driver(found: Findings, image: Image) -> Iterator[str]:
    """Yield what is wrong if the driver is too old; within a major version, CUDA runs on older drivers."""
    wanted = cuda_wanted(image)
    if wanted and found.cuda and _numbers(wanted)[0] > _numbers(found.cuda)[0]:
        yield f"Its driver {found.driver} runs CUDA {found.cuda} at most, and the image's packages want CUDA {wanted}."


def _versions(image: Image) -> Iterator[str]:
    urls = (image.pip_extra_index_url or "", *(index.url for index in image.pip_indexes))
    for text in (*image.pip, *urls):
        for major, minor in _CUDA.findall(text):
            yield f"{major}.{minor}" if minor else major


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part)
