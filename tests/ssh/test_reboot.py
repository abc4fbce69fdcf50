"""A node that is rebooted: what it had finished is not run again, what it was running is."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import skyward as sky
from tests.hosts import Host
from tests.seeds import some
from tests.ssh.conftest import Site

pytestmark = pytest.mark.slow

LARGE = 3 << 20


@sky.function
def wait_for(runs: str, go: str, size: int) -> bytes:
    """Note that this runs, wait until a file is there, and give some bytes."""
    with open(runs, "a") as file:
        file.write("run\n")
    while not os.path.exists(go):
        time.sleep(0.01)
    return b"x" * size


@sky.function
def stream_until(runs: str, go: str) -> Any:
    with open(runs, "a") as file:
        file.write("run\n")
    while not os.path.exists(go):
        time.sleep(0.01)
    yield from range(3)


def _open(site: Site, **options: Any) -> sky.Compute:
    return sky.Compute(**{"provider": site.provider(), "console": "silent", "logging": False, "ttl": 60, **options})


def _until(condition: Callable[[], object], what: str, seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def _runs(path: Path) -> int:
    return path.read_text().count("run") if path.exists() else 0


def _stored(host: Host) -> list[Path]:
    return [path for path in host.cache.glob("nodes/*/results/*") if not path.name.startswith(".")]


def _agents(host: Host) -> list[int]:
    found = []
    for number in host.processes():
        with contextlib.suppress(OSError):
            if b"skyward.node.agent.agent_main" in Path(f"/proc/{number}/cmdline").read_bytes():
                found.append(number)
    return found


def test_finished_results_outlive_a_power_cut(site: Site, tmp_path: Path) -> None:
    """Small ones and large ones, while the client is away; what was running is tried again, once."""
    host, go, later = site.hosts[0], tmp_path / "go", tmp_path / "later"
    runs = [tmp_path / f"runs-{number}" for number in range(3)]
    with _open(site, concurrency=3) as pool:
        small = wait_for(str(runs[0]), str(go), 10) > pool
        large = wait_for(str(runs[1]), str(go), LARGE) > pool
        running = wait_for(str(runs[2]), str(later), 5) > pool
        _until(lambda: all(map(_runs, runs)), "the calls do not begin")
        host.stop()
        go.touch()
        _until(lambda: len(_stored(host)) == 2, "the results are not stored")
        old = next(host.cache.glob("nodes/*"))
        host.sweep()
        host.start()
        assert small.result(60) == b"x" * 10
        assert large.result(60) == b"x" * LARGE
        _until(lambda: _runs(runs[2]) == 2, "the call that was lost is not tried again", 60)
        later.touch()
        assert running.result(60) == b"x" * 5
        assert not old.exists()
    assert [_runs(path) for path in runs] == [1, 1, 2]


@pytest.mark.parametrize("number", some("ends of an agent", [signal.SIGTERM, signal.SIGKILL]))
def test_finished_results_outlive_the_agent(site: Site, tmp_path: Path, number: signal.Signals) -> None:
    """When it is asked to end, and when it is killed alone; the watchdog, which is still there, leaves them too."""
    host, go, runs = site.hosts[0], tmp_path / "go", tmp_path / "runs"
    with _open(site, concurrency=2) as pool:
        future = wait_for(str(runs), str(go), LARGE) > pool
        _until(lambda: _runs(runs), "the call does not begin")
        host.stop()
        go.touch()
        (agent,) = _agents(host)
        _until(lambda: _stored(host), "the result is not stored")
        os.kill(agent, number)
        _until(lambda: not _agents(host), "the agent does not end")
        assert _stored(host)
        host.start()
        assert future.result(60) == b"x" * LARGE
    assert _runs(runs) == 1


def test_results_that_arrive_are_not_kept(site: Site, tmp_path: Path) -> None:
    """After a cut as before: what the client has acknowledged is removed from the node's disk."""
    host, go, runs = site.hosts[0], tmp_path / "go", tmp_path / "runs"
    with _open(site) as pool:
        future = wait_for(str(runs), str(go), LARGE) > pool
        _until(lambda: _runs(runs), "the call does not begin")
        host.stop()
        go.touch()
        _until(lambda: _stored(host), "the result is not stored")
        host.start()
        assert future.result(60) == b"x" * LARGE
        _until(lambda: not _stored(host), "the result is kept")
    assert _runs(runs) == 1


def test_end_of_a_stream_is_worth_nothing_without_its_items(site: Site, tmp_path: Path) -> None:
    """It is not stored, so no caller takes a part of a stream for the whole."""
    host, go, runs = site.hosts[0], tmp_path / "go", tmp_path / "runs"
    with _open(site, concurrency=2) as pool:
        items = stream_until(str(runs), str(go)) > pool
        other = wait_for(str(tmp_path / "other"), str(go), 1) > pool
        _until(lambda: _runs(runs) and _runs(tmp_path / "other"), "the calls do not begin")
        host.stop()
        go.touch()
        _until(lambda: _stored(host), "the other result is not stored")
        assert len(_stored(host)) == 1
        host.sweep()
        host.start()
        assert other.result(60) == b"x"
        with pytest.raises(sky.NodeLostError):
            list(items.result(60))
    assert _runs(runs) == 1


@pytest.mark.parametrize("damage", some("damage", [b"", b"no result at all" * 40]))
def test_damaged_files_are_no_results(site: Site, tmp_path: Path, damage: bytes) -> None:
    """Their calls are tried again."""
    host, go, runs = site.hosts[0], tmp_path / "go", tmp_path / "runs"
    with _open(site) as pool:
        future = wait_for(str(runs), str(go), 10) > pool
        _until(lambda: _runs(runs), "the call does not begin")
        host.stop()
        go.touch()
        _until(lambda: _stored(host), "the result is not stored")
        host.sweep()
        (path,) = _stored(host)
        path.write_bytes(damage)
        host.start()
        assert future.result(60) == b"x" * 10
    assert _runs(runs) == 2


def test_many_large_results_are_all_stored(site: Site, tmp_path: Path) -> None:
    """More than may wait in the agent's memory otherwise: none stays with a worker that would not outlive a reboot."""
    host, go, count = site.hosts[0], tmp_path / "go", 6
    runs = [tmp_path / f"runs-{number}" for number in range(count)]
    with _open(site, worker=sky.Worker(concurrency=count, executor="process")) as pool:
        futures = [wait_for(str(path), str(go), 2 * LARGE) > pool for path in runs]
        _until(lambda: all(map(_runs, runs)), "the calls do not begin")
        host.stop()
        go.touch()
        _until(lambda: len(_stored(host)) == count, "the results are not stored")
        host.sweep()
        host.start()
        assert [len(future.result(60)) for future in futures] == [2 * LARGE] * count
    assert [_runs(path) for path in runs] == [1] * count


def test_what_a_reboot_left_for_nobody_is_removed(site: Site) -> None:
    """By the next node on the host, once it is a week old; not what lives, nor what a client may come for."""
    nodes = site.hosts[0].cache / "nodes"
    for name, days in (("ruin", 8), ("alive", 8), ("awaited", 6)):
        (nodes / name / "results").mkdir(parents=True)
        (nodes / name / "results" / "1").write_bytes(b"x")
        # After a reboot the number is another process's.
        (nodes / name / "watchdog.pid").write_text(f"{os.getpid()}\n")
        (nodes / name / "lease").touch()
        then = time.time() - days * 86400
        os.utime(nodes / name / "lease", (then, then))
    script = nodes / "alive" / "watchdog.sh"
    script.write_text("sleep 60\n")
    with subprocess.Popen(["sh", str(script)], start_new_session=True) as watchdog:
        try:
            (nodes / "alive" / "watchdog.pid").write_text(f"{watchdog.pid}\n")
            with _open(site):
                assert {"alive", "awaited"} < {path.name for path in nodes.iterdir()}
                assert not (nodes / "ruin").exists()
        finally:
            os.killpg(watchdog.pid, signal.SIGKILL)
