"""A test's view of a test cloud: start it, ask for faults, read its books."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tests.hosts import SSHD
from tests.waiting import until

ROOT = Path(__file__).resolve().parents[2]

IGNORED = [] if Path(SSHD).exists() else ["test_*.py"]
"""The tests that are passed over where no machine can be made: all of them."""


class Cloud:
    """
    Speak to a running test cloud.

    Args:
        url: Its address.
        folder: Where its machines live.
    """

    def __init__(self, url: str, folder: str = "") -> None:
        self.url = url
        self.folder = folder
        self.hosted = True
        self.lists_hold: float | None = None
        """Seconds for which pools of a provider share a list; None for as long as outside of tests."""
        self.port: int = self.ask("port")

    def environment(self) -> dict[str, str]:
        """Return what a client needs in its environment to speak to this cloud and to no other."""
        return {}

    def fault(self, on: str, effect: str = "answer", **facts: Any) -> None:
        """Have something go wrong, see `tests.clouds.emulator.Fault`."""
        self.ask("fault", {"on": on, "effect": effect, **facts})

    def hosts(self, *, there: bool) -> None:
        """Say whether the machines that come up from now on are real SSH hosts; without, their rows just turn."""
        self.hosted = there
        self.lists_hold = None if there else 0.0
        self.ask("hosts", there)

    def hurried(self, provider: Any) -> Any:
        """Have a provider keep a list no longer than the tests want: no time at all where there are no hosts."""
        # Pools of AWS share no list.
        inventory = getattr(provider._account, "inventory", None)
        if inventory is not None and self.lists_hold is not None:
            inventory.lists_hold = self.lists_hold
        return provider

    def calm(self) -> None:
        """Forget faults and calls."""
        self.ask("calm")

    def lag(self, seconds: float) -> None:
        """Have launches be missing from listings for a while."""
        self.ask("lag", seconds)

    def met(self) -> int:
        """Count the faults that met a request since the last calm."""
        count: int = self.ask("met")
        return count

    def interrupt(self, name: str) -> None:
        """Take a spot machine back."""
        self.ask("interrupt", {"id": name})

    def terminate(self, name: str) -> None:
        """End an instance behind everybody's back."""
        self.ask(f"terminate?id={name}")

    def instances(self) -> list[dict[str, Any]]:
        """Return every instance there ever was."""
        rows: list[dict[str, Any]] = self.ask("instances")
        return rows

    def alive(self) -> list[dict[str, Any]]:
        """Return the instances of which something is billed."""
        return [row for row in self.instances() if row["alive"]]

    def calls(self, name: str = "") -> list[dict[str, Any]]:
        """Return the calls made since the last calm whose name, such as `"GET /v2/sizes"`, begins like this."""
        return [call for call in self.ask("calls") if call["name"].startswith(name)]

    def remains(self) -> list[str]:
        """Tell what a test left that is no machine, or did that no test may."""
        return []

    def clear(self) -> None:
        """Remove what is no machine."""

    def ask(self, what: str, given: Any = None) -> Any:
        """Have the cloud do or tell something that is none of its API."""
        data = b"" if given is None else json.dumps(given).encode()
        with urllib.request.urlopen(f"{self.url}/test-cloud/{what}", data=data, timeout=30) as answer:
            return json.loads(answer.read())


SomeCloud = TypeVar("SomeCloud", bound=Cloud)


@contextlib.contextmanager
def running(kind: Callable[[str, str], SomeCloud], module: str, block: int) -> Iterator[SomeCloud]:
    """
    Run a test cloud in a process of its own.

    Args:
        kind: What speaks to it.
        module: What is run, such as `"tests.clouds.aws.server"`.
        block: The third number of its machines' addresses; each cloud has its own, from 32 on.
    """
    # Who has no right to make it starts no host, and may run a cloud without.
    with contextlib.suppress(PermissionError):
        Path("/run/sshd").mkdir(exist_ok=True)
    # A short path, because names of Unix sockets have hardly more than a hundred characters.
    folder = tempfile.mkdtemp(prefix="cloud", dir="/tmp")
    process = subprocess.Popen(
        [sys.executable, "-m", module, folder, f"127.{64 + os.getpid() % 128}.{block}"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if not name.startswith("AWS_")},
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield kind(process.stdout.readline().decode().strip(), folder)
    finally:
        process.stdin.close()
        process.wait(timeout=20)
        process.stdout.close()
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def left_empty(cloud: SomeCloud, monkeypatch: Any) -> Iterator[SomeCloud]:
    """Give a test a calm cloud, and fail it when it leaves a machine there."""
    cloud.calm()
    for name, text in cloud.environment().items():
        monkeypatch.setenv(name, text)
    yield cloud
    remains = cloud.remains()
    cloud.calm()
    left = [row["id"] for row in cloud.alive()]
    for name in left:
        cloud.terminate(name)
    until(lambda: not cloud.alive())
    cloud.clear()
    assert ([], []) == (left, remains)


Start = Callable[[], AbstractContextManager[Cloud]]


def fixture(cloud: Start) -> Any:
    """
    Make the fixture that gives a test its cloud: one for all tests of a process, calm, and empty afterwards.

    Its machines are real hosts, unless the test uses the fixture `without_hosts` (and not `with_hosts` besides).

    Args:
        cloud: Runs a cloud.
    """

    @pytest.fixture
    def calm(
        started: Callable[[Start], Cloud], monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
    ) -> Iterator[Cloud]:
        """Give the cloud, and fail a test that leaves anything there."""
        given = started(cloud)
        given.hosts(there=hosted(request))
        with left_empty(given, monkeypatch):
            yield given

    return calm


def hosted(request: pytest.FixtureRequest) -> bool:
    """Say whether the machines of a test are real hosts."""
    return "without_hosts" not in request.fixturenames or "with_hosts" in request.fixturenames
