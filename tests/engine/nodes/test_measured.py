"""Snapshots of what a node measures: complete ones only, not too often, GPUs taken together."""

from __future__ import annotations

from skyward.engine.nodes.measured import SNAPSHOT_INTERVAL, Measured, Row, of_all_gpus

NEEDED: list[Row] = [
    ("cpu", "cpu", "%", 5.0),
    ("memory", "memory", "%", 50.0),
    ("memory_used", "used", "MB", 10.0),
    ("memory_total", "total", "MB", 20.0),
]


def test_nothing_is_told_before_all_is_measured_that_is_needed() -> None:
    """Whatever the order."""
    measured = Measured()
    assert [{}] * 3 == [measured.snapshot([row], now=0.0) for row in reversed(NEEDED[1:])]
    assert 5.0 == measured.snapshot(NEEDED[:1], now=0.0)["cpu_percent"]


def test_snapshots_have_their_distance() -> None:
    """What comes earlier is reported with the next one."""
    measured = Measured()
    assert measured.snapshot(NEEDED, now=0.0)
    assert {} == measured.snapshot([("cpu", "cpu", "%", 99.0)], now=0.9 * SNAPSHOT_INTERVAL)
    assert 99.0 == measured.snapshot([("memory", "memory", "%", 1.0)], now=SNAPSHOT_INTERVAL)["cpu_percent"]


def test_gpus_are_taken_together() -> None:
    """The mean of their load, the sum of their memory, the highest temperature."""
    gpus = [
        (source, f"{source}{gpu}", "", value + gpu)
        for source, value in (("gpu", 10.0), ("gpu_memory", 100.0), ("gpu_memory_total", 200.0), ("gpu_temp", 60.0))
        for gpu in (0, 2)
    ]
    told = Measured().snapshot([*NEEDED, *gpus], now=0.0)
    assert (11.0, 202.0, 402.0, 62.0) == (
        told["gpu_utilization"],
        told["gpu_memory_used_mb"],
        told["gpu_memory_total_mb"],
        told["gpu_temperature"],
    )


def test_metrics_of_the_user_s_own_are_no_part_of_it() -> None:
    """Nor an occasion for one."""
    measured = Measured()
    assert {"cpu_percent", "memory_percent", "memory_used_mb", "memory_total_mb"} == {
        *measured.snapshot([*NEEDED, ("command", "mine", "", 1.0)], now=0.0)
    }
    assert {} == measured.snapshot([("command", "mine", "", 1.0)], now=10.0)


def test_what_is_no_gpus_is_not_taken_together() -> None:
    """A disk's path and an interface follow a colon as well; a collector's own name may have one."""
    others: list[Row] = [("disk", "disk_percent:/data", "%", 5.0), ("network_rx", "rx:eth0", "B/s", 1.0), *NEEDED]
    own: list[Row] = [("gpu", "lab:load:0", "%", 10.0), ("gpu", "lab:load:1", "%", 20.0)]
    assert [] == of_all_gpus(others)
    assert [("gpu", "lab:load", "%", 15.0)] == of_all_gpus([*others, *own])
