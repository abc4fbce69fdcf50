"""Nodes on other machines that freeze or are cut off: passed by while they are silent, used again, or replaced."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import skyward as sky
from tests.freezing import frozen, runs_of
from tests.heard import of
from tests.hosts import Host
from tests.ssh.conftest import Site
from tests.waiting import seconds_until, until

pytestmark = pytest.mark.slow

QUICK: dict[str, Any] = {"suspect_timeout": 3.0, "lost_timeout": 12.0, "console": "silent", "logging": False, "ttl": 60}


@sky.function
def home() -> str:
    """Tell on which host this runs."""
    return os.environ["HOME"]


@sky.function
def take(runs: str, seconds: float) -> str:
    """Note where this runs, take so long and tell."""
    with open(runs, "a") as file:
        file.write(f"{os.environ['HOME']}\n")
    time.sleep(seconds)
    return os.environ["HOME"]


def host_of(site: Site, name: str) -> Host:
    """Find a host by its home."""
    return next(host for host in site.hosts if str(host.base / "home") == name)


def agents(host: Host) -> list[int]:
    """List the agents on a host."""
    found = []
    for number in host.processes():
        with contextlib.suppress(OSError):
            if b"skyward.node.agent.agent_main" in Path(f"/proc/{number}/cmdline").read_bytes():
                found.append(number)
    return found


def cut_off(host: Host) -> contextlib.AbstractContextManager[None]:
    """Have no byte come through to a host or from it, and no connection be refused or reset."""
    assert host._process is not None
    return frozen(host._process.pid, *host.connections())


def freeze(host: Host) -> contextlib.AbstractContextManager[None]:
    """Stop the agent of a host, which is reached as ever."""
    return frozen(*agents(host))


@pytest.mark.parametrize("silence", [freeze, cut_off])
def test_a_silent_host_is_noticed_and_used_again(
    silence: Callable[[Host], contextlib.AbstractContextManager[None]], two: Site, tmp_path: Path
) -> None:
    """Its call is begun on the other one; when it is heard again, both are used."""
    heard: list[Any] = []
    with sky.Compute(provider=two.provider(), nodes=2, on_event=heard.append, **QUICK) as pool:
        take(str(tmp_path / "warm"), 0.0) @ pool
        future = take(str(tmp_path / "runs"), 6.0) > pool
        until(lambda: runs_of(tmp_path / "runs"), what="the call does not begin")
        [where] = runs_of(tmp_path / "runs")
        with silence(host_of(two, where)):
            noticed = seconds_until(lambda: of(heard, sky.NodeSuspected), what="it is not suspected")
            elsewhere = seconds_until(
                lambda: len(runs_of(tmp_path / "runs")) == 2, what="the call is not begun elsewhere"
            )
            print(f"noticed after {noticed:.2f} s, begun elsewhere {elsewhere:.2f} s later")
            assert noticed < 5.0
            assert elsewhere < 1.0
        future.result(30)
        until(lambda: of(heard, sky.NodeRecovered), what="it is not used again")
        assert {str(host.base / "home") for host in two.hosts} == set(home() @ pool)
    assert [] == of(heard, sky.InstancePreempted)


def test_an_agent_that_is_killed_is_noticed(two: Site, tmp_path: Path) -> None:
    """Within five seconds, although its host is reached as ever."""
    heard: list[Any] = []
    with sky.Compute(provider=two.provider(), nodes=2, on_event=heard.append, **QUICK) as pool:
        take(str(tmp_path / "warm"), 0.0) @ pool
        future = take(str(tmp_path / "runs"), 3.0) > pool
        until(lambda: runs_of(tmp_path / "runs"), what="the call does not begin")
        [agent] = agents(host_of(two, runs_of(tmp_path / "runs")[0]))
        os.kill(agent, signal.SIGKILL)
        noticed = seconds_until(lambda: of(heard, sky.InstancePreempted), what="it is not noticed")
        elsewhere = seconds_until(lambda: len(runs_of(tmp_path / "runs")) == 2, what="the call is begun nowhere else")
        print(f"noticed after {noticed:.2f} s, begun elsewhere {elsewhere:.2f} s later")
        assert noticed < 5.0
        assert elsewhere < 1.0
        future.result(30)
    assert ["agent"] == [one.cause for one in heard if isinstance(one, sky.InstancePreempted)]


def test_hosts_that_are_all_cut_off_are_waited_for(two: Site, tmp_path: Path) -> None:
    """It may be the client that is: their calls run on, and none is begun twice."""
    heard: list[Any] = []
    with sky.Compute(provider=two.provider(), nodes=2, on_event=heard.append, **QUICK) as pool:
        futures = [take(str(tmp_path / "runs"), 12.0) > pool for _ in range(2)]
        until(lambda: len(runs_of(tmp_path / "runs")) == 2, what="the calls do not begin")
        with cut_off(two.hosts[0]), cut_off(two.hosts[1]):
            until(lambda: 2 == len(of(heard, sky.NodeSuspected)), what="they are not suspected")
            time.sleep(15.0)
        assert 2 == len({future.result(60) for future in futures})
    assert 2 == len(runs_of(tmp_path / "runs"))
    assert [] == of(heard, sky.InstancePreempted)
