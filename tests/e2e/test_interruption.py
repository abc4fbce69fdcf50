"""A machine that will be reclaimed: its tasks know, have their time, and go on elsewhere from what they saved."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve, frozen

import skyward as sky
from skyward.hookspecs import Instance, LaunchRequest, ProviderFacts, hookimpl

pytestmark = pytest.mark.slow


@frozen
class Reclaiming(sky.Local):
    """
    Run spot machines here, one of which learns from a file that it is reclaimed.

    Args:
        file: The file, which the first machine that finds it takes away.
    """

    file: str = ""

    @hookimpl
    def skyward_facts(self) -> ProviderFacts:
        """Add what a machine asks."""
        ask = f"if mv {self.file} {self.file}.taken 2>/dev/null; then cat {self.file}.taken; fi"
        return evolve(super().skyward_facts(), notice_command=("sh", "-c", ask))

    @hookimpl
    async def skyward_launch(self, request: LaunchRequest, infra: str) -> Sequence[Instance]:
        """Launch spot machines."""
        return [evolve(each, spot=True) for each in await super().skyward_launch(request, infra)]


def notify(file: Path, seconds: float | None) -> None:
    """Give notice of a reclaim so many seconds ahead."""
    at = "null" if seconds is None else time.time() + seconds
    new = file.with_suffix(".new")
    new.write_text(f'{{"reason": "outbid", "certain": true, "at": {at}}}')
    new.rename(file)


@sky.function
def watch(begun: str) -> tuple[str, float | None, str]:
    """Wait for the notice, and give what is known then, and what a callback was called with."""
    called: list[Any] = []
    sky.on_interruption(called.append)
    assert sky.interruption() is None
    open(begun, "w").close()
    while not (sky.interrupted() and called):
        time.sleep(0.01)
    notice = sky.interruption()
    assert notice is not None
    return notice.reason, notice.seconds_left, called[0].reason


@sky.function
def late() -> list[str]:
    """Ask for a callback where the notice may be here already."""
    called: list[Any] = []
    sky.on_interruption(called.append)
    end = time.monotonic() + 2.0
    while not called and time.monotonic() < end:
        time.sleep(0.01)
    return [one.reason for one in called]


@sky.function
def train(steps: int, begun: str) -> list[tuple[int, int]]:
    """Do steps; save at each notice and at each step, and go on from what was saved. The machine goes soon after."""
    saved = sky.checkpoint()
    done: list[tuple[int, int]] = saved.load([])
    while len(done) < steps:
        time.sleep(0.05)
        done = [*done, (len(done), os.getpid())]
        saved.save(done)
        open(begun, "w").close()
        if sky.interrupted():
            os.kill(os.getppid(), signal.SIGKILL)
            time.sleep(60)
    return done


@pytest.mark.parametrize(("seconds", "least", "most"), [(60.0, 40.0, 60.0), (None, None, None)])
def test_a_task_knows_that_its_machine_is_reclaimed(
    tmp_path: Path, seconds: float | None, least: float | None, most: float | None
) -> None:
    """Why, in how many seconds, and once for each callback."""
    told: list[sky.InstancePreempted] = []
    provider = Reclaiming(file=str(tmp_path / "notice"))
    with sky.Compute(provider=provider, console=False).on(sky.InstancePreempted, told.append) as pool:
        future = watch(str(tmp_path / "begun")) > pool
        while not (tmp_path / "begun").exists():
            time.sleep(0.01)
        notify(tmp_path / "notice", seconds)
        reason, left, called = future.result(20)
        assert ("outbid", "outbid") == (reason, called)
        assert left is None if least is None or most is None else least < left <= most  # type: ignore[operator]
        # Another machine takes the next call, which knows of nothing.
        assert [] == late() >> pool
    assert ["notice"] == [event.cause for event in told]


def test_a_training_loses_a_step_and_not_its_run(tmp_path: Path) -> None:
    """The call that is tried again finds the checkpoint of the machine that was reclaimed."""
    provider = Reclaiming(file=str(tmp_path / "notice"))
    with sky.Compute(provider=provider, console=False) as pool:
        future = train(200, str(tmp_path / "begun")) > pool
        while not (tmp_path / "begun").exists():
            time.sleep(0.01)
        notify(tmp_path / "notice", 60.0)
        done = future.result(50)
    assert [*range(200)] == [step for step, _ in done]
    assert 2 == len({process for _, process in done})


def test_outside_a_task_nothing_is_reclaimed() -> None:
    """So that `.local()` works."""
    called: list[Any] = []
    assert not sky.interrupted()
    assert sky.interruption() is None
    assert sky.on_interruption(called.append) == called.append
    assert [] == called
