"""
What is asked of `nvidia-smi`, and how its answers are read.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from attrs import frozen

__all__ = ["Gpu", "SmiError", "create", "destroy", "devices_in", "disable", "enable", "gpus", "instances"]

T = TypeVar("T")

TIMEOUT = 120.0
"""Seconds that one command has; a change of mode resets the GPU."""

PATIENCE = 30.0
"""Seconds for which a device may be in use that is about to be given up, such as by a process that has just ended."""

_IN_USE = "In use by another client"
_INSTANCE = re.compile(r"^\|\s+\d+\s+MIG \S+\s+\d+\s+(\d+)\s+\d+:\d+\s+\|$", re.MULTILINE)
_CREATED = re.compile(r"^Successfully created GPU instance ID\s+(\d+) ", re.MULTILINE)
_GPU = re.compile(r"^GPU \d+: .*\(UUID: (GPU-[^)]+)\)")
_DEVICE = re.compile(r"^\s+MIG \S+\s+Device\s+\d+: \(UUID: (MIG-[^)]+)\)")


class SmiError(Exception):
    """
    A command that nvidia-smi refused.

    Args:
        command: The command.
        said: What it printed.
    """

    def __init__(self, command: str, said: str) -> None:
        super().__init__(f"{command}: {' '.join(said.split()) or 'it said nothing.'}")
        self.said = said


@frozen
class Gpu:
    """
    One GPU of a machine.

    Args:
        uuid: Its name.
        model: What it is.
        mode: `"Enabled"` or `"Disabled"`; anything else where it has no MIG.
    """

    uuid: str
    model: str
    mode: str


def gpus() -> tuple[Gpu, ...]:
    """List the GPUs of this machine."""
    said = _run("--query-gpu=uuid,name,mig.mode.current", "--format=csv,noheader")
    rows = [[cell.strip() for cell in line.split(",")] for line in said.splitlines()]
    return tuple(Gpu(*row) for row in rows if len(row) == 3)


def instances(gpu: str) -> tuple[int, ...]:
    """List the numbers of a GPU's instances."""
    try:
        said = _run("mig", "-i", gpu, "-lgi")
    except SmiError as error:
        if "No GPU instances found" in error.said or "No MIG-enabled devices found" in error.said:
            return ()
        raise
    return tuple(map(int, _INSTANCE.findall(said)))


def enable(gpu: str) -> None:
    """Switch MIG mode on, and wait until it is in force."""

    def tried() -> None:
        said = _run("-i", gpu, "-mig", "1", changes=True)
        # It ends well also where the mode is only to come with the next reset.
        if _run("-i", gpu, "--query-gpu=mig.mode.current", "--format=csv,noheader").strip() != "Enabled":
            raise SmiError("nvidia-smi -mig 1", said)

    _patiently(tried)


def disable(gpu: str) -> None:
    """Switch MIG mode off."""
    _patiently(lambda: _run("-i", gpu, "-mig", "0", changes=True))


def create(gpu: str, profile: str, count: int) -> tuple[int, ...]:
    """Make instances of one profile, each with a compute instance that has all of it, and return their numbers."""
    wanted = ",".join([profile] * count)
    return tuple(
        map(int, _CREATED.findall(_patiently(lambda: _run("mig", "-i", gpu, "-cgi", wanted, "-C", changes=True))))
    )


def destroy(gpu: str, wanted: Sequence[int]) -> None:
    """Destroy instances with their compute instances, which have to go first."""
    numbers = ",".join(map(str, wanted))

    def computes() -> None:
        try:
            _run("mig", "-i", gpu, "-dci", "-gi", numbers, changes=True)
        except SmiError as error:
            if "No compute instances found" not in error.said:
                raise

    _patiently(computes)
    _patiently(lambda: _run("mig", "-i", gpu, "-dgi", "-gi", numbers, changes=True))


def devices() -> str:
    """Return the list of GPUs and slices."""
    return _run("-L")


def devices_in(listed: str, gpu: str) -> tuple[str, ...]:
    """
    Read the names of a GPU's slices, by which CUDA knows them.

    Args:
        listed: What `nvidia-smi -L` prints.
        gpu: The GPU's name.

    >>> listed = "GPU 0: A100 (UUID: GPU-1)\\n  MIG 3g.40gb     Device  0: (UUID: MIG-2)\\nGPU 1: A100 (UUID: GPU-3)\\n"
    >>> devices_in(listed, "GPU-1"), devices_in(listed, "GPU-3")
    (('MIG-2',), ())
    """
    found, here = [], False
    for line in listed.splitlines():
        if match := _GPU.match(line):
            here = match[1] == gpu
        elif here and (match := _DEVICE.match(line)):
            found.append(match[1])
    return tuple(found)


def _run(*words: str, changes: bool = False) -> str:
    """Run nvidia-smi, as root where it is to change something, and return what it prints."""
    sudo = ("sudo", "-n") if changes and os.geteuid() != 0 and shutil.which("sudo") else ()
    command = f"nvidia-smi {' '.join(words)}"
    try:
        done = subprocess.run(
            [*sudo, "nvidia-smi", *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=TIMEOUT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise SmiError(command, f"it did not end within {TIMEOUT:g} s") from None
    except OSError as error:
        raise SmiError(command, f"it cannot be run: {error.strerror}") from None
    if done.returncode:
        raise SmiError(command, done.stdout)
    return done.stdout


def _patiently(do: Callable[[], T]) -> T:
    """Try again for a while what is refused because a device is in use."""
    deadline, pause = time.monotonic() + PATIENCE, 0.1
    while True:
        try:
            return do()
        except SmiError as error:
            if _IN_USE not in error.said or time.monotonic() > deadline:
                raise
        time.sleep(pause * random.uniform(0.5, 1.0))
        pause = min(2 * pause, 3.0)
