"""
Provoke each fault that a cloud can have, and write docs/faults.md: what comes of it, and what is left.

    python -m tests.clouds.aws.fault_table

What is left is read from the cloud's own books and from the processes that live on this machine; the journal of the
client is not asked.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from attrs import field, frozen

import skyward as sky
from skyward.testing import (
    DiesInBootstrap,
    LostResponse,
    NeverBoots,
    NoCapacity,
    Preempt,
    Quota,
    Rehearsal,
    TerminateFails,
    TooManyRequests,
    Unreachable,
)
from tests.clouds.aws.cloud import ROOT, Cloud, cloud, until

PAGE = ROOT / "docs" / "faults.md"
WORKED = "working pool"

_HEAD = """# Faults

<!-- Made by python -m tests.clouds.aws.fault_table; do not edit. -->

Each fault was provoked against the test cloud of AWS, over HTTP and on the network of real SSH hosts, or against the
[rehearsal cloud](rehearsal.md).
The pool either worked, which means that a function returned its result, or ended in the error that is shown.
What was left when the pool had been left is what the cloud's own books and the processes of the machine say.

| fault | outcome | instances left | processes left |
|---|---|---|---|
"""


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
        when: The event of the pool at which the machine is taken; empty for never.
        without: Variables that the client has not.
        meets: Whether a request has to meet it.
    """

    name: str
    provoke: Callable[[Cloud], None] = lambda aws: None
    works: bool = True
    options: Mapping[str, Any] = field(factory=dict)
    provider: Mapping[str, Any] = field(factory=dict)
    when: str = ""
    without: tuple[str, ...] = ()
    meets: bool = False


@frozen
class Rehearsed:
    """
    One fault of the rehearsal cloud.

    Args:
        name: What the page calls it.
        fault: The fault.
        works: Whether the pool works all the same.
        options: What the pool is given.
    """

    name: str
    fault: Any
    works: bool = True
    options: Mapping[str, Any] = field(factory=dict)


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


def _request(name: str, action: str, effect: str = "error", works: bool = True, **facts: Any) -> Fault:
    """Describe a fault that a request has to meet."""
    options = facts.pop("options", {})
    return Fault(name, lambda aws: aws.fault(action, effect, **facts), works=works, options=options, meets=True)


def _launch(name: str, effect: str = "error", **facts: Any) -> Fault:
    return _request(name, "RunInstances", effect, **facts)


def _forbid(aws: Cloud) -> None:
    page = (ROOT / "docs" / "aws.md").read_text(encoding="utf-8")
    aws.allow(sorted(set(re.findall(r'"((?:ec2|pricing|ssm):\w+)"', page)) - {"ec2:RunInstances"}))


_SPOT, _SHORT = {"allocation": "spot"}, {"bootstrap_timeout": 8}
_QUOTA = "You have requested more vCPU capacity than your current vCPU limit"

FAULTS: tuple[Fault | Rehearsed, ...] = (
    Fault("no credentials", works=False, without=("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")),
    Fault("wrong credentials", works=False, provider={"access_key": "AKIAWRONG", "secret_key": "wrong"}),
    Fault("a permission is missing", _forbid, works=False),
    _launch("quota", code="VcpuLimitExceeded", message=_QUOTA, works=False),
    _launch("no capacity in one zone", code="InsufficientInstanceCapacity", status=500, times=1),
    _launch("no capacity anywhere", code="InsufficientInstanceCapacity", status=500, works=False),
    Fault("price over the cap", works=False, options={"max_hourly_cost": 0.001}),
    Fault("unknown region", works=False, provider={"region": "us-eest-1"}),
    Fault("unknown instance type", works=False, options={"machine": "m7i.lrge"}),
    _launch("429 with Retry-After", code="TooManyRequests", status=429, times=2, headers={"Retry-After": "1"}),
    _launch("429 without Retry-After", code="TooManyRequests", status=429, times=2),
    _launch("503, throttled", code="RequestLimitExceeded", status=503, times=2),
    _launch("500, twice", code="InternalError", status=500, times=2),
    _launch("500, always", code="InternalError", status=500, works=False),
    _launch("the answer to a launch is cut off, twice", "cut", times=2),
    _launch("the answers to all launches are cut off", "cut"),
    _launch("boots late", "slow", seconds=2.0, times=1),
    _launch("never boots", "never", times=1, options={"provision_timeout": 4}),
    _launch("boots, but refuses SSH", "refuse", times=1, options=_SHORT),
    _launch("boots with another host key", "key", times=1),
    _launch("dies at boot", "dies", times=1),
    Fault("dies during bootstrap", when="InstanceProvisioned"),
    Fault("spot machine taken during bootstrap", options=_SPOT, when="InstanceProvisioned"),
    Fault("spot machine taken during a task", options=_SPOT, when="task"),
    Fault("spot machine taken during exit", options=_SPOT, when="PoolStopping"),
    _request("terminate fails twice", "TerminateInstances", code="InternalError", status=500, times=2),
    _request("terminate is cut off twice", "TerminateInstances", "cut", times=2),
    Fault("the API's clock is an hour ahead", lambda aws: aws.skew(3600.0)),
    Fault("the API's clock is an hour behind", lambda aws: aws.skew(-3600.0)),
    _request(
        "the API refuses our clock",
        "DescribeInstanceTypes",
        code="RequestExpired",
        message="Request has expired.",
        works=False,
    ),
    Fault("lists trail launches by two seconds", lambda aws: aws.lag(2.0)),
    Rehearsed("rehearsal: no capacity in one region", NoCapacity(region="north")),
    Rehearsed("rehearsal: no capacity anywhere", NoCapacity(), works=False),
    Rehearsed("rehearsal: quota", Quota(machines=0), works=False),
    Rehearsed("rehearsal: the answer to a launch is lost", LostResponse()),
    Rehearsed("rehearsal: never boots", NeverBoots(), options={"provision_timeout": 0.5}),
    Rehearsed("rehearsal: nobody gets in", Unreachable()),
    Rehearsed("rehearsal: dies during bootstrap", DiesInBootstrap()),
    Rehearsed("rehearsal: all machines die during bootstrap", DiesInBootstrap(times=99), works=False),
    Rehearsed("rehearsal: taken back", Preempt(after=0.3)),
    Rehearsed("rehearsal: terminate fails twice", TerminateFails(times=2)),
    Rehearsed("rehearsal: 429, four times", TooManyRequests(times=4)),
)
"""All that is on the page, in its order."""


def provoke(fault: Fault | Rehearsed, aws: Cloud) -> Row:
    """
    Have one fault happen to a pool, and see what comes of it.

    Args:
        fault: The fault.
        aws: The cloud; calm, and with its variables in the environment.
    """
    if isinstance(fault, Rehearsed):
        return _rehearse(fault)
    with _without(fault.without):
        fault.provoke(aws)
        outcome = _outcome(fault, aws)
    assert aws.met() or not fault.meets, "no request met the fault"
    aws.calm()
    return Row(outcome, len(aws.alive()), len(_processes(f"{aws.folder}/i-", aws)))


def _outcome(fault: Fault, aws: Cloud) -> str:
    taken: list[str] = []

    def take() -> None:
        if not taken:
            for row in aws.alive():
                taken.append(row["id"])
                (aws.interrupt if row["spot"] else aws.terminate)(row["id"])

    options = {
        "machine": "m7i.large",
        "allocation": "on-demand",
        "bootstrap_timeout": 20,
        "provision_retry_delay": 0.1,
        "console": False,
        "logging": False,
        **fault.options,
    }
    if fault.when and fault.when != "task":
        options["on_event"] = lambda event: take() if type(event).__name__ == fault.when else None
    with tempfile.TemporaryDirectory() as folder:
        try:
            with sky.Compute(provider=aws.provider(**fault.provider), **options) as pool:
                if fault.when == "task":
                    future = second_time(folder) > pool
                    until(Path(folder, "begun").exists)
                    take()
                    result = future.result(timeout=60)
                else:
                    result = add(2, 3) >> pool
                assert _living(f"{aws.folder}/i-"), "living processes are not seen"
        except sky.SkywardError as error:
            return _said(error)
    assert result == 5
    assert taken or not fault.when, "nothing was taken"
    return WORKED


def _rehearse(fault: Rehearsed) -> Row:
    # A short path, because names of Unix sockets have hardly more than a hundred characters.
    directory = tempfile.mkdtemp(prefix="sky-", dir="/tmp")
    provider = Rehearsal(faults=[fault.fault], directory=directory)
    options = {"provision_retry_delay": 0.05, "console": False, "logging": False, **fault.options}
    try:
        with sky.Compute(provider=provider, **options) as pool:
            assert 5 == (add(2, 3) >> pool)
        outcome = WORKED
    except sky.SkywardError as error:
        outcome = _said(error)
    row = Row(outcome, len(provider.machines()), len(_processes(f"{directory}/hosts/")))
    provider.clear()
    shutil.rmtree(directory, ignore_errors=True)
    return row


def _said(error: BaseException) -> str:
    """Give an error's type and the first line that it says, without what differs from run to run."""
    line = re.sub(r"\b([im])-[0-9a-f]{8,}", r"\1-…", str(error).splitlines()[0])
    line = re.sub(r"sg-[0-9a-f]{8,}|subnet-[0-9a-f]{8,}", "…", line)
    line = re.sub(r"(?<=pool ')[^']*", "…", line)
    return f"`{type(error).__name__}`: {line.strip()}".replace("|", "\\|")


def _processes(front: str, aws: Cloud | None = None) -> list[int]:
    """List the processes that live in a machine's directory, once those that end had time to."""
    with contextlib.suppress(AssertionError):
        until(lambda: not _living(front) and (aws is None or not _ending(aws)), 10)
    return _living(front)


def _ending(aws: Cloud) -> bool:
    return any(row["state"] == "shutting-down" for row in aws.instances())


def _living(front: str) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if front.encode() in (path / "environ").read_bytes() + (path / "cmdline").read_bytes():
                found.append(int(path.name))
    return found


@contextlib.contextmanager
def _without(names: tuple[str, ...]) -> Iterator[None]:
    before = {name: os.environ.pop(name) for name in names}
    try:
        yield
    finally:
        os.environ.update(before)


def main() -> None:
    """Write the page; a fault that could not be provoked leaves its cells empty."""
    lines = []
    with cloud() as aws:
        os.environ.update(aws.environment())
        for fault in FAULTS:
            aws.calm()
            began = time.monotonic()
            try:
                row = provoke(fault, aws)
                cells = f"{row.outcome} | {row.instances} | {row.processes}"
            except Exception as error:
                print(f"{type(error).__name__}: {error}")
                cells = " | | "
            lines.append(f"| {fault.name} | {cells} |\n")
            print(f"{time.monotonic() - began:5.1f} s {lines[-1]}", end="", flush=True)
    PAGE.write_text(_HEAD + "".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
