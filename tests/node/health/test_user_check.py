"""The user's check in its own process: it may fail, hang, crash and be unusable, and holds up nothing."""

from __future__ import annotations

import asyncio
import base64
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cloudpickle
import pytest

from skyward.node.health.user_check import UserCheck
from tests.node.health.agents import reaping
from tests.waiting import until_async


def reports(
    predicate: Callable[[], Any] | bytes, directory: Path, count: int, *, timeout: float = 20.0, failures: int = 2
) -> list[dict[str, Any]]:
    """Run a check until it has reported so often."""
    pickled = predicate if isinstance(predicate, bytes) else cloudpickle.dumps(predicate)

    async def run() -> list[dict[str, Any]]:
        told: list[dict[str, Any]] = []
        check = UserCheck(asyncio.get_running_loop(), told.append)
        reaping(check, lambda: check._process.pid if check._process else None)
        check.start(
            {
                "argv": [sys.executable, "-P", "-m", "skyward.node.health.check_process"],
                "env": {"FROM_IMAGE": "1"},
                "directory": str(directory),
                "predicate": base64.b64encode(pickled).decode(),
                "period": 0.05,
                "failures": failures,
                "timeout": timeout,
            }
        )
        try:
            await until_async(lambda: len(told) >= count)
        finally:
            check.stop()
        assert check._process is None
        return told

    return asyncio.run(run())


def test_so_many_failures_in_a_row_are_certain(tmp_path: Path) -> None:
    """The first one warns; what the function prints is lost, and does no harm."""

    def is_well() -> bool:
        print("{}")
        return False

    first, second = reports(is_well, tmp_path, 2)
    assert (False, True) == (first["certain"], second["certain"])
    assert "its health check failed 2 times in a row: it returned False" == second["reason"]
    assert not second["passed"]


def test_failures_that_are_not_in_a_row_are_forgiven(tmp_path: Path) -> None:
    """A check that passes begins the count again."""
    seen = tmp_path / "seen"

    def is_well() -> bool:
        turn = len(seen.read_text()) if seen.exists() else 0
        seen.write_text("x" * (turn + 1))
        return turn % 2 == 0 or turn > 8

    told: list[dict[str, Any]] = []

    async def run() -> None:
        check = UserCheck(asyncio.get_running_loop(), told.append)
        reaping(check, lambda: check._process.pid if check._process else None)
        check.start(
            {
                "argv": [sys.executable, "-P", "-m", "skyward.node.health.check_process"],
                "env": {"FROM_IMAGE": "1"},
                "directory": str(tmp_path),
                "predicate": base64.b64encode(cloudpickle.dumps(is_well)).decode(),
                "period": 0.02,
                "failures": 2,
                "timeout": 20.0,
            }
        )
        await until_async(lambda: seen.exists() and len(seen.read_text()) > 12)
        check.stop()

    asyncio.run(run())
    assert told
    assert not any(each["certain"] for each in told)


def test_a_check_that_hangs_has_failed(tmp_path: Path) -> None:
    """Its process is ended, and the next check has another."""

    def is_well() -> bool:
        time.sleep(60)
        return True

    *_, last = reports(is_well, tmp_path, 2, timeout=0.2)
    assert last["certain"]
    assert "it took more than 0.2 s" in last["reason"]


def test_a_check_that_crashes_has_failed(tmp_path: Path) -> None:
    """With how its process ended."""

    def is_well() -> bool:
        os.abort()

    *_, last = reports(is_well, tmp_path, 2)
    assert "its process ended with SIGABRT" in last["reason"]


def test_a_check_that_is_no_check_is_not_run_again(tmp_path: Path) -> None:
    """It is the function's mistake, and no fault of the machine."""
    [only] = reports(lambda: None, tmp_path, 1)
    assert not only["certain"]
    assert "cannot be used, and is not run any more: it returned None" in only["reason"]


def test_a_check_that_cannot_be_loaded_says_why(tmp_path: Path) -> None:
    """Such as one whose module the node lacks."""
    [only] = reports(b"cno_such_module\nis_well\n.", tmp_path, 1)
    assert "cannot be loaded on the node: ModuleNotFoundError" in only["reason"]


@pytest.mark.parametrize("failures", [1])
def test_a_single_failure_may_be_enough(tmp_path: Path, failures: int) -> None:
    """Then there is no warning before."""
    [only] = reports(lambda: False, tmp_path, 1, failures=failures)
    assert only["certain"]
    assert "failed once" in only["reason"]


def test_a_check_has_the_environment_of_the_node_and_the_image(tmp_path: Path) -> None:
    """It finds programs as tasks do."""

    def is_well() -> bool:
        raise OSError(f"{'PATH' in os.environ} {os.environ.get('FROM_IMAGE')}")

    [only] = reports(is_well, tmp_path, 1, failures=1)
    assert "OSError: True 1" in only["reason"]
