"""However a client ends: no process, socket or directory of its pools stays."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.hosts import environments
from tests.seeds import seeds, share

PROGRAM = """
import os, signal, sys, time
import skyward as sky

def daemonise():
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(300)
        os._exit(0)

def sleep():
    time.sleep(300)

before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
pool = sky.Compute(nodes=2, console="silent", logging=False)
with pool:
    sky.function(daemonise)() @ pool
    print("ready", flush=True)
    {inside}
assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == before
print("left", flush=True)
"""


class Client:
    """A client program, with a directory for temporary files of its own."""

    def __init__(self, inside: str) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="sky", dir="/tmp"))  # sockets want a short path
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM.replace("{inside}", inside)],
            env={**os.environ, "TMPDIR": str(self.directory), "OF_TEST": self.directory.name},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def until_ready(self) -> None:
        """Wait until the pool is open."""
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "ready\n"
        assert self.processes()

    def processes(self) -> list[int]:
        """List what the program started, whatever its parent is now."""
        mark = f"\0OF_TEST={self.directory.name}\0".encode()
        return [pid for pid, environ in environments() if mark in environ]

    def has_left_nothing(self) -> bool:
        """Tell whether the machine is as it was."""
        return not self.left()

    def left(self) -> list[str]:
        """List what is still there: processes with their command lines, and what lies in directories."""
        # Not `rglob`, which fails at a directory that vanishes meanwhile.
        tops = (walked for one in self.directory.glob("skyward-*") for walked in os.walk(one))
        found = [os.path.join(top, name) for top, _, names in tops for name in ("", *names)]
        for pid in self.processes():
            try:
                found.append(f"{pid}: {Path(f'/proc/{pid}/cmdline').read_bytes()!r}")
            except OSError:
                continue
        return found


@pytest.fixture
def start() -> Iterator[Callable[[str], Client]]:
    """Start clients, and end what is left of them whatever the test finds."""
    clients: list[Client] = []

    def start(inside: str) -> Client:
        clients.append(Client(inside))
        return clients[-1]

    yield start
    for client in clients:
        client.process.kill()
        client.process.communicate()
        for pid in client.processes():
            os.kill(pid, signal.SIGKILL)
        subprocess.run(["rm", "-rf", str(client.directory)], check=True)


def _soon(condition: Callable[[], bool], seconds: float = 20.0) -> bool:
    """Wait for a condition."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


@pytest.mark.parametrize(
    ("inside", "code", "says"),
    [
        ("pass", 0, "left"),
        ("raise SystemError('of the user')", 1, "SystemError: of the user"),
        ("sys.exit(5)", 5, ""),
        ("os._exit(7)", 7, ""),
        ("os.kill(os.getpid(), signal.SIGKILL)", -9, ""),
        ("sky.function(sleep)() > pool; raise SystemError('with work under way')", 1, "with work under way"),
    ],
)
def test_end_of_the_program(start: Callable[[str], Client], inside: str, code: int, says: str) -> None:
    """In good order, by an exception, or without a chance to do anything."""
    client = start(inside)
    client.until_ready()
    out, err = client.process.communicate(timeout=30)
    assert client.process.returncode == code
    assert says in out + err
    assert _soon(client.has_left_nothing)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, -2), (signal.SIGTERM, 143), (signal.SIGKILL, -9)])
def test_signal_while_a_task_runs(start: Callable[[str], Client], number: signal.Signals, code: int) -> None:
    """Ctrl-C and SIGTERM unwind; SIGKILL leaves it to the agents."""
    client = start("sky.function(sleep)() >> pool")
    client.until_ready()
    client.process.send_signal(number)
    client.process.communicate(timeout=30)
    assert client.process.returncode == code
    assert _soon(client.has_left_nothing)


def test_second_ctrl_c_does_not_wait(start: Callable[[str], Client]) -> None:
    """Tears down at once, and still leaves nothing."""
    client = start("sky.function(sleep)() >> pool")
    client.until_ready()
    running = len(client.processes())
    client.process.send_signal(signal.SIGINT)
    assert _soon(lambda: len(client.processes()) < running)
    client.process.send_signal(signal.SIGINT)
    client.process.communicate(timeout=30)
    assert client.process.returncode != 0
    assert _soon(client.has_left_nothing)


@pytest.mark.parametrize("kept", ["other = ", ""])
def test_pool_that_is_never_left(start: Callable[[str], Client], kept: str) -> None:
    """The interpreter's end closes it, also if nothing holds it any more."""
    # The handler of SIGTERM stays as long as this pool does.
    client = start(
        f"{kept}sky.Compute(console='silent', logging=False).__enter__(); "
        "before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)"
    )
    client.until_ready()
    assert client.process.communicate(timeout=30) == ("left\n", "")
    assert client.process.returncode == 0
    assert _soon(client.has_left_nothing)


@pytest.mark.parametrize("seed", seeds("moments of a kill", share(12)))
def test_killed_at_any_moment(start: Callable[[str], Client], seed: int) -> None:
    """Also while the pool is being opened or closed."""
    moment = random.Random(seed).uniform(0.05, 1.2)
    client = start("pass")
    time.sleep(moment)
    client.process.kill()
    client.process.communicate()
    assert _soon(client.has_left_nothing), f"killed after {moment:.3f} s, seed {seed}: {client.left()}"
