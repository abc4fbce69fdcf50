"""Have a fault happen to a pool on a test cloud, and see what comes of it and what is left."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve, field, frozen

import skyward as sky
from skyward.engine.guardian import guardian_client
from tests.seeds import some
from tests.waiting import until

WORKED = "working pool"

USUAL: Mapping[str, Any] = {
    "allocation": "on-demand",
    "bootstrap_timeout": 20,
    "provision_retry_delay": 0.1,
    "console": False,
    "logging": False,
}
"""What every pool is given, besides its machine."""

_GOING = ("shutting-down", "ending")


@sky.function
def add(a: int, b: int) -> int:
    """Add."""
    return a + b


@sky.function
def second_time(folder: str) -> int:
    """Wait for the end the first time, and come back the second time."""
    mark = Path(folder, "begun")
    if mark.exists():
        return 5
    mark.touch()
    time.sleep(40)
    return 0


def take_back(cloud: Any, row: Mapping[str, Any]) -> None:
    """Take a machine, as this cloud takes those of its kind."""
    (cloud.interrupt if row["spot"] else cloud.terminate)(row["id"])


@frozen
class Fault:
    """
    One fault.

    Args:
        name: What the page calls it.
        provoke: Has it happen.
        works: Whether the pool works all the same.
        options: What the pool is given.
        provider: What the provider is given.
        when: The event of the pool at which the machine is taken, or `"task"`; empty for never.
        without: Variables that the client has not.
        meets: Whether a request has to meet it.
        take: Takes a machine.
        over: Whether it is over when the pool was left: a guardian ends nothing before.
        everywhere: Whether every cloud has it alike, so that what core makes of it needs no proof here; see `marked`.
    """

    name: str
    provoke: Callable[[Any], None] = lambda cloud: None
    works: bool = True
    options: Mapping[str, Any] = field(factory=dict)
    provider: Mapping[str, Any] = field(factory=dict)
    when: str = ""
    without: tuple[str, ...] = ()
    meets: bool = False
    take: Callable[[Any, Mapping[str, Any]], None] = take_back
    over: bool = False
    everywhere: bool = False


def everywhere(fault: Fault) -> Fault:
    """Say that every cloud has a fault alike."""
    return evolve(fault, everywhere=True)


def marked(cloud: str, faults: Iterable[Fault]) -> list[Any]:
    """
    Mark the faults of a cloud for its test.

    What is a cloud's own runs in the suite `clouds`, a third of it in a run that has a share of what is drawn. What
    every cloud has alike runs there on AWS and on the rehearsal cloud only; tests/clouds/renting asks each provider's
    hooks for its part, and `everything` runs the whole way.

    Args:
        cloud: What the page calls the cloud.
        faults: The faults.
    """
    faults = tuple(faults)
    own = drawn(cloud, [fault for fault in faults if not fault.everywhere])
    return [
        *(pytest.param(fault, id=fault.name, marks=pytest.mark.clouds) for fault in own),
        *(pytest.param(fault, id=fault.name, marks=pytest.mark.everything) for fault in faults if fault.everywhere),
    ]


def drawn(cloud: str, faults: Sequence[Fault]) -> list[Fault]:
    """
    Return the faults of a cloud that this run provokes: all, or a third of them where a run has less than all.

    Args:
        cloud: What the page calls the cloud.
        faults: The faults.
    """
    return some(f"faults of {cloud}", faults, least=0.34)


@frozen
class Row:
    """
    What came of a fault.

    Args:
        outcome: A working pool, or the error.
        instances: Machines in the cloud's books.
        processes: Processes that live.
    """

    outcome: str
    instances: int
    processes: int


def provoke(fault: Fault, cloud: Any, machine: str) -> Row:
    """
    Have one fault happen to a pool, and see what comes of it.

    Args:
        fault: The fault.
        cloud: The cloud; calm, and with its variables in the environment.
        machine: The kind of machine that the pool gets if the fault says nothing.
    """
    with _without(fault.without), _hurried_guardians():
        fault.provoke(cloud)
        outcome = _outcome(fault, cloud, {"machine": machine, **USUAL, **fault.options})
        assert cloud.met() or not fault.meets, "no request met the fault"
        if fault.over:
            assert cloud.alive(), "nothing was left to a guardian"
            cloud.calm()
        # What a pool could not give back its guardian does.
        until(lambda: not _guardians(), 40)
    cloud.calm()
    with contextlib.suppress(AssertionError):
        until(lambda: not any(row["state"] in _GOING for row in cloud.instances()), 10)
    left = living(_front(cloud), 10)
    # They are counted in this row, and in none after it.
    for pid in left:
        with contextlib.suppress(OSError):
            print(f"left: {Path(f'/proc/{pid}/cmdline').read_bytes()!r}")
            os.kill(pid, signal.SIGKILL)
    return Row(outcome, len(cloud.alive()), len(left))


def said(error: BaseException) -> str:
    """Give an error's type and the first line that it says, without what differs from run to run."""
    line = re.sub(r"\b([im])-[0-9a-f]{8,}", r"\1-…", str(error).splitlines()[0])
    line = re.sub(r"sg-[0-9a-f]{8,}|subnet-[0-9a-f]{8,}|\b[0-9]{7,}\b", "…", line)
    line = re.sub(r"(?<=[Pp]ool ')[^']*|(?<=process )\d+|(?<=sky down )\w+", "…", line)
    return f"`{type(error).__name__}`: {line.strip()}".replace("|", "\\|").replace("<", "&lt;")


def living(front: str, patience: float = 0.0) -> list[int]:
    """List the processes that live in a directory whose path begins so, once those that end had some seconds to."""
    deadline = time.monotonic() + patience
    while (found := _living(front)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return found


def _front(cloud: Any) -> str:
    return f"{cloud.folder}/"


def _living(front: str) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if front.encode() in (path / "environ").read_bytes() + (path / "cmdline").read_bytes():
                found.append(int(path.name))
    return found


_TRIES = 3
"""Pools that are opened until there was a machine to take: one that is being left may be ended before."""


def _outcome(fault: Fault, cloud: Any, options: dict[str, Any]) -> str:
    for _ in range(_TRIES):
        taken: list[str] = []
        outcome = _once(fault, cloud, options, taken)
        if taken or not fault.when or outcome != WORKED:
            return outcome
    raise AssertionError("nothing was taken")


def _once(fault: Fault, cloud: Any, options: dict[str, Any], taken: list[str]) -> str:

    def take() -> None:
        if not taken:
            for row in cloud.alive():
                taken.append(row["id"])
                fault.take(cloud, row)

    if fault.when and fault.when != "task":
        options["on_event"] = lambda event: take() if type(event).__name__ == fault.when else None
    with tempfile.TemporaryDirectory() as folder:
        try:
            with sky.Compute(provider=cloud.provider(**fault.provider), **options) as pool:
                if fault.when == "task":
                    future = second_time(folder) > pool
                    until(Path(folder, "begun").exists)
                    take()
                    result = future.result(timeout=60)
                else:
                    result = add(2, 3) >> pool
                assert living(_front(cloud)), "living processes are not seen"
        except sky.SkywardError as error:
            return said(error)
    assert result == 5
    return WORKED


def _guardians() -> list[int]:
    """List the guardians that this process started."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            state, parent = (path / "stat").read_text().rpartition(")")[2].split()[:2]
            guards = b"skyward.engine.guardian.guardian_process" in (path / "cmdline").read_bytes()
            if guards and int(parent) == os.getpid() and state != "Z":
                found.append(int(path.name))
    return found


@contextlib.contextmanager
def _hurried_guardians() -> Iterator[None]:
    """Have guardians believe that nothing is left after a second; it is a minute outside of tests."""
    before = guardian_client.APPEARING
    guardian_client.APPEARING = 1.0
    try:
        yield
    finally:
        guardian_client.APPEARING = before


@contextlib.contextmanager
def _without(names: tuple[str, ...]) -> Iterator[None]:
    before = {name: os.environ.pop(name) for name in names}
    try:
        yield
    finally:
        os.environ.update(before)
