"""
What the texts of a Linux kernel and of `nvidia-smi` say: pure functions, which return None where they say nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

GPU_FIELDS: Mapping[str, str] = {
    "gpu": "utilization.gpu",
    "gpu_memory": "memory.used",
    "gpu_memory_total": "memory.total",
    "gpu_temp": "temperature.gpu",
}
"""What `nvidia-smi --query-gpu` calls each source."""

_KB_PER_MB = 1024
# The guests' time, which follows, is in the user's time already.
_CPU_FIELDS = 8


class CPUTimes(NamedTuple):
    """How long the processors have worked and been there since the machine started, in the kernel's ticks."""

    busy: int
    total: int


class Memory(NamedTuple):
    """Main memory, in MB."""

    used: float
    total: float


class Traffic(NamedTuple):
    """Bytes that came in and went out since the machine started."""

    received: int
    sent: int


def cpu_times(stat: str) -> CPUTimes | None:
    """
    Read `/proc/stat`.

    >>> cpu_times("cpu  10 0 10 70 10 0 0 0 5 0")
    CPUTimes(busy=20, total=100)
    """
    for line in stat.splitlines():
        name, *ticks = line.split() or [""]
        if name == "cpu" and len(ticks) >= 4 and all(tick.isdecimal() for tick in ticks):
            times = [int(tick) for tick in ticks[:_CPU_FIELDS]]
            # Idle, and waiting for a disk: kernels before 2.6 do not count the latter.
            return CPUTimes(sum(times) - sum(times[3:5]), sum(times))
    return None


def cpu_percent(before: CPUTimes, after: CPUTimes) -> float | None:
    """
    Return how busy the processors were between two readings, 0 to 100.

    >>> cpu_percent(CPUTimes(20, 100), CPUTimes(70, 200))
    50.0
    """
    passed = after.total - before.total
    if passed <= 0:
        return None
    # The kernel's idle time may step back a little.
    return min(100.0, max(0.0, 100.0 * (after.busy - before.busy) / passed))


def memory(meminfo: str) -> Memory | None:
    """
    Read `/proc/meminfo`; what caches would free is not in use.

    >>> memory("MemTotal: 2048 kB\\nMemFree: 100 kB\\nMemAvailable: 1024 kB")
    Memory(used=1.0, total=2.0)
    """
    sizes = {}
    for line in meminfo.splitlines():
        name, _, rest = line.partition(":")
        words = rest.split()
        if words and words[0].isdecimal():
            sizes[name.strip()] = int(words[0])
    total = sizes.get("MemTotal", 0)
    available = sizes.get("MemAvailable")
    if available is None and "MemFree" in sizes:
        # Kernels before 3.14 leave the sum to the reader; shared memory is counted as cache and is in use.
        cached = sum(sizes.get(name, 0) for name in ("Buffers", "Cached", "SReclaimable"))
        available = sizes["MemFree"] + max(0, cached - sizes.get("Shmem", 0))
    if not total or available is None:
        return None
    return Memory(max(0, total - available) / _KB_PER_MB, total / _KB_PER_MB)


def traffic(dev: str, interface: str | None = None) -> Traffic | None:
    """
    Read `/proc/net/dev`.

    Args:
        dev: The text.
        interface: Name of the interface; all but the loopback together where it is not given.

    >>> traffic("lo: 9 0 0 0 0 0 0 0 9\\neth0:100 0 0 0 0 0 0 0 50 0 0 0 0 0 0 0")
    Traffic(received=100, sent=50)
    """
    received = sent = found = 0
    for line in dev.splitlines():
        name, _, rest = line.rpartition(":")
        words, name = rest.split(), name.strip()
        if len(words) < 9 or not (words[0].isdecimal() and words[8].isdecimal()):
            continue
        if name == interface or (interface is None and name != "lo"):
            received, sent, found = received + int(words[0]), sent + int(words[8]), found + 1
    return Traffic(received, sent) if found else None


def rate(before: int, after: int, seconds: float) -> float | None:
    """
    Return what a counter grew by in a second; None if it began again in between.

    >>> rate(100, 300, 2.0)
    100.0
    """
    return (after - before) / seconds if seconds > 0 and after >= before else None


def disk_percent(blocks: int, free: int, available: int) -> float | None:
    """
    Return how full a file system is, as `df` counts: what is kept for root is neither used nor free.

    >>> disk_percent(blocks=100, free=55, available=45)
    50.0
    """
    used = blocks - free
    return 100.0 * used / (used + available) if used + available > 0 else None


def number(text: str) -> float | None:
    """
    Return the one number that a text holds.

    >>> number(" 3.5\\n"), number("[N/A]"), number("nan")
    (3.5, None, None)
    """
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def gpu_query(sources: Sequence[str]) -> tuple[str, ...]:
    """
    Return the command that lists the GPUs.

    >>> gpu_query(["gpu", "gpu_temp"])[1]
    '--query-gpu=index,utilization.gpu,temperature.gpu'
    """
    fields = ",".join(["index", *(GPU_FIELDS[source] for source in sources)])
    return ("nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader,nounits")


def gpus(output: str, sources: Sequence[str]) -> dict[int, dict[str, float]] | None:
    """
    Read what `gpu_query` printed: by the GPU's index, and by the source; what a GPU does not report is left out.

    >>> gpus("0, 35, 41\\n1, [N/A], 39\\n", ["gpu", "gpu_temp"])
    {0: {'gpu': 35.0, 'gpu_temp': 41.0}, 1: {'gpu_temp': 39.0}}
    """
    found = {}
    for line in output.splitlines():
        index, *cells = (cell.strip() for cell in line.split(","))
        if index.isdecimal() and len(cells) == len(sources):
            values = {source: number(cell) for source, cell in zip(sources, cells, strict=True)}
            found[int(index)] = {source: value for source, value in values.items() if value is not None}
    return found or None
