"""Machines that EC2 does not end for us end themselves, at once or by their lease, and no user is left in the dark."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import skyward as sky
from tests.clouds.aws.client import client, run
from tests.clouds.aws.cloud import ROOT, Cloud
from tests.waiting import until

pytestmark = [pytest.mark.clouds, pytest.mark.timeout(150)]

OPTIONS = {
    "machine": "m7i.large",
    "allocation": "on-demand",
    "console": False,
    "logging": False,
    "bootstrap_timeout": 30,
    "ttl": 10,
    "shutdown_timeout": 30,
}


@sky.function
def five() -> int:
    """Give five."""
    return 5


def pool(aws: Cloud, **options: Any) -> Any:
    """Make a pool of one machine."""
    return sky.Compute(provider=aws.provider(), **{**OPTIONS, **options})


def forbid(aws: Cloud) -> None:
    """Let no key end machines from now on."""
    aws.fault("TerminateInstances", code="UnauthorizedOperation", status=403, message="You may not.")


def hinder(aws: Cloud) -> list[Path]:
    """Have machines not end themselves either, until these files are there."""
    files = []
    for row in aws.alive():
        base = Path(row["base"])
        command, may = base / "bin" / "shutdown", base / "may"
        command.rename(command.with_name("really"))
        command.write_text(f'#!/bin/sh\n[ -e {may} ] || exit 1\nexec {base}/bin/really "$@"\n')
        command.chmod(0o755)
        files.append(may)
    return files


def end(aws: Cloud) -> None:
    """End machines as a key does that may."""
    for row in aws.alive():
        aws.terminate(row["id"])


@pytest.mark.parametrize("slow", [0.0, 4.0])
def test_an_account_that_may_not_end_gets_no_node(aws: Cloud, slow: float) -> None:
    """A dry run tells before anything is bootstrapped; machines end themselves at once, also one that boots late."""
    told: list[str] = []
    aws.fault("RunInstances", "slow", seconds=slow, times=1)
    forbid(aws)
    opening = pool(aws, nodes=2, ttl=600).on(sky.SkywardEvent, lambda event: told.append(type(event).__name__))
    with pytest.raises(sky.CredentialsError, match="may rent machines and not end them") as caught:
        opening.open()
    assert "ec2:TerminateInstances" in str(caught.value)
    assert "InstanceLaunched" in told
    assert "BootstrapStarting" not in told
    assert [] == aws.alive()


@pytest.mark.parametrize(("code", "status"), [("InvalidInstanceID.NotFound", 400), ("InternalError", 500)])
def test_a_dry_run_that_tells_nothing_is_no_obstacle(aws: Cloud, code: str, status: int) -> None:
    """A machine that EC2 does not know yet is asked about again."""
    aws.fault("TerminateInstances", code=code, status=status, times=1, where={"dry": "true"})
    with pool(aws) as opened:
        assert 5 == (five() >> opened)
    assert [["true"], ["true"], []] == [
        [call["params"]["DryRun"]] if "DryRun" in call["params"] else []
        for call in aws.calls()
        if call["name"].endswith("ec2:TerminateInstances")
    ]


def test_what_may_not_be_ended_is_told_to_end_itself(aws: Cloud) -> None:
    """Over the connection that is still open; the cloud confirms it, so that leaving the pool raises nothing."""
    told: list[str] = []
    with pool(aws, ttl=600).on(sky.Error, lambda event: told.append(event.message)) as opened:
        assert 5 == (five() >> opened)
        [row] = aws.alive()
        forbid(aws)
    assert [] == aws.alive()
    [message] = [message for message in told if "has ended itself" in message]
    assert row["id"] in message
    assert "ec2:TerminateInstances" in message


@pytest.mark.everything
def test_what_does_not_end_is_told_and_ends_by_its_lease(aws: Cloud) -> None:
    """The error says which machine it is, why, what becomes of it and what to do."""
    results, files = [], []

    def leave() -> None:
        with pool(aws, shutdown_timeout=2) as opened:
            results.append(five() >> opened)
            files.extend(hinder(aws))
            forbid(aws)

    with pytest.raises(sky.LeftBehindError) as caught:
        leave()
    [row] = aws.alive()
    assert [5] == results
    error = caught.value
    assert (row["id"],) == error.instances
    assert "aws" == error.provider
    for words in (row["id"], "ec2:TerminateInstances", "at the latest 10 s after", "sky ls", "sky down"):
        assert words in str(error)
    for file in files:
        file.touch()
    until(lambda: not aws.alive(), 60)


@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt])
def test_what_the_pool_is_left_by_is_not_hidden(aws: Cloud, kind: type[BaseException]) -> None:
    """It bears the other as a note."""

    def leave() -> None:
        with pool(aws, shutdown_timeout=2):
            hinder(aws)
            forbid(aws)
            raise kind("of the user")

    with pytest.raises(kind, match="of the user") as caught:
        leave()
    [row] = aws.alive()
    assert row["id"] in "".join(caught.value.__notes__)
    end(aws)


def test_what_a_decorated_function_returned_is_not_lost(aws: Cloud) -> None:
    """The error has it."""

    @sky.pool(provider=aws.provider(), **{**OPTIONS, "shutdown_timeout": 2})
    def main() -> Any:
        result = five() >> sky
        hinder(aws)
        forbid(aws)
        return result

    with pytest.raises(sky.LeftBehindError) as caught:
        main()
    assert 5 == caught.value.result
    end(aws)


def test_a_pool_that_could_not_be_opened_tells_both(aws: Cloud) -> None:
    """Why it could not, and what is left."""

    def interfere(event: Any) -> None:
        if isinstance(event, sky.InstanceProvisioned):
            hinder(aws)
            forbid(aws)

    plugin = sky.Plugin.create("bad").with_bootstrap(lambda cluster: ["exit 7"])
    options = {"on_event": interfere, "plugins": [plugin], "max_provision_attempts": 1, "shutdown_timeout": 2}
    with pytest.raises(sky.ProvisionError, match="exit") as caught, pool(aws, **options):
        pass
    assert "sky down" in "".join(caught.value.__notes__)
    end(aws)


@pytest.mark.everything
def test_a_node_too_many_ends_itself_while_the_pool_works_on(aws: Cloud) -> None:
    """A pool that is made smaller gives a machine back in the same way."""
    with pool(aws, nodes=2) as opened:
        forbid(aws)
        opened.resize(1)
        until(lambda: 1 == len(aws.alive()), 60)
        assert 5 == (five() >> opened)
    assert [] == aws.alive()


def test_a_region_that_refuses_keeps_no_other_from_ending_its_machines(aws: Cloud) -> None:
    """As `sky down` ends them; the other region takes its time."""

    async def scenario() -> None:
        here, there = aws.provider(region="us-east-1"), aws.provider(region="eu-west-1")
        async with client(here) as one, client(there) as other:
            [left] = await one.launch()
            await other.launch()
            aws.fault("TerminateInstances", code="UnauthorizedOperation", status=403, where={"region": "us-east-1"})
            aws.fault("TerminateInstances", "late", seconds=2.0, where={"region": "eu-west-1"}, times=1)
            with pytest.raises(sky.ProvisionError, match=left.id):
                await here.skyward_end(await here.skyward_owned())
            assert [left.id] == [row["id"] for row in aws.alive()]
            aws.calm()

    run(scenario())


_CLIENT = """
import sys
import skyward as sky
with sky.Compute(provider=sky.AWS(user="root", ssh_port=int(sys.argv[1])), machine="m7i.large", ttl=10,
                 allocation="on-demand", console=False):
    print("open", flush=True)
    sys.stdin.readline()
"""


def test_a_client_that_dies_while_it_leaves_has_its_machines_end_themselves(aws: Cloud, tmp_path: Path) -> None:
    """The nodes have ended by then, and their watchdogs have not."""
    script = tmp_path / "client.py"
    script.write_text(_CLIENT)
    with subprocess.Popen(
        [sys.executable, str(script), str(aws.port)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, **aws.environment()},
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert b"open\n" == process.stdout.readline()
        aws.fault("TerminateInstances", code="InternalError", status=500)
        process.stdin.write(b"\n")
        process.stdin.flush()
        until(lambda: aws.calls("ec2:TerminateInstances"), 60)
        process.send_signal(signal.SIGKILL)
    assert 1 == len(aws.alive())
    until(lambda: not aws.alive(), 60)


@pytest.mark.everything
def test_a_second_ctrl_c_ends_a_client_whose_machines_do_not_end(aws: Cloud, tmp_path: Path) -> None:
    """It says what is left and what to type, and waits for nothing; the lease ends the machine."""
    script = tmp_path / "client.py"
    script.write_text("import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n" + _CLIENT)
    with subprocess.Popen(
        [sys.executable, str(script), str(aws.port)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, **aws.environment()},
    ) as process:
        assert process.stdout is not None
        assert any(line == "open\n" for line in process.stdout)
        files = hinder(aws)
        forbid(aws)
        [row] = aws.alive()
        process.send_signal(signal.SIGINT)
        until(lambda: aws.calls("ec2:TerminateInstances"), 60)
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=60)
    assert -signal.SIGINT == process.returncode
    for words in (row["id"], "ec2:TerminateInstances", "at the latest 10 s after", "sky ls", "sky down"):
        assert words in said
    assert [row["id"]] == [each["id"] for each in aws.alive()]
    for file in files:
        file.touch()
    until(lambda: not aws.alive(), 60)
