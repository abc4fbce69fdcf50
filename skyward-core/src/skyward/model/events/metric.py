"""
What is measured on each node while a pool is up, and what `sky.metrics` is.

    sky.Image(metrics=[sky.metrics.CPU(interval=1.0), sky.metrics.GPUMemory(), sky.metrics.Disk("/data")])
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_args

import attrs
from attrs import frozen

from skyward.errors import ConfigError
from skyward.model.fields.duration import seconds

__all__ = [
    "CPU",
    "GPU",
    "Collector",
    "Custom",
    "Default",
    "Disk",
    "GPUMemory",
    "GPUMemoryTotal",
    "GPUTemp",
    "Memory",
    "MemoryTotal",
    "MemoryUsed",
    "NetworkRx",
    "NetworkTx",
    "Source",
]

Source = Literal[
    "cpu",
    "memory",
    "memory_used",
    "memory_total",
    "gpu",
    "gpu_memory",
    "gpu_memory_total",
    "gpu_temp",
    "disk",
    "network_rx",
    "network_tx",
    "command",
]


def _says_something(given: object) -> bool:
    """Return whether something is text that is not blank."""
    return isinstance(given, str) and bool(given.strip())


def _interval(given: object) -> float:
    """Return an interval, which has to be above zero."""
    interval = seconds(given, "interval")
    if interval == 0:
        raise ConfigError("interval must be above zero, because a measurement takes time.")
    return interval


@frozen(kw_only=True)
class Collector:
    """
    Say what is measured, and how often.

    Args:
        name: Name that the measurements carry.
        source: Where they come from; `"command"` for the output of a command.
        unit: What they are counted in.
        interval: Seconds from one measurement to the next, above zero.
        argument: The path with `"disk"`, the interface with the network (all of them without), the command with
            `"command"`.

    Raises:
        ConfigError: If the interval is not finite and above zero, or a text that is needed is missing.

    >>> Collector(name="load", source="command", argument="cut -d' ' -f1 /proc/loadavg", interval=3).interval
    3.0
    """

    name: str
    source: Source
    unit: str = ""
    interval: float = attrs.field(default=1.0, converter=_interval)
    argument: str | None = None

    def __attrs_post_init__(self) -> None:
        if self.source not in get_args(Source):
            raise ConfigError(
                f"source={self.source!r} can't be measured.", hint=f"One of {', '.join(get_args(Source))}."
            )
        if not _says_something(self.name):
            raise ConfigError(f"name must be the metric's name, not {self.name!r}.")
        needed = {"disk": "path", "command": "command"}.get(self.source)
        if not _says_something(self.argument) and (needed is not None or self.argument is not None):
            raise ConfigError(f"{needed or 'interface'} must be text that is not empty, not {self.argument!r}.")

    def to_dict(self) -> dict[str, Any]:
        """
        Return the fields as JSON can hold them.

        >>> Collector.from_dict(CPU().to_dict()) == CPU()
        True
        """
        return attrs.asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Collector:
        """Build one from what `to_dict` gave, ignoring unknown keys."""
        known = {field.name for field in attrs.fields(cls)}
        return cls(**{name: value for name, value in data.items() if name in known})


def CPU(*, interval: float = 1.0) -> Collector:
    """
    Measure how busy the processors are, in percent of all of them.

    Args:
        interval: Seconds from one measurement to the next.

    >>> CPU(interval=2).unit
    '%'
    """
    return Collector(name="cpu_percent", source="cpu", unit="%", interval=interval)


def Memory(*, interval: float = 1.0) -> Collector:
    """
    Measure how much of the main memory is in use, in percent.

    Args:
        interval: Seconds from one measurement to the next.

    >>> Memory().name
    'memory_percent'
    """
    return Collector(name="memory_percent", source="memory", unit="%", interval=interval)


def MemoryUsed(*, interval: float = 1.0) -> Collector:
    """
    Measure how much main memory is in use, in MB.

    Args:
        interval: Seconds from one measurement to the next.

    >>> MemoryUsed().name
    'memory_used_mb'
    """
    return Collector(name="memory_used_mb", source="memory_used", unit="MB", interval=interval)


def MemoryTotal(*, interval: float = 1.0) -> Collector:
    """
    Measure how much main memory there is, in MB.

    Args:
        interval: Seconds from one measurement to the next.

    >>> MemoryTotal().name
    'memory_total_mb'
    """
    return Collector(name="memory_total_mb", source="memory_total", unit="MB", interval=interval)


def GPU(*, interval: float = 1.0) -> Collector:
    """
    Measure how busy the GPUs are, in percent, each by itself.

    Args:
        interval: Seconds from one measurement to the next.

    >>> GPU(interval=2.0).name
    'gpu_utilization'
    """
    return Collector(name="gpu_utilization", source="gpu", unit="%", interval=interval)


def GPUMemory(*, interval: float = 1.0) -> Collector:
    """
    Measure how much of the GPUs' memory is in use, in MB, each by itself.

    Args:
        interval: Seconds from one measurement to the next.

    >>> GPUMemory().name
    'gpu_memory_used_mb'
    """
    return Collector(name="gpu_memory_used_mb", source="gpu_memory", unit="MB", interval=interval)


def GPUMemoryTotal(*, interval: float = 1.0) -> Collector:
    """
    Measure how much memory the GPUs have, in MB, each by itself.

    Args:
        interval: Seconds from one measurement to the next.

    >>> GPUMemoryTotal().name
    'gpu_memory_total_mb'
    """
    return Collector(name="gpu_memory_total_mb", source="gpu_memory_total", unit="MB", interval=interval)


def GPUTemp(*, interval: float = 1.0) -> Collector:
    """
    Measure how hot the GPUs are, in degrees Celsius, each by itself.

    Args:
        interval: Seconds from one measurement to the next.

    >>> GPUTemp().name
    'gpu_temperature'
    """
    return Collector(name="gpu_temperature", source="gpu_temp", unit="°C", interval=interval)


def Disk(path: str = "/", *, interval: float = 5.0) -> Collector:
    """
    Measure how full the file system is that a path lies on, in percent.

    Args:
        path: The path; the name of the metric carries it.
        interval: Seconds from one measurement to the next.

    >>> Disk("/data").name
    'disk_percent:/data'
    """
    return Collector(name=f"disk_percent:{path}", source="disk", unit="%", interval=interval, argument=path)


def NetworkRx(interface: str | None = None, *, interval: float = 1.0) -> Collector:
    """
    Measure what the network brings in, in bytes a second.

    Args:
        interface: Name of the interface; all but the loopback together where it is not given.
        interval: Seconds from one measurement to the next.

    >>> NetworkRx().name
    'network_rx_bytes_per_s'
    """
    return _network("network_rx", interface, interval)


def NetworkTx(interface: str | None = None, *, interval: float = 1.0) -> Collector:
    """
    Measure what goes out to the network, in bytes a second.

    Args:
        interface: Name of the interface; all but the loopback together where it is not given.
        interval: Seconds from one measurement to the next.

    >>> NetworkTx("eth0").name
    'network_tx_bytes_per_s:eth0'
    """
    return _network("network_tx", interface, interval)


def Custom(name: str, command: str, interval: float = 3) -> Collector:
    """
    Measure the number that a command writes to its standard output.

    Args:
        name: Name that the measurements carry.
        command: The command, for `sh -c`.
        interval: Seconds from one run to the next.

    >>> Custom("users", "who | wc -l").interval
    3.0
    """
    return Collector(name=name, source="command", interval=interval, argument=command)


def Default(*, interval: float = 1.0, gpu: bool = True) -> tuple[Collector, ...]:
    """
    Measure what consoles and the `Metrics` event show.

    Args:
        interval: Seconds from one measurement to the next.
        gpu: Whether to measure GPUs where there are any.

    >>> len(Default()), len(Default(gpu=False))
    (8, 4)
    """
    always = (CPU, Memory, MemoryUsed, MemoryTotal)
    of_gpus = (GPU, GPUMemory, GPUMemoryTotal, GPUTemp) if gpu else ()
    return tuple(measure(interval=interval) for measure in (*always, *of_gpus))


def _network(source: Literal["network_rx", "network_tx"], interface: str | None, interval: float) -> Collector:
    """Return the collector of one direction of the network."""
    name = f"{source}_bytes_per_s" + (f":{interface}" if interface is not None else "")
    return Collector(name=name, source=source, unit="B/s", interval=interval, argument=interface)
