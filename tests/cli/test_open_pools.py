"""Pools that are open in other programs are listed, and shown while they run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import skyward as sky
from skyward.cli.main import main
from skyward.cli.open_pools import machines_of
from skyward.model.instances.machine import InstanceState
from skyward.testing import Rehearsal

pytestmark = pytest.mark.slow

LOCAL = ("--provider", "local")


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep Skyward's state in a directory of the test's."""
    monkeypatch.setenv("SKYWARD_STATE", str(tmp_path))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def pool() -> Iterator[sky.Pool]:
    """Open a pool of two processes."""
    with sky.Compute(label="warm", nodes=2, console="silent") as opened:
        yield opened


def test_processes_of_this_machine_are_listed(pool: sky.Pool, capsys: pytest.CaptureFixture[str]) -> None:
    """No cloud has them; their pool says so itself."""
    assert 0 == main(["ls", *LOCAL])
    rows = [line.split()[:2] for line in capsys.readouterr().out.splitlines()]
    assert [["POOL", "NODE"], ["warm", "0"], ["warm", "1"]] == rows
    assert 0 == main(["ls", "warm", "--json", *LOCAL])
    machines = json.loads(capsys.readouterr().out)["machines"]
    assert [("warm", 0, "local"), ("warm", 1, "local")] == [(m["pool"], m["node"], m["provider"]) for m in machines]
    assert 1 == main(["ls", "wram", *LOCAL])


def test_a_rehearsal_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """Its books are of its program alone."""
    with sky.Compute(provider=Rehearsal(), label="dress", console="silent"):
        main(["ls", "dress", "--json"])
        [machine] = json.loads(capsys.readouterr().out)["machines"]
    assert ("dress", "rehearsal", "running") == tuple(machine[key] for key in ("pool", "provider", "state"))


def test_nodes_and_calls_are_shown(pool: sky.Pool, capsys: pytest.CaptureFixture[str]) -> None:
    """Once, where there is no terminal."""
    assert 0 == main(["top"])
    pools, nodes = capsys.readouterr().out.split("\n\n")
    assert ["warm"] == [line.split()[0] for line in pools.splitlines()[1:]]
    assert "2 of 2" in pools
    assert ["ready", "ready"] == [line.split()[5] for line in nodes.splitlines()[1:]]
    assert 0 == main(["top", "warm", "--json"])
    assert [2] == [one["desired"] for one in json.loads(capsys.readouterr().out)["pools"]]


def test_a_pool_that_is_not_open(pool: sky.Pool, capsys: pytest.CaptureFixture[str]) -> None:
    """The nearest that is is offered."""
    assert 1 == main(["top", "wram"])
    assert "Did you mean 'warm'?" in capsys.readouterr().err
    assert 2 == main(["top", "--interval", "0"])


def test_where_nothing_is_open(capsys: pytest.CaptureFixture[str]) -> None:
    """That is no failure: it is known."""
    assert 0 == main(["top"])
    assert "No program of yours on this machine has a pool open.\n" == capsys.readouterr().out
    assert 0 == main(["top", "--json"])
    assert {"pools": [], "failures": {}} == json.loads(capsys.readouterr().out)


def test_a_node_that_leaves_is_listed_as_such() -> None:
    """By the words that clouds have; what another version does not say is not known."""
    node = {"node": 3, "machine": "i-1", "provider": "aws", "state": "leaving"}
    [machine] = machines_of({"pool": "train", "pool_id": "a1", "nodes": [node]})
    assert (InstanceState.ENDING, "train", None) == (
        machine.state,
        machine.tags and machine.tags.pool_name,
        machine.region,
    )
    assert [] == machines_of({"pool": "train", "text": "node 0"})
