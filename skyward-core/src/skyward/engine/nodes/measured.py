"""The latest measurements of one node, and the snapshot of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from statistics import fmean
from typing import TypeAlias

MOST = 1024
"""Values of one source that are kept; a machine has far fewer GPUs."""

SNAPSHOT_INTERVAL = 0.9
"""Seconds between two snapshots at least; a bit less than the second at which most nodes measure."""

Row: TypeAlias = tuple[str, str, str, float]
"""Source, name, unit and value of one measurement."""

_FIELDS: Mapping[str, tuple[str, Callable[[Iterable[float]], float]]] = {
    "cpu": ("cpu_percent", max),
    "memory": ("memory_percent", max),
    "memory_used": ("memory_used_mb", max),
    "memory_total": ("memory_total_mb", max),
    "gpu": ("gpu_utilization", fmean),
    "gpu_memory": ("gpu_memory_used_mb", sum),
    "gpu_memory_total": ("gpu_memory_total_mb", sum),
    "gpu_temp": ("gpu_temperature", max),
}
_OF_GPUS = frozenset({"gpu", "gpu_memory", "gpu_memory_total", "gpu_temp"})
_NEEDED = frozenset({"cpu", "memory", "memory_used", "memory_total"})


def of_all_gpus(rows: Iterable[Row]) -> list[Row]:
    """
    Return what a node's GPUs measure together, under the collectors' own names: as `Metrics` has it.

    Args:
        rows: The measurements of the single GPUs, whose names end in their index, among others.

    >>> of_all_gpus([("gpu", "gpu_utilization:0", "%", 20.0), ("gpu", "gpu_utilization:1", "%", 40.0)])
    [('gpu', 'gpu_utilization', '%', 30.0)]
    """
    together: dict[tuple[str, str, str], list[float]] = {}
    for source, name, unit, value in rows:
        whole, indexed, _ = name.rpartition(":")
        if source in _OF_GPUS and indexed:
            together.setdefault((source, whole, unit), []).append(value)
    return [(*key, _FIELDS[key[0]][1](values)) for key, values in together.items()]


class Measured:
    """
    Keep the latest values of one node.

    >>> rows = [("cpu", "c", "%", 5.0), ("memory", "m", "%", 50.0), ("memory_used", "u", "MB", 1.0)]
    >>> measured = Measured()
    >>> measured.snapshot(rows, now=0.0)
    {}
    >>> measured.snapshot([("memory_total", "t", "MB", 2.0)], now=0.1)["memory_total_mb"]
    2.0
    """

    def __init__(self) -> None:
        self._latest: dict[str, dict[str, float]] = {}
        self._last = float("-inf")

    def snapshot(self, rows: Iterable[Row], now: float) -> dict[str, float]:
        """
        Take measurements over.

        Args:
            rows: The measurements.
            now: The time.

        Returns:
            The fields of `Metrics`; empty if one was made a moment ago, or what it needs is not measured.
        """
        changed = False
        for source, name, _, value in rows:
            latest = self._latest.setdefault(source, {}) if source in _FIELDS else {}
            if source in _FIELDS and (name in latest or len(latest) < MOST):
                latest[name] = value
                changed = True
        if not changed or now - self._last < SNAPSHOT_INTERVAL or not self._latest.keys() >= _NEEDED:
            return {}
        self._last = now
        return {
            field: merged(self._latest[source].values())
            for source, (field, merged) in _FIELDS.items()
            if source in self._latest
        }
