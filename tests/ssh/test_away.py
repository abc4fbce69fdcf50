"""A client that is away: no process on the node waits for it, and nothing that was printed is lost."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import skyward as sky
from tests.hosts import Host
from tests.ssh.conftest import Site

pytestmark = pytest.mark.slow

LINES = 30_000
WIDTH = 1000


@sky.function
def print_much(begun: str, go: str, done: str, lines: int, width: int) -> int:
    """Print a lot once a file is there, and leave another one."""
    open(begun, "w").close()
    while not os.path.exists(go):
        time.sleep(0.01)
    for number in range(lines):
        print(f"{number:010}".ljust(width, "."))
    open(done, "w").close()
    return lines


def _until(condition: Callable[[], object], what: str, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def _agent(host: Host) -> int:
    for number in host.processes():
        with contextlib.suppress(OSError):
            if b"skyward.node.agent.agent_main" in Path(f"/proc/{number}/cmdline").read_bytes():
                return number
    raise AssertionError("there is no agent")


def _memory_mb(pid: int) -> float:
    (line,) = [line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS")]
    return int(line.split()[1]) / 1024


def test_nobody_waits_for_a_client_that_is_away(site: Site, tmp_path: Path) -> None:
    """30 MB are printed, the agent's memory stays as it is, and every line arrives once and in order."""
    host, (begun, go, done) = site.hosts[0], (tmp_path / name for name in ("begun", "go", "done"))
    lines: list[str] = []
    pool = sky.Compute(provider=site.provider(), console="silent", logging=False, ttl=60)
    pool.on(sky.Log, lambda event: lines.append(event.line))
    with pool:
        future = print_much(str(begun), str(go), str(done), LINES, WIDTH) > pool
        _until(begun.exists, "the call does not begin")
        agent = _agent(host)
        before = _memory_mb(agent)
        host.stop()
        go.touch()
        _until(done.exists, "the call waits for its client")
        assert not lines
        assert _memory_mb(agent) < before + 20
        host.start()
        assert future.result(60) == LINES
        _until(lambda: len(lines) >= LINES, "lines are missing")
        assert not list(host.cache.glob("nodes/*/lines/*"))
    assert lines == [f"{number:010}".ljust(WIDTH, ".") for number in range(LINES)]


def test_lines_that_wait_are_sent_before_the_pool_is_left(site: Site, tmp_path: Path) -> None:
    """Even if the result overtakes them."""
    host, (begun, go, done) = site.hosts[0], (tmp_path / name for name in ("begun", "go", "done"))
    lines: list[str] = []
    pool = sky.Compute(provider=site.provider(), console="silent", logging=False, ttl=60)
    pool.on(sky.Log, lambda event: lines.append(event.line))
    with pool:
        future = print_much(str(begun), str(go), str(done), LINES // 3, WIDTH) > pool
        _until(begun.exists, "the call does not begin")
        host.stop()
        go.touch()
        _until(done.exists, "the call waits for its client")
        host.start()
        assert future.result(60) == LINES // 3
    assert len(lines) == LINES // 3
