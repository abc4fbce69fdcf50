"""Pods that misbehave, and clients that die: a working pool or one error, and nothing left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import skyward as sky
from tests.clouds.runpod.client import client, run
from tests.clouds.runpod.cloud import ROOT, Cloud
from tests.waiting import until

pytestmark = pytest.mark.clouds


@sky.function
def pid() -> int:
    """Tell which process this is."""
    return os.getpid()


@sky.function
def second_time(folder: str) -> bool:
    """Wait for the end the first time, and come back the second time."""
    mark = Path(folder, "begun")
    if mark.exists():
        return True
    mark.touch()
    time.sleep(40)
    return False


def pool(runpod: Cloud, **options: Any) -> Any:
    """Make a pool of one pod."""
    given = {"machine": "cpu5c:2", "console": False, "bootstrap_timeout": 20, **options}
    return sky.Compute(provider=runpod.provider(), **given)


def test_what_a_slow_pod_does_is_told_as_it_happens(runpod: Cloud) -> None:
    """That it is allocated, and that its image is pulled, for as long as that takes."""
    runpod.fault("POST /v2/pods", "slow", seconds=3.0, times=1)
    told: list[tuple[str, str]] = []

    def take(event: Any) -> None:
        if isinstance(event, sky.BootstrapPhase):
            told.append((event.phase, event.event))
            assert event.instance is not None

    with pool(runpod, on_event=take) as opened:
        assert (pid() >> opened) > 0
    phases = [phase for phase in told if phase[0] == "image pull"]
    assert [("image pull", "started"), ("image pull", "completed")] == phases
    assert told.index(("image pull", "completed")) < told.index(("bootstrap", "started"))


def test_the_error_of_a_pool_says_what_runpod_says_of_its_pod(runpod: Cloud) -> None:
    """RunPod has no more than a word for it, which is in the pool's error."""
    runpod.fault("POST /v2/pods", "dies")
    with pytest.raises(sky.SkywardError, match="its status is ERROR"):
        pool(runpod, max_provision_attempts=1).open()
    assert [] == runpod.alive()


def test_a_pod_that_exits_during_a_task_is_replaced(runpod: Cloud, tmp_path: Path) -> None:
    """The task runs again on another pod, and the one that was stopped is ended, because its disk is billed."""
    with pool(runpod, reconcile_tick_interval=1.0) as opened:
        future = second_time(str(tmp_path)) > opened
        until((tmp_path / "begun").exists)
        [row] = runpod.alive()
        runpod.stop(row["id"])
        assert future.result(timeout=45)
        assert row["id"] not in [each["id"] for each in runpod.alive()]
    assert [] == runpod.alive()


def test_a_pod_that_nobody_comes_to_ends_itself(runpod: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that dies right after the launch leaves a pod that ends itself with its own key."""
    monkeypatch.setattr("skyward.plan.bootstrap.container_start.LEAST_DEADLINE", 1.0)

    async def scenario() -> None:
        async with client(runpod.provider(), ttl=1) as opened:
            [instance] = await opened.launch()
            # One that no list has shown would count as there for a minute.
            assert [instance.id] == [each.id for each in await opened.listed()]
            until(lambda: instance.id not in {row["id"] for row in runpod.alive()})

    run(scenario())
    assert "DELETE" in {call["name"].split()[0] for call in runpod.calls()}


_CLIENT = """
import sys
import skyward as sky
import skyward.engine.guardian.guardian_client
# So long an empty list is not believed by the guardian; a minute outside of tests.
skyward.engine.guardian.guardian_client.APPEARING = 3.0
with sky.Compute(provider=sky.RunPod(), machine="cpu5c:2", ttl=6, console=False):
    print("open", flush=True)
    sys.stdin.read()
"""


def test_the_pods_of_a_dead_client_end_themselves(runpod: Cloud, tmp_path: Path) -> None:
    """The watchdog in the pod deletes it, with a key that is good for this pod and nothing else."""
    script = tmp_path / "client.py"
    script.write_text(_CLIENT)
    process = subprocess.Popen(
        [sys.executable, str(script)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "SKYWARD_STATE": str(tmp_path)},
        # Or the guardian holds what is waited for.
        stderr=subprocess.DEVNULL,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        assert b"open\n" == process.stdout.readline()
        assert 1 == len(runpod.alive())
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdin.close()
        process.stdout.close()
    until(lambda: not runpod.alive(), 60)
    log = tmp_path / "guardian.log"
    until(lambda: log.exists() and "all its machines are gone" in log.read_text(), 60)


def test_without_curl_a_pod_ends_itself_by_python(runpod: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    """Images have one or the other."""
    monkeypatch.setattr("skyward.plan.bootstrap.container_start.LEAST_DEADLINE", 1.0)
    from skyward_runpod import launching

    monkeypatch.setattr(launching, "_END", launching._END.replace("curl ", "no-such-curl ", 1))

    async def scenario() -> None:
        async with client(runpod.provider(), ttl=1) as opened:
            [instance] = await opened.launch()
            # One that no list has shown would count as there for a minute.
            assert [instance.id] == [each.id for each in await opened.listed()]
            until(lambda: instance.id not in {row["id"] for row in runpod.alive()})

    run(scenario())
