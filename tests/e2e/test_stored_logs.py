"""Pools store what happens to them and what their functions print, and other programs read it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

import skyward as sky
from skyward.engine.logs.log_folder import stored_pools
from skyward.engine.logs.log_reader import LogReader
from skyward.plan.logs.log_format import CallRow, Record, calls_of
from skyward.plan.logs.stored_pool import StoredPool
from skyward.testing import NoCapacity, Rehearsal
from tests.waiting import until


@sky.function
def talk(x: int) -> int:
    print(f"{x} is here, with hf_secret_of_a_test")
    return x


@sky.function
def fail() -> None:
    raise ValueError("the key hf_secret_of_a_test is bad")


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Have a directory for state of its own."""
    monkeypatch.setenv("SKYWARD_STATE", str(tmp_path / "state"))
    return tmp_path / "state"


def stored() -> tuple[StoredPool, list[Record]]:
    """Return the newest log, and its lines."""
    pool = stored_pools()[0]
    return pool, list(LogReader(Path(pool.path)).read())


def calls(found: list[Record]) -> list[CallRow]:
    return [call for line in found for call in calls_of(line)]


def test_a_pool_is_stored_from_its_opening_to_its_receipt(capfd: pytest.CaptureFixture[str]) -> None:
    """Its life, its calls, its output, without secrets; the console says what to type."""
    image = sky.Image(env={"HF_TOKEN": "hf_secret_of_a_test"})
    with sky.Compute(
        provider=sky.Local(), label="train", image=image, console="log", logging=sky.LogConfig(console=False)
    ) as pool:
        assert [0, 1, 2] == list(pool.map(talk, range(3)))
        with pytest.raises(ValueError, match="is bad"):
            fail() >> pool
    about, found = stored()
    assert ("train", "local", "1 node", "ended") == (about.name, about.provider, about.what, about.state)
    assert "the pool was left" == about.reason
    assert 1 == len(about.receipts)
    names = [line["event"] for line in found if line["k"] == "event"]
    wanted = ["ClusterRequested", "InstanceLaunched", "NodeReady", "ClusterReady", "PoolStopping", "ClusterDestroyed"]
    assert wanted == [name for name in names if name in wanted]
    assert {f"{x} is here, with ***" for x in range(3)} == {line["text"] for line in found if line["k"] == "line"}
    ran = calls(found)
    assert ["ok"] * 3 + ["failed"] == sorted((call.outcome for call in ran), key=["ok", "failed"].index)
    assert all(call.sent <= call.began <= call.ended for call in ran)
    assert {"talk", "fail"} == {call.function for call in ran}
    assert "ValueError: the key *** is bad" in {call.error for call in ran}
    texts = [path.read_text() for path in Path(about.path).iterdir()]
    assert not [text for text in texts if "hf_secret" in text]
    last = capfd.readouterr().err.splitlines()[-1]
    assert last.endswith(f" · sky logs {about.id}")


@pytest.mark.parametrize("logging", [False, sky.LogConfig(stored=False, console=False)])
def test_it_can_be_turned_off(logging: Any, state: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """With all of the log, or alone."""
    with sky.Compute(provider=sky.Local(), console="log", logging=logging) as pool:
        talk(1) >> pool
    assert [] == stored_pools()
    assert not (state / "logs").exists()
    assert "sky logs" not in capfd.readouterr().err


def test_a_rehearsal_is_stored_too() -> None:
    """With what it would have cost."""
    with sky.Compute(provider=Rehearsal(), console="silent") as pool:
        talk(1) >> pool
    about, _ = stored()
    assert ("rehearsal", "ended") == (about.provider, about.state)
    assert about.receipts[0]["total_cost"] > 0
    assert "rehearsal" == about.receipts[0]["nodes"][0]["provider"]


def test_a_pool_that_cannot_be_opened_says_why() -> None:
    """It is stored as failed."""
    with (
        pytest.raises(sky.SkywardError),
        sky.Compute(provider=Rehearsal(faults=[NoCapacity()]), console="silent", max_provision_attempts=1),
    ):
        pass
    about, _ = stored()
    assert "failed" == about.state
    assert re.search(r"^\w+Error: ", about.reason)


PROGRAM = """
import os, sys, time
import skyward as sky

@sky.function
def talk() -> None:
    print("hello from it")

@sky.function
def hang() -> None:
    time.sleep(60)

with sky.Compute(provider=sky.Local(), console="silent", label="doomed") as pool:
    talk() >> pool
    waits = hang() > pool
    print("ready", flush=True)
    time.sleep(60)
"""


def test_a_program_that_is_killed_leaves_a_readable_log(tmp_path: Path) -> None:
    """While it lives its pool is open, and followed by another program; after that it has died."""
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent(PROGRAM))
    with subprocess.Popen([sys.executable, str(program)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert "ready\n" == process.stdout.readline()
        until(lambda: any(line.get("fn") == "hang" for line in stored()[1]))
        assert ("doomed", "open") == (stored()[0].name, stored()[0].state)
        follower = subprocess.Popen(
            [sys.executable, "-m", "skyward", "logs", "doomed", "-f"],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ},
        )
        process.send_signal(signal.SIGKILL)
        process.wait(30)
        assert "hello from it" in follower.communicate(timeout=30)[0]
        assert 0 == follower.returncode
    about, found = stored()
    assert "died" == about.state
    assert "hello from it" in [line.get("text") for line in found]
    assert "hang" in [line.get("fn") for line in found if line["k"] == "running"]
