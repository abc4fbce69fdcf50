"""
`sky.metrics` says what is measured and how often.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable

import pytest

from skyward.errors import ConfigError
from skyward.model.events import metric as metrics
from skyward.model.events.metric import Collector

PLAIN: list[Callable[..., Collector]] = [
    metrics.CPU,
    metrics.Memory,
    metrics.MemoryUsed,
    metrics.MemoryTotal,
    metrics.GPU,
    metrics.GPUMemory,
    metrics.GPUMemoryTotal,
    metrics.GPUTemp,
    metrics.Disk,
    metrics.NetworkRx,
    metrics.NetworkTx,
]


@pytest.mark.parametrize("measure", PLAIN)
def test_the_interval_can_be_chosen(measure: Callable[..., Collector]) -> None:
    """Every factory takes an interval, in seconds."""
    assert 2.5 == measure(interval=2.5).interval


@pytest.mark.parametrize("measure", PLAIN)
@pytest.mark.parametrize("interval", [-1, math.nan, math.inf, "1", True, None])
def test_an_interval_is_a_length_of_time(measure: Callable[..., Collector], interval: object) -> None:
    """What is no length of time is refused by name."""
    with pytest.raises(ConfigError, match=r"^interval must be a "):
        measure(interval=interval)


def test_an_interval_is_above_zero() -> None:
    """Nothing can be measured all the time."""
    with pytest.raises(ConfigError, match=r"^interval must be above zero"):
        metrics.CPU(interval=0)


def test_names_and_sources_differ() -> None:
    """No two factories measure the same or call it the same."""
    made = [measure() for measure in PLAIN]
    assert len(PLAIN) == len({one.name for one in made}) == len({one.source for one in made})


def test_places_are_told_apart() -> None:
    """Two paths or interfaces are two metrics."""
    assert metrics.Disk("/data").name != metrics.Disk("/").name
    assert metrics.NetworkRx("eth0").name != metrics.NetworkRx("eth1").name


def test_a_command_of_the_users_own_can_be_measured() -> None:
    """`Custom` takes name and command, and runs it every three seconds."""
    load = metrics.Custom("load", "cut -d' ' -f1 /proc/loadavg")
    assert ("load", "command", 3.0, "cut -d' ' -f1 /proc/loadavg") == (
        load.name,
        load.source,
        load.interval,
        load.argument,
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(("", "true"), "^name must be"), (("x", " "), "^command must be"), (("x", None), "^command must be")],
)
def test_a_command_needs_a_name_and_text(arguments: tuple[str, str], message: str) -> None:
    """Blank names and commands are refused by name."""
    with pytest.raises(ConfigError, match=message):
        metrics.Custom(*arguments)


def test_a_disk_needs_a_path() -> None:
    """A blank path is refused."""
    with pytest.raises(ConfigError, match=r"^path must be text that is not empty"):
        metrics.Disk("")


def test_an_unknown_source_is_refused() -> None:
    """The error lists what can be measured."""
    with pytest.raises(ConfigError, match=r"source='weather' can't be measured. One of cpu, memory"):
        Collector(name="weather", source="weather")  # type: ignore[arg-type]


def test_the_default_set_is_what_the_snapshot_shows() -> None:
    """`Default` measures each field of the snapshot event once."""
    expected = {
        "cpu_percent",
        "memory_percent",
        "memory_used_mb",
        "memory_total_mb",
        "gpu_utilization",
        "gpu_memory_used_mb",
        "gpu_memory_total_mb",
        "gpu_temperature",
    }
    assert expected == {one.name for one in metrics.Default()}
    assert {2.0} == {one.interval for one in metrics.Default(interval=2)}


@pytest.mark.parametrize("one", [*metrics.Default(), metrics.Disk("/data"), metrics.Custom("x", "true", 9)])
def test_a_collector_survives_json(one: Collector) -> None:
    """Collectors reach the node as JSON; unknown keys are ignored."""
    assert one == Collector.from_dict({**json.loads(json.dumps(one.to_dict())), "colour": "blue"})
