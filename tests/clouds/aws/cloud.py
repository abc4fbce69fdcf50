"""A client's view of the test cloud: start it, ask for faults, read its books."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import skyward as sky

KEY, SECRET = "AKIATESTCLOUD0000001", "not-a-secret"
ROOT = Path(__file__).resolve().parents[3]


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
        self.port: int = self._ask("port")

    def environment(self) -> dict[str, str]:
        """Return what a client needs in its environment to speak to this cloud and to no other."""
        return {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        }

    def provider(self, **changes: Any) -> Any:
        """Make the provider of this cloud."""
        return sky.AWS(**{"user": "root", "ssh_port": self.port, **changes})

    def fault(self, action: str, effect: str = "error", **facts: Any) -> None:
        """Have something go wrong."""
        self._ask("fault", {"action": action, "effect": effect, **facts})

    def calm(self) -> None:
        """Forget faults and calls."""
        self._ask("calm")

    def allow(self, actions: list[str]) -> None:
        """Let only these calls through from now on."""
        self._ask("allow", actions)

    def quota(self, code: str, vcpus: float) -> None:
        """Let the account have so many vCPUs."""
        self._ask("quota", {code: vcpus})

    def lag(self, seconds: float) -> None:
        """Have launches be missing from listings for a while."""
        self._ask("lag", seconds)

    def skew(self, seconds: float) -> None:
        """Have the cloud's clock be wrong."""
        self._ask("skew", seconds)

    def met(self) -> int:
        """Count the faults that met a request since the last calm."""
        count: int = self._ask("met")
        return count

    def interrupt(self, name: str, seconds: float = 0.0) -> None:
        """Take a spot machine back, after a notice of some seconds."""
        self._ask("interrupt", {"id": name, "seconds": seconds})

    def terminate(self, name: str) -> None:
        """End an instance behind everybody's back."""
        self._ask(f"terminate?id={name}")

    def instances(self) -> list[dict[str, Any]]:
        """Return every instance there ever was."""
        rows: list[dict[str, Any]] = self._ask("instances")
        return rows

    def alive(self) -> list[dict[str, Any]]:
        """Return the instances that have not ended."""
        return [row for row in self.instances() if row["state"] not in ("terminated", "shutting-down")]

    def calls(self) -> list[dict[str, Any]]:
        """Return the calls made since the last calm."""
        calls: list[dict[str, Any]] = self._ask("calls")
        return calls

    def groups(self, region: str = "us-east-1") -> list[str]:
        """Return the names of all security groups of a region."""
        names: list[str] = self._ask(f"groups?region={region}")
        return names

    def _ask(self, what: str, given: Any = None) -> Any:
        data = b"" if given is None else json.dumps(given).encode()
        with urllib.request.urlopen(f"{self.url}/test-cloud/{what}", data=data, timeout=30) as answer:
            return json.loads(answer.read())


def until(condition: Callable[[], Any], seconds: float = 20.0) -> Any:
    """Wait until something holds, and return it."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, f"still not so after {seconds:g} s"
        time.sleep(0.05)
    return found


@contextlib.contextmanager
def cloud() -> Iterator[Cloud]:
    """Run a test cloud in a process of its own."""
    Path("/run/sshd").mkdir(exist_ok=True)
    # A short path, because names of Unix sockets have hardly more than a hundred characters.
    folder = tempfile.mkdtemp(prefix="aws", dir="/tmp")
    network = f"127.{64 + os.getpid() % 128}"
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.clouds.aws.server", folder, network],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if not name.startswith("AWS_")},
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield Cloud(process.stdout.readline().decode().strip(), folder)
    finally:
        process.stdin.close()
        process.wait(timeout=20)
        process.stdout.close()
        shutil.rmtree(folder, ignore_errors=True)
