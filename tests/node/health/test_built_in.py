"""The built-in checks of an agent, with programs and files that stand in for broken ones."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from skyward.node.health.built_in import BuiltInChecks
from tests.node.health.agents import reaping
from tests.waiting import until_async

Scene = Callable[[BuiltInChecks, list[dict[str, Any]]], Any]


def look(directory: Path, scene: Scene) -> list[dict[str, Any]]:
    """Run the checks through a scene, and return what they reported."""
    told: list[dict[str, Any]] = []
    (directory / "kmsg").touch()

    async def run() -> None:
        checks = BuiltInChecks(
            asyncio.get_running_loop(),
            told.append,
            proc=str(directory),
            kernel_log=str(directory / "kmsg"),
            period=0.02,
        )
        reaping(checks, lambda: checks._command.pid if checks._command else None)
        checks.start([str(directory)])
        try:
            await scene(checks, told)
        finally:
            checks.stop()
            await until_async(lambda: checks._command is None)

    asyncio.run(run())
    return told


@pytest.fixture
def smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put a program in the place of nvidia-smi, and return the file that it prints."""
    programs, output = tmp_path / "bin", tmp_path / "gpus"
    programs.mkdir()
    program = programs / "nvidia-smi"
    program.write_text(f"#!/bin/sh\nprintf x >>{tmp_path}/asked\ncat {output}\n")
    program.chmod(0o755)
    output.write_text("GPU-1, 0\nGPU-2, 0\n")
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    return output


def test_a_gpu_that_falls_off_the_bus_is_certain(tmp_path: Path, smi: Path) -> None:
    """It is missing at two looks in a row."""

    async def scene(checks: BuiltInChecks, told: list[dict[str, Any]]) -> None:
        await until_async(lambda: checks._gpus is not None)
        await asyncio.to_thread(
            smi.write_text, "GPU-1, 0\nUnable to determine the device handle for GPU0000:CA:00.0: GPU is lost.\n"
        )
        await until_async(lambda: [each for each in told if each["check"] == "gpu"])

    told = [each for each in look(tmp_path, scene) if each["check"] == "gpu"]
    assert [("GPU-2 is gone: Unable to determine the device handle for GPU0000:CA:00.0: GPU is lost.", True)] == [
        (each["reason"], each["certain"]) for each in told
    ]


def test_the_kernels_log_is_read_from_now_on(tmp_path: Path) -> None:
    """What was there before is of another time."""
    line = "4,1,1,-;NVRM: Xid (PCI:0000:{}:00): 79, GPU has fallen off the bus.\n"
    (tmp_path / "kmsg").write_text(line.format("aa"))

    async def scene(checks: BuiltInChecks, told: list[dict[str, Any]]) -> None:
        with (tmp_path / "kmsg").open("a") as file:
            file.write(line.format("bb"))
        await until_async(lambda: [each for each in told if each["check"] == "gpu"])

    [only] = [each for each in look(tmp_path, scene) if each["check"] == "gpu"]
    assert only["certain"]
    assert "PCI:0000:bb:00" in only["reason"]


def test_short_memory_is_told_once(tmp_path: Path) -> None:
    """It is a warning, however often it is seen."""
    (tmp_path / "meminfo").write_text("MemTotal: 1000000 kB\nMemAvailable: 1000 kB\n")

    async def scene(checks: BuiltInChecks, told: list[dict[str, Any]]) -> None:
        await until_async(lambda: checks._looks > 5)

    [only] = [each for each in look(tmp_path, scene) if each["check"] == "memory"]
    assert not only["certain"]


def test_a_healthy_machine_is_silent(tmp_path: Path, smi: Path) -> None:
    """However often it is looked at."""

    async def scene(checks: BuiltInChecks, told: list[dict[str, Any]]) -> None:
        await until_async(lambda: checks._looks > 5 and (tmp_path / "asked").exists())

    assert [] == [each for each in look(tmp_path, scene) if each["check"] in ("gpu", "memory", "clock")]
