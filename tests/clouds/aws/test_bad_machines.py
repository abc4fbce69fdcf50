"""Machines that boot late, never, wrongly, or are taken back: a working pool or one error, and nothing left."""

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
from skyward.model.instances.machine import InstanceState
from skyward_aws.notice import look
from tests.clouds.aws.client import client, run
from tests.clouds.aws.cloud import ROOT, Cloud
from tests.waiting import until


@sky.function
def pid() -> int:
    """Tell which process this is."""
    return os.getpid()


pytestmark = pytest.mark.clouds


def pool(aws: Cloud, **options: Any) -> Any:
    """Make a pool of one machine."""
    given = {"machine": "m7i.large", "allocation": "on-demand", "console": False, "bootstrap_timeout": 20, **options}
    return sky.Compute(provider=aws.provider(), **given)


@pytest.mark.everything
@pytest.mark.parametrize(
    "fault",
    [{"effect": "slow", "seconds": 2.0}, {"effect": "key"}, {"effect": "dies"}],
    ids=["boots late", "has another host key", "dies at boot"],
)
def test_a_pool_gets_by(aws: Cloud, fault: dict[str, Any]) -> None:
    """The machine is waited for or replaced, and the function runs."""
    aws.fault("RunInstances", times=1, **fault)
    with pool(aws) as opened:
        assert (pid() >> opened) > 0
        assert 1 == len(aws.alive())
    assert [] == aws.alive()


def test_the_error_of_a_pool_says_why_ec2_ended_a_machine(aws: Cloud) -> None:
    """EC2's `StateReason` is in the pool's error, instead of the fact alone that the machine ended."""
    aws.fault("RunInstances", "dies")
    with pytest.raises(sky.SkywardError, match=r"Server\.InternalError: Internal error on launch"):
        pool(aws, max_provision_attempts=1).open()
    assert [] == aws.alive()


@pytest.mark.everything
def test_a_machine_that_refuses_ssh_is_given_back(aws: Cloud) -> None:
    """It runs and nothing answers there: after `bootstrap_timeout` it is ended and another one is rented."""
    aws.fault("RunInstances", "refuse", times=1)
    with pool(aws, bootstrap_timeout=8) as opened:
        assert (pid() >> opened) > 0
        assert 1 == len(aws.alive())
    assert [] == aws.alive()


@sky.function
def second_time(folder: str) -> bool:
    """Wait for the end the first time, and come back the second time."""
    mark = Path(folder, "begun")
    if mark.exists():
        return True
    mark.touch()
    time.sleep(40)
    return False


@pytest.mark.everything
def test_a_spot_machine_taken_back_during_a_task_is_replaced(aws: Cloud, tmp_path: Path) -> None:
    """The task runs again on another machine, and both are gone in the end."""
    with pool(aws, allocation="spot") as opened:
        future = second_time(str(tmp_path)) > opened
        until((tmp_path / "begun").exists)
        [row] = aws.alive()
        aws.interrupt(row["id"])
        assert future.result(timeout=45)
        assert [row["id"]] != [each["id"] for each in aws.alive()]
    assert [] == aws.alive()


@pytest.mark.everything
def test_a_machine_that_never_boots_is_given_back(aws: Cloud) -> None:
    """After `provision_timeout` it is ended and another one is rented."""
    aws.fault("RunInstances", "never", times=1)
    with pool(aws, provision_timeout=4) as opened:
        assert (pid() >> opened) > 0
        assert 1 == len(aws.alive())
    assert [] == aws.alive()


def test_a_machine_that_nobody_comes_to_ends_itself(aws: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that dies right after the launch leaves a machine that shuts down, which ends its bill."""
    monkeypatch.setattr("skyward.plan.bootstrap.first_boot.LEAST_DEADLINE", 1.0)

    async def scenario() -> None:
        async with client(aws.provider(), ttl=1) as opened:
            [instance] = await opened.launch()
            until(lambda: instance.id not in {row["id"] for row in aws.alive()})

    run(scenario())


_CLIENT = """
import os, signal, sys
import skyward as sky
with sky.Compute(provider=sky.AWS(user="root", ssh_port=int(sys.argv[1])), machine="m7i.large", ttl=6,
                 allocation="on-demand", console=False):
    print("open", flush=True)
    sys.stdin.read()
"""


def test_the_machines_of_a_dead_client_end_themselves(aws: Cloud, tmp_path: Path) -> None:
    """The watchdog on the machine shuts it down, and EC2 makes that its end."""
    script = tmp_path / "client.py"
    script.write_text(_CLIENT)
    process = subprocess.Popen(
        [sys.executable, str(script), str(aws.port)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, **aws.environment()},
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        assert b"open\n" == process.stdout.readline()
        assert 1 == len(aws.alive())
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdin.close()
        process.stdout.close()
    until(lambda: not aws.alive(), 60)


def test_a_spot_machine_is_told_of_its_end_and_listed_as_ending(aws: Cloud) -> None:
    """The metadata service has nothing to tell until EC2 takes the machine back, and then has the time."""

    async def scenario() -> None:
        async with client(aws.provider()) as opened:
            [instance] = await opened.launch(spot=True)
            service = f"{aws.url}/imds/{instance.id}"
            assert look(service) is None
            aws.interrupt(instance.id, 2.0)
            notice = look(service)
            assert notice is not None
            assert notice.certain
            assert -5 < notice.at - time.time() < 5
            ended = (InstanceState.ENDING, InstanceState.ENDED)
            await opened.until(lambda found: found[0].state in ended)

    run(scenario())


def test_a_machine_that_is_gone_in_its_bootstrap_is_not_waited_for(aws: Cloud) -> None:
    """Another one takes its place, long before `bootstrap_timeout`, and the exit does not wait for it either."""
    taken: list[str] = []

    def take(event: Any) -> None:
        if isinstance(event, sky.InstanceProvisioned) and not taken:
            [row] = aws.alive()
            taken.append(row["id"])
            aws.terminate(row["id"])

    began = time.monotonic()
    with pool(aws, bootstrap_timeout=300, reconcile_tick_interval=300.0, on_event=take) as opened:
        assert (pid() >> opened) > 0
        assert taken != [row["id"] for row in aws.alive()]
    assert time.monotonic() - began < 90
    assert [] == aws.alive()
