"""Each option does what it says: with another value, something else happens."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

import skyward as sky
from skyward.model.spec.op import Shell
from skyward.testing import Rehearsal


@sky.function
def double(x: int) -> int:
    return 2 * x


@sky.function
def wait(seconds: float) -> float:
    time.sleep(seconds)
    return seconds


def _compute(**keywords: Any) -> sky.Pool:
    return sky.Compute(**{"console": "silent", "logging": False, **keywords})


def test_bootstrap_timeout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment that takes longer is an error that says so."""
    monkeypatch.setenv("SKYWARD_CACHE", str(tmp_path))
    slow = sky.Plugin.create("slow").with_bootstrap(lambda cluster: (Shell("exec sleep 30", scope="environment"),))
    began = time.monotonic()
    with pytest.raises(sky.ProvisionError, match=r"(?i)longer|within|time"):
        _compute(plugins=[slow], bootstrap_timeout=0.5, max_provision_attempts=1).open()
    assert time.monotonic() - began < 20


@pytest.mark.slow
def test_default_compute_timeout() -> None:
    """It is the limit of calls that have none of their own."""
    with _compute(default_compute_timeout=0.2) as pool:
        with pytest.raises(sky.TaskTimeoutError, match=r"timeout of 0\.2 s"):
            wait(30) >> pool
        assert 0.4 == wait(0.4).with_timeout(20) >> pool


@pytest.mark.parametrize("provider", [sky.Local(), Rehearsal()], ids=["local", "rehearsal"])
def test_image_of_this_machine(provider: Any) -> None:
    """Variables are worked out here, once for all nodes; packages that are missing are named in one line."""
    image = sky.Image(
        env={"OWN": "1"}, shell_vars={"SUM": 'echo "$((OWN + 1))"', "OWN": "echo 2"}, apt=["no-such-package"]
    )
    told: list[str] = []
    pool = _compute(provider=provider, nodes=2, image=image)
    with pool.on(sky.Error, lambda event: told.append(event.message)):
        assert [("2", "1")] * 2 == sky.function(lambda: (os.environ["SUM"], os.environ["OWN"]))() @ pool
    [line] = told
    assert line.startswith("apt: ")
    assert "no-such-package" in line


@pytest.mark.parametrize(("mode", "shown"), [("log", True), ("silent", False)])
def test_console(mode: Any, shown: bool, capsys: pytest.CaptureFixture[str]) -> None:
    """What is shown goes to the terminal's error stream, or nothing does."""
    with _compute(console=mode):
        pass
    assert shown is bool(capsys.readouterr().err)


def test_on_event() -> None:
    """The handler hears of everything, in the order of things."""
    heard: list[str] = []
    with _compute(on_event=lambda event: heard.append(type(event).__name__)):
        pass
    assert "ClusterRequested" == heard[0]
    assert heard.index("NodeReady") < heard.index("ClusterDestroyed")


@pytest.mark.slow
def test_timeout() -> None:
    """A node lives so long and no longer; another takes its place. On a busy machine it takes a second to be ready."""
    replaced: list[sky.InstanceReplaced] = []
    with _compute(timeout=4).on(sky.InstanceReplaced, replaced.append) as pool:
        deadline = time.monotonic() + 30
        while not replaced:
            assert time.monotonic() < deadline
            assert 2 == double(1) >> pool
    assert replaced[0].node == 0
