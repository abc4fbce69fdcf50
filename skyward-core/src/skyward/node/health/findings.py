"""
What is wrong with a node by what was read of it: pure decisions over samples.

A finding is certain only where nothing but another machine helps: what is merely low or slow is a warning.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from skyward.node.metrics.readings import memory

__all__ = [
    "FATAL_XIDS",
    "DiskUse",
    "Finding",
    "Gpus",
    "clock",
    "disk",
    "gpus_of",
    "kernel_log",
    "lost_gpus",
    "memory_pressure",
]

FATAL_XIDS: Final = frozenset({48, 64, 74, 79, 95, 119, 120})
"""
What NVIDIA's driver writes into the kernel's log when a GPU is broken rather than misused.

Uncorrectable memory error, row that could not be remapped, NVLink, fallen off the bus, uncontained memory error, and
the GPU's own processor timing out or failing.
Source: https://docs.nvidia.com/deploy/xid-errors/
"""

LEAST_FREE: Final = 512 << 20
"""Bytes of a file system below which a node is warned of, unless it is smaller than twenty times that."""

LEAST_SHARE: Final = 0.02
"""The share of a file system, or of its inodes, below which a node is warned of."""

LEAST_MEMORY: Final = 0.03
"""The share of memory that has to be available."""

MOST_STALLED: Final = 20.0
"""Percent of a minute in which all tasks waited for memory, as the kernel counts it (PSI, `full avg60`)."""

CLOCK_STEP: Final = 2.0
"""Seconds that a clock may be set by without a word."""

_XID = re.compile(r"NVRM: Xid \(([^)]*)\): (\d+)")
_LOST = re.compile(r"GPU is lost|Unable to determine the device handle|fallen off the bus", re.IGNORECASE)
_STALLED = re.compile(r"^full .*\bavg60=([0-9.]+)", re.MULTILINE)
_SENTENCE: Final = 300


class Finding(NamedTuple):
    """
    Something that is wrong.

    Args:
        check: Which check found it: `"disk"`, `"memory"`, `"gpu"` or `"clock"`.
        about: What it is about, a path or a GPU; reported once for each.
        reason: What is wrong, in a sentence.
        certain: Whether the node is to be replaced.
    """

    check: str
    about: str
    reason: str
    certain: bool = False


class DiskUse(NamedTuple):
    """A file system: its sizes in bytes, its inodes, and whether it can only be read."""

    path: str
    total: int
    free: int
    inodes: int
    inodes_free: int
    read_only: bool = False


class Gpus(NamedTuple):
    """The GPUs that `nvidia-smi` lists: for each uuid the memory errors that were not corrected, None if unknown."""

    errors: dict[str, int | None]
    trouble: str = ""


def disk(sample: DiskUse) -> Finding | None:
    """
    Check a file system.

    One that was written to and has become read-only is broken; a full one would be as full on another machine soon.

    Args:
        sample: What `statvfs` says of it.

    >>> disk(DiskUse("/work", 100 << 30, 50 << 30, 1000, 900))
    >>> disk(DiskUse("/work", 100 << 30, 100 << 20, 1000, 900)).reason
    'the disk at /work is full: 100 MB of 102400 MB are free'
    >>> disk(DiskUse("/work", 100 << 30, 50 << 30, 1000, 900, read_only=True)).certain
    True
    """
    if sample.read_only:
        return Finding("disk", sample.path, f"the file system at {sample.path} has become read-only", certain=True)
    if (sample.total and sample.free < min(LEAST_FREE, sample.total // 20)) or sample.free < LEAST_SHARE * sample.total:
        free, total = sample.free >> 20, sample.total >> 20
        return Finding("disk", sample.path, f"the disk at {sample.path} is full: {free} MB of {total} MB are free")
    if sample.inodes and sample.inodes_free < LEAST_SHARE * sample.inodes:
        left = f"{sample.inodes_free} of {sample.inodes} inodes are free"
        return Finding("disk", sample.path, f"the disk at {sample.path} has room for few files more: {left}")
    return None


def memory_pressure(meminfo: str, pressure: str, limit_mb: float | None, used_mb: float | None) -> Finding | None:
    """
    Check main memory, of the machine or of the control group that tasks are in.

    Args:
        meminfo: `/proc/meminfo`.
        pressure: `/proc/pressure/memory`; empty where the kernel has none.
        limit_mb: What the control group may use; None if that is all there is.
        used_mb: What it uses; None where that is not known.

    >>> memory_pressure("MemTotal: 1000000 kB\\nMemAvailable: 10000 kB", "", None, None).reason
    'memory is short: 1 % of it is available'
    >>> memory_pressure("", "full avg10=3.0 avg60=41.50 avg300=9.0 total=1", None, None).reason
    'memory is short: all tasks waited for it in 42 % of the last minute'
    """
    if (stalled := _STALLED.search(pressure)) and float(stalled[1]) >= MOST_STALLED:
        waited = f"all tasks waited for it in {float(stalled[1]):.0f} % of the last minute"
        return Finding("memory", "", f"memory is short: {waited}")
    shares = []
    if (known := memory(meminfo)) is not None:
        shares.append((known.total - known.used) / known.total)
    if limit_mb and used_mb is not None:
        shares.append((limit_mb - used_mb) / limit_mb)
    if shares and min(shares) < LEAST_MEMORY:
        return Finding("memory", "", f"memory is short: {max(0.0, 100 * min(shares)):.0f} % of it is available")
    return None


def gpus_of(output: str) -> Gpus:
    """
    Read what `nvidia-smi --query-gpu=uuid,ecc.errors.uncorrected.volatile.total` printed, errors among it.

    >>> gpus_of("GPU-1, 0\\nGPU-2, [N/A]\\n").errors
    {'GPU-1': 0, 'GPU-2': None}
    >>> gpus_of("Unable to determine the device handle for GPU0000:41:00.0: GPU is lost.").trouble
    'Unable to determine the device handle for GPU0000:41:00.0: GPU is lost.'
    """
    errors: dict[str, int | None] = {}
    trouble = ""
    for line in output.splitlines():
        name, _, count = line.partition(",")
        if name.strip().startswith(("GPU-", "MIG-")):
            errors[name.strip()] = int(count) if count.strip().isdecimal() else None
        elif _LOST.search(line) and not trouble:
            trouble = line.strip()[:_SENTENCE]
    return Gpus(errors, trouble)


def lost_gpus(before: Gpus, now: Gpus) -> list[Finding]:
    """
    Compare the GPUs that a node has with those that it had.

    Args:
        before: Those of the first look.
        now: Those of this one.

    >>> [found.reason for found in lost_gpus(Gpus({"GPU-1": 0, "GPU-2": 0}), Gpus({"GPU-1": 3}))]
    ['GPU-1 has 3 memory errors that could not be corrected', 'GPU-2 is gone']
    >>> lost_gpus(Gpus({}), Gpus({}))
    []
    """
    found = []
    for name, had in before.errors.items():
        has = now.errors.get(name)
        if has is not None and has > (had or 0):
            more = has - (had or 0)
            some = "1 memory error" if more == 1 else f"{more} memory errors"
            found.append(Finding("gpu", f"{name} errors", f"{name} has {some} that could not be corrected"))
        # All of them may be missing because the program failed: that is said with the reason alone.
        elif name not in now.errors and (now.errors or now.trouble):
            why = f": {now.trouble}" if now.trouble else ""
            found.append(Finding("gpu", name, f"{name} is gone{why}", certain=True))
    return found


def kernel_log(lines: Iterable[str]) -> list[Finding]:
    """
    Check what NVIDIA's driver has written into the kernel's log.

    Args:
        lines: What is new there.

    >>> line = "NVRM: Xid (PCI:0000:41:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
    >>> [(found.about, found.certain) for found in kernel_log([line])]
    [('PCI:0000:41:00 Xid 79', True)]
    >>> kernel_log(["NVRM: Xid (PCI:0000:41:00): 31, pid=7, name=python, Ch 00000008, MMU Fault"])
    []
    """
    found = {}
    for line in lines:
        seen = _XID.search(line)
        if seen and int(seen[2]) in FATAL_XIDS:
            name = f"{seen[1]} Xid {seen[2]}"
            said = line[seen.start() :].strip()[:_SENTENCE]
            found[name] = Finding("gpu", name, f"a GPU is broken: {said}", certain=True)
    return list(found.values())


def clock(step: float) -> Finding | None:
    """
    Check how far a clock was set, against the one that only runs.

    Args:
        step: By how many seconds it was set forwards.

    >>> clock(-90.0).reason
    'its clock was set back by 90.0 s'
    >>> clock(0.5)
    """
    if abs(step) < CLOCK_STEP:
        return None
    way = "forward" if step > 0 else "back"
    return Finding("clock", f"{step:.0f}", f"its clock was set {way} by {abs(step):.1f} s")
