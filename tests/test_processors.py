"""How many threads a task's libraries get of its machine's processors."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve

from skyward import Spec, Worker
from skyward.hookspecs import Cluster, LaunchCommand, Offer
from skyward.processors import sharing, threads

OFFER = Offer(provider="cloud", instance_type="small", vcpus=16)
CLUSTER = Cluster(pool_id="a1", pool_name="train", spec=Spec(), offer=OFFER, provider="cloud", nodes=2)


@pytest.mark.parametrize(
    ("env", "vcpus", "tasks", "expected"),
    [
        ({}, 8.0, 4, {"OMP_NUM_THREADS": "2"}),
        ({}, 2.0, 4, {"OMP_NUM_THREADS": "1"}),
        ({}, None, 2, {"OMP_NUM_THREADS": "1"}),
        ({}, 8.0, 1, {}),
        ({"OMP_NUM_THREADS": "8"}, 8.0, 4, {}),
    ],
)
def test_tasks_share_the_processors(
    env: dict[str, str], vcpus: float | None, tasks: int, expected: dict[str, str]
) -> None:
    """Unless the user says otherwise."""
    assert expected == threads(env, vcpus=vcpus, tasks=tasks)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, None),
        ({"ranks_per_node": 2}, "8"),
        ({"worker": Worker(concurrency=4, executor="process")}, "4"),
        ({"ranks_per_node": 2, "worker": Worker(concurrency=4)}, "2"),
    ],
)
def test_all_tasks_of_a_node_count(changes: dict[str, Any], expected: str | None) -> None:
    """In processes of their own or in threads; other nodes are other machines."""
    command = sharing(LaunchCommand(argv=["python"]), evolve(CLUSTER, **changes))
    assert expected == command.env.get("OMP_NUM_THREADS")


def test_all_nodes_of_this_machine_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """And what the client's environment says holds for them."""
    monkeypatch.setattr("os.sched_getaffinity", lambda _: range(6), raising=False)
    for name in ("A", "B"):
        monkeypatch.delenv(name, raising=False)
    here = evolve(CLUSTER, provider="local")
    assert {"A": "3", "B": "3"} == dict(sharing(LaunchCommand(argv=["python"]), here, ("A", "B")).env)
    monkeypatch.setenv("A", "5")
    assert {"B": "3"} == dict(sharing(LaunchCommand(argv=["python"]), here, ("A", "B")).env)
