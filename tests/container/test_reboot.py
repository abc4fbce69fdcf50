"""A container that is stopped and started again, as a machine that is rebooted."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from attrs import frozen

import skyward as sky
from skyward.hookspecs import Cluster, Instance, InstanceState, hookimpl
from skyward_container.provider import Container
from tests.container.work import count_runs, double, run_until, whoami

pytestmark = [pytest.mark.containers, pytest.mark.timeout(300)]

LARGE = 3 << 20

SEEN: list[InstanceState] = []
"""What the watch found, look by look."""


@frozen(kw_only=True)
class Watched(Container):
    """Containers that tell when they are listed."""

    @hookimpl
    async def skyward_instances(self, cluster: Cluster, infra: Any) -> Sequence[Instance]:
        """List them."""
        found = await Container.skyward_instances(self, cluster, infra)
        SEEN.extend(each.state for each in found)
        return found


def _podman(*words: str) -> str:
    return subprocess.run(["podman", *words], check=True, capture_output=True, text=True).stdout


def _until(condition: Callable[[], object], what: str, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.1)


def _stored(name: str) -> int:
    found = _podman("exec", name, "sh", "-c", "ls /root/.cache/skyward/nodes/*/results 2>/dev/null || true")
    return len(found.split())


def test_pool_goes_on_after_a_reboot(image: str) -> None:
    """Finished results arrive and are not computed again; what was running is tried again."""
    pool = sky.Compute(
        provider=Watched(image=image, binary="podman"),
        console="silent",
        logging=False,
        ttl=120,
        concurrency=3,
        reconcile_tick_interval=0.2,
    )
    began: dict[str, int] = {}
    pool.on(sky.TaskStarted, lambda event: began.update({event.task_id: began.get(event.task_id, 0) + 1}))
    with pool:
        name = whoami() >> pool
        small = run_until("/tmp/small", "/tmp/go", 10) > pool
        large = run_until("/tmp/large", "/tmp/go", LARGE) > pool
        running = run_until("/tmp/running", "/tmp/later", 5) > pool
        for path in ("small", "large", "running"):
            _until(lambda path=path: "run" in _podman("exec", name, "sh", "-c", f"cat /tmp/{path} || true"), path)  # type: ignore[misc]
        # No new connection, and none that is there: the client is away.
        os.kill(int(_podman("inspect", "--format", "{{.State.Pid}}", name)), signal.SIGSTOP)
        _podman("exec", name, "sh", "-c", "pkill -KILL -f '[s]shd: root'; touch /tmp/go")
        _until(lambda: _stored(name) == 2, "the results are not stored")
        _podman("stop", "--time", "0", name)
        _until(lambda: SEEN[-1] is InstanceState.PENDING, "the watch does not see that it stopped")
        _podman("start", name)
        assert small.result(60) == b"x" * 10
        assert large.result(60) == b"x" * LARGE
        _until(lambda: max(began.values()) == 2, "the call that was lost is not tried again")
        other = _podman("ps", "--filter", "label=skyward.pool", "--format", "{{.Names}}").split()
        assert len(other) == 1
        assert other != [name]
        _podman("exec", other[0], "touch", "/tmp/later")
        assert running.result(60) == b"x" * 5
        assert pool.map(double, range(20)) == list(range(0, 40, 2))
        assert count_runs("/tmp/small") >> pool == 0, "it was run again on the node that took the place"
        assert count_runs("/tmp/running") >> pool == 1
    assert sorted(began.values())[-2:] == [1, 2]
