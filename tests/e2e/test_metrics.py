"""What an image asks for is measured on every node, and what goes wrong with that harms nothing."""

from __future__ import annotations

import os
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import skyward as sky
from skyward.model.events.metric import Collector
from tests.waiting import until


@sky.function
def double(x: int) -> int:
    return 2 * x


def _open(metrics: Any, heard: list[Any], **options: Any) -> sky.Compute:
    pool = sky.Compute(image=sky.Image(metrics=metrics), console="silent", logging=False, **options)
    return pool.on(sky.SkywardEvent, heard.append)


def _metrics(heard: list[Any], name: str) -> list[sky.Metric]:
    return [event for event in list(heard) if isinstance(event, sky.Metric) and event.name == name]


def _snapshots(heard: list[Any]) -> list[sky.Metrics]:
    return [event for event in list(heard) if isinstance(event, sky.Metrics)]


def _errors(heard: list[Any]) -> list[str]:
    return [event.message for event in list(heard) if isinstance(event, sky.Error)]


@pytest.fixture
def nvidia_smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put a command of this name before all others; each call leaves a line of its arguments."""
    command = tmp_path / "nvidia-smi"
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    calls = tmp_path / "calls"
    gpus = 'echo "0, 41, 1000, 8000, 40"\necho "1, [N/A], 3000, 8000, 60"'
    command.write_text(f'#!/bin/sh\necho "$*" >> {calls}\n{gpus}\n')
    command.chmod(0o755)
    return calls


@pytest.mark.slow
def test_every_node_is_measured_by_default() -> None:
    """Snapshots of all nodes come about once a second, with values that can be."""
    heard: list[Any] = []
    pool = sky.Compute(nodes=2, console="silent", logging=False).on(sky.SkywardEvent, heard.append)
    with pool:
        until(lambda: all(sum(one.node == node for one in _snapshots(heard)) >= 3 for node in (0, 1)))
    for one in _snapshots(heard):
        assert 0 <= one.cpu_percent <= 100
        assert 0 < one.memory_used_mb < one.memory_total_mb
        assert one.memory_percent == pytest.approx(100 * one.memory_used_mb / one.memory_total_mb, abs=0.01)
        assert one.instance is not None
        assert (one.node, one.instance_id) == (one.instance.node, one.instance.id)
    times = [one.at for one in _snapshots(heard) if one.node == 0]
    assert min(after - before for before, after in pairwise(times)) > 0.5
    assert {"%", "MB"} <= {event.unit for event in heard if isinstance(event, sky.Metric)}


@pytest.mark.slow
def test_all_that_can_be_asked_for_at_home() -> None:
    """Disk, network and commands, in one pool; what can't be found on this machine is left out quietly."""
    asked = [
        sky.metrics.Disk("/", interval=0.2),
        sky.metrics.NetworkRx("lo", interval=0.2),
        sky.metrics.NetworkTx(interval=0.2),
        sky.metrics.NetworkTx("nosuch0", interval=0.2),
        sky.metrics.Custom("answer", "echo 42", interval=0.2),
        Collector(name="load", source="cpu", interval=0.2),
    ]
    heard: list[Any] = []
    names = ("disk_percent:/", "network_rx_bytes_per_s:lo", "answer", "load")
    with _open(asked, heard):
        until(lambda: all(len(_metrics(heard, name)) >= 2 for name in names))
    assert {42.0} == {event.value for event in _metrics(heard, "answer")}
    assert all(0 <= event.value <= 100 for event in _metrics(heard, "disk_percent:/"))
    assert not _metrics(heard, "network_tx_bytes_per_s:nosuch0")
    assert not _snapshots(heard)
    assert not _errors(heard)


@pytest.mark.slow
def test_collect_metrics_false_measures_nothing(tmp_path: Path) -> None:
    """Not even commands are run."""
    heard: list[Any] = []
    asked = [sky.metrics.CPU(interval=0.1), sky.metrics.Custom("touch", f"touch {tmp_path}/ran; echo 1", interval=0.1)]
    with _open(asked, heard, collect_metrics=False) as pool:
        until_s = time.monotonic() + 1.0
        while time.monotonic() < until_s:
            assert 2 == double(1) >> pool
    assert not [event for event in heard if isinstance(event, (sky.Metric, sky.Metrics))]
    assert not (tmp_path / "ran").exists()


@pytest.mark.slow
def test_commands_that_hang_or_fail_harm_nothing(tmp_path: Path) -> None:
    """Other metrics and calls go on, each trouble is reported once, and nothing is left behind."""
    pids = tmp_path / "pids"
    asked = [
        sky.metrics.Custom("hangs", f"echo $$ >> {pids}; sleep 1000; echo 1", interval=0.1),
        sky.metrics.Custom("fails", "exit 3", interval=0.1),
        sky.metrics.Custom("talks", "echo so many", interval=0.1),
        sky.metrics.Custom("endless", "yes", interval=0.1),
        sky.metrics.Custom("works", "echo 1", interval=0.1),
        sky.metrics.Disk("/no/such/path", interval=0.1),
    ]
    heard: list[Any] = []
    with _open(asked, heard) as pool:
        until(lambda: len(_errors(heard)) >= 4 and pids.exists() and pids.read_text())
        count = len(_metrics(heard, "works"))
        until(lambda: len(_metrics(heard, "works")) > count + 5)
        assert 4 == double(2) >> pool
    errors = sorted(error.partition(": ")[2] for error in _errors(heard))
    assert ["disk_percent:/no/such/path", "endless", "fails", "talks"] == [error.split()[0] for error in errors]
    assert "No such file or directory" in errors[0]
    assert "more than a number" in errors[1]
    assert "exit code 3" in errors[2]
    assert "no number, but 'so many'" in errors[3]
    assert 1 == len(pids.read_text().split())
    until(lambda: not Path(f"/proc/{pids.read_text().strip()}").exists())


@pytest.mark.slow
def test_gpus_are_asked_for_with_one_call_a_tick(nvidia_smi: Path) -> None:
    """Each GPU's values come by themselves, and together under the plain name and in the snapshot."""
    heard: list[Any] = []
    with _open(sky.metrics.Default(interval=0.2), heard):
        until(lambda: any(one.gpu_temperature for one in _snapshots(heard)))
    assert {41.0} == {event.value for event in _metrics(heard, "gpu_utilization:0")}
    assert not _metrics(heard, "gpu_utilization:1")
    assert {41.0} == {event.value for event in _metrics(heard, "gpu_utilization")}
    assert {4000.0} == {event.value for event in _metrics(heard, "gpu_memory_used_mb")}
    last = _snapshots(heard)[-1]
    gpu = (last.gpu_utilization, last.gpu_memory_used_mb, last.gpu_memory_total_mb, last.gpu_temperature)
    assert (41.0, 4000.0, 16000.0, 60.0) == gpu
    calls = nvidia_smi.read_text().splitlines()
    fields = "index,utilization.gpu,memory.used,memory.total,temperature.gpu"
    # Beside them the agent's own look at the health of GPUs.
    of_metrics = {call for call in calls if "ecc.errors" not in call}
    assert {f"--query-gpu={fields} --format=csv,noheader,nounits"} == of_metrics
    assert not _errors(heard)


@pytest.mark.slow
def test_an_nvidia_smi_that_fails_is_told_once(nvidia_smi: Path) -> None:
    """The rest is measured all the same."""
    command = nvidia_smi.with_name("nvidia-smi")
    command.write_text("#!/bin/sh\necho 'NVIDIA-SMI has failed'\nexit 9\n")
    heard: list[Any] = []
    with _open(sky.metrics.Default(interval=0.1), heard):
        until(lambda: _errors(heard) and len(_metrics(heard, "cpu_percent")) >= 20)
    (error,) = _errors(heard)
    assert "exit code 9" in error
    assert "gpu_temperature" in error
