"""The state of a pool, folded from its events."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from skyward.console.state import Bar, State, fold, step
from skyward.model.events.event import (
    BootstrapConsole,
    BootstrapFailed,
    BootstrapPhase,
    BootstrapProgress,
    ClusterDestroyed,
    ClusterProvisioned,
    ClusterReady,
    ClusterRequested,
    CostUpdate,
    InfraCreating,
    InstanceDestroyed,
    InstanceLaunching,
    InstancePreempted,
    InstanceProvisioned,
    InstanceReplaced,
    InstanceRequested,
    InstanceStopping,
    Metrics,
    NodeReady,
    NodeRecovered,
    NodeSuspected,
    PoolStopping,
    Progress,
    SkywardEvent,
    TaskCompleted,
    TaskStarted,
)
from skyward.model.instances.instance import InstanceInfo

ON_ZERO = InstanceInfo(node=0)


def requested(node: int) -> InstanceRequested:
    return InstanceRequested(node=node)


def provisioned(node: int) -> InstanceProvisioned:
    return InstanceProvisioned(
        instance_id="i", node=node, spot=True, provider="aws", instance_type="p4d", price_spot=1.0
    )


def started(task_id: str, node: int = 0, at: float = 1.0) -> TaskStarted:
    return TaskStarted(task_id=task_id, function="f", node=node, at=at)


def completed(task_id: str, node: int | None = 0, *, success: bool = True, at: float = 2.0) -> TaskCompleted:
    return TaskCompleted(task_id=task_id, function="f", node=node, success=success, at=at)


def test_only_what_failed_for_good_counts_as_failed() -> None:
    """A call that is tried again goes on, and of one that was stopped no result was wanted."""
    base = {"task_id": "1", "function": "f", "node": 0, "success": False}
    ended = (TaskCompleted(**base), TaskCompleted(**base, again=True), TaskCompleted(**base, stopped=True))
    assert {0: 1} == fold(State(), ended).failed


READY = NodeReady(node=0)
LOST = InstancePreempted(reason="spot", node=0)
STOPPING = InstanceStopping(instance_id="i", node=0)
DESTROYED = InstanceDestroyed(instance_id="i", node=0)


@pytest.mark.parametrize(
    ("events", "state", "detail"),
    [
        ([requested(0)], "requested", ""),
        ([requested(0), InstanceLaunching(count=1, instance_type="p4d", provider="aws")], "launching", ""),
        ([provisioned(0)], "running", ""),
        ([BootstrapProgress(instance_id="i", step="apt", instance=ON_ZERO)], "bootstrap", "apt"),
        ([BootstrapPhase(phase="apt", event="completed", instance=ON_ZERO)], "bootstrap", "apt completed"),
        ([BootstrapConsole(line="\x1b[1mGet:1\x1b[0m\r", instance=ON_ZERO)], "bootstrap", "Get:1"),
        ([BootstrapFailed(phase="apt", error="no", instance=ON_ZERO)], "bootstrap", "apt failed"),
        ([READY], "ready", ""),
        ([READY, LOST], "lost", "spot"),
        ([READY, NodeSuspected(node=0, silent=16.0)], "silent", ""),
        ([READY, NodeSuspected(node=0, silent=16.0), NodeRecovered(node=0, silent=20.0)], "ready", ""),
        ([READY, LOST, InstanceReplaced(old="i", new="j", node=0)], "launching", ""),
        ([READY, LOST, InstanceReplaced(old="i", new="j", node=0), DESTROYED], "launching", ""),
        ([READY, STOPPING], "stopping", ""),
        ([READY, STOPPING, DESTROYED], "gone", ""),
    ],
)
def test_nodes_follow_their_events(events: Sequence[SkywardEvent], state: str, detail: str) -> None:
    """A node is in the state that its last event says; the end of an old instance does not end a new one."""
    view = fold(State(), events).nodes[0]
    assert (state, detail) == (view.state, view.detail)


@pytest.mark.parametrize(
    ("events", "phase"),
    [
        ([ClusterRequested()], "opening"),
        ([ClusterReady(nodes=2, elapsed=1.0)], "ready"),
        ([ClusterReady(nodes=2, elapsed=1.0), PoolStopping()], "stopping"),
        ([PoolStopping(), ClusterDestroyed()], "closed"),
    ],
)
def test_the_pool_follows_its_events(events: Sequence[SkywardEvent], phase: str) -> None:
    """The pool is in the phase that its last event says."""
    assert phase == fold(State(), events).phase


def test_facts_of_the_pool() -> None:
    """Provider, region, number of nodes and cost are those that were heard last."""
    cost = CostUpdate(elapsed_seconds=1, accumulated_cost=2, hourly_rate=3, spot_count=1, ondemand_count=0)
    state = fold(State(), [InfraCreating(provider="aws", region="eu"), ClusterProvisioned(nodes=3, elapsed=1.0), cost])
    assert ("aws", "eu", 3, cost) == (state.provider, state.region, state.wanted, state.cost)


def test_tasks_are_counted_by_node() -> None:
    """Running, returned and failed tasks are known for each node."""
    events = [
        *(started(str(number), number % 2) for number in range(5)),
        completed("0", 0),
        completed("1", 1, success=False),
        completed("9", None, success=False),
    ]
    state = fold(State(), events)
    assert ["2", "3", "4"] == sorted(state.running)
    assert {0: 1} == state.done
    assert {1: 1, None: 1} == state.failed
    assert 3 == state.ended


def test_a_completion_without_a_start_counts() -> None:
    """Where starts were dropped, nothing runs less than zero times."""
    state = fold(State(), [completed("1"), completed("2")])
    assert (0, 2) == (len(state.running), state.ended)


def test_tasks_of_a_lost_node_run_no_more() -> None:
    """What ran on an instance that is gone is not shown as running."""
    assert ["1"] == list(fold(State(), [started("0", 0), started("1", 1), LOST]).running)


def test_folding_is_stepping() -> None:
    """Folding several events is the same as taking them one by one."""
    events = [requested(0), READY, started("1"), completed("1"), Progress(label="f", done=1, total=2), LOST]
    state = State()
    for event in events:
        state = step(state, event)
    folded = fold(State(), events)
    assert (folded.nodes, folded.done, folded.bars, folded.at) == (state.nodes, state.done, state.bars, state.at)


def test_a_state_is_not_changed() -> None:
    """A step leaves the state that it started from as it was."""
    before = fold(State(), [READY, started("1")])
    step(before, completed("1"))
    step(before, LOST)
    assert ("ready", ["1"], {}) == (before.nodes[0].state, list(before.running), before.done)
    assert fold(before, []) is before


def test_the_rate_is_that_of_the_last_seconds() -> None:
    """The rate counts what ended lately, and falls to nothing when nothing ends."""
    state = State()
    for moment in range(40):
        at = 100 + moment / 10
        state = fold(state, [completed(f"{moment}-{number}", at=at) for number in range(10)])
    assert 100 == pytest.approx(state.rate(104.0), rel=0.2)
    assert 0 == state.rate(200.0)
    assert 0 == State().rate(5.0)


def test_bars_begin_anew_when_a_function_is_mapped_again() -> None:
    """A count that falls is another map of the same name."""
    events = [
        Progress(label="f", done=0, total=10, at=1.0),
        Progress(label="f", done=10, total=10, at=2.0),
        Progress(label="f", done=3, total=20, at=7.0),
        Progress(label="g", done=5, at=8.0),
    ]
    assert {"f": Bar(3, 20, 7.0, 7.0), "g": Bar(5, None, 8.0, 8.0)} == fold(State(), events).bars
    assert fold(State(), events[:2]).bars["f"].complete


def test_loads_are_those_of_known_nodes() -> None:
    """Measurements of a node that is not known make no node."""
    loads = [
        Metrics(
            instance_id="i",
            node=node,
            cpu_percent=40.0,
            memory_percent=1.0,
            memory_used_mb=1.0,
            memory_total_mb=2.0,
            gpu_utilization=90.0,
        )
        for node in (0, 1)
    ]
    state = fold(State(), [READY, *loads])
    assert [0] == list(state.nodes)
    assert (40.0, 90.0) == (state.nodes[0].cpu, state.nodes[0].gpu)


def test_the_clock_is_that_of_the_events() -> None:
    """A pool began with its first event and was last heard of with its last."""
    state = fold(State(), [NodeReady(node=0, at=10.0), NodeReady(node=1, at=12.0)])
    assert (10.0, 12.0) == (state.began, state.at)
