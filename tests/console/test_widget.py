"""A pool in a notebook, as HTML and as text."""

from __future__ import annotations

import pytest

from skyward.console.state import State, fold
from skyward.console.widget import html_of, text_of
from skyward.model.events.event import (
    BootstrapProgress,
    ClusterDestroyed,
    ClusterReady,
    CostFinal,
    CostUpdate,
    InfraCreating,
    InstanceLaunched,
    InstanceRequested,
    Metrics,
    NodeReady,
    Progress,
    SkywardEvent,
    TaskCompleted,
    TaskStarted,
)
from skyward.model.instances.instance import InstanceInfo

OPENING: tuple[SkywardEvent, ...] = (
    InfraCreating(provider="aws", region="us-east-1", at=0.5),
    InstanceRequested(node=0, at=0.5),
    InstanceRequested(node=1, at=0.5),
    InstanceLaunched(node=1, instance_id="i", spot=True, provider="aws", instance_type="p4d.24xlarge", at=1.0),
    BootstrapProgress(step="pip install", instance_id="i", instance=InstanceInfo(node=1), at=2.0),
)
READY: tuple[SkywardEvent, ...] = (
    *OPENING,
    NodeReady(node=0, at=10.0),
    NodeReady(node=1, at=10.0),
    ClusterReady(nodes=2, elapsed=10.0, at=10.0),
    TaskStarted(task_id="1", function="train", node=0, at=11.0),
    TaskStarted(task_id="2", function="train", node=1, at=11.0),
    TaskCompleted(task_id="2", function="train", node=1, success=True, at=12.0),
    Metrics(
        node=0,
        instance_id="i",
        cpu_percent=40.0,
        memory_percent=12.0,
        memory_used_mb=1,
        memory_total_mb=8,
        gpu_utilization=97.0,
        at=12.0,
    ),
    CostUpdate(elapsed_seconds=12.0, accumulated_cost=1.0, hourly_rate=3600.0, spot_count=2, ondemand_count=0, at=12.0),
)


def state_of(*events: SkywardEvent) -> State:
    return fold(State(), events)


def test_a_node_on_its_way_says_what_it_does_and_for_how_long() -> None:
    """Its state, since when, the step, and the machine."""
    html = html_of(state_of(*OPENING), 5.0)
    for said in ("node-1", "● bootstrap", "pip install", "3.0 s", "spot p4d.24xlarge", "0 of 2 nodes", "opening 4.5 s"):
        assert said in html


def test_a_pool_at_work_shows_calls_loads_and_cost() -> None:
    """The cost goes on between two reports."""
    html = html_of(state_of(*READY), 13.0)
    for said in ("2 nodes", "1 running · 1 done", "cpu 40% mem 12% gpu 97%", "$2.00 · $3,600.00/h (2 spot)"):
        assert said in html


def test_a_bar_is_as_long_as_what_is_done() -> None:
    """One that is complete goes soon."""
    state = state_of(Progress(label="train", done=0, total=8, at=0.0), Progress(label="train", done=2, total=8, at=2.0))
    assert "width:25.0%" in html_of(state, 2.0)
    assert "2/8, 6.0 s left" in html_of(state, 2.0)
    done = fold(state, [Progress(label="train", done=8, total=8, at=8.0)])
    assert "8/8 in 8.0 s" in html_of(done, 9.0)
    assert "8/8" not in html_of(done, 20.0)


def test_a_bar_without_an_end_counts() -> None:
    """Of a generator."""
    assert "7 done" in html_of(state_of(Progress(label="search", done=7, total=None, at=0.5)), 1.0)


def test_a_closed_pool_keeps_one_line() -> None:
    """Its nodes are gone."""
    free = {"hourly_rate": 0.0, "spot_count": 0, "ondemand_count": 0, "savings_vs_ondemand": 0.0}
    ended = CostFinal(total_cost=2.5, total_seconds=10.0, **free, at=20.0)
    state = state_of(*READY, ended, ClusterDestroyed(reason="the pool was left", elapsed=20.0, at=20.0))
    html = html_of(state, 30.0)
    assert "closed after 19.5 s" in html
    assert "1 call done, in 19.5 s on 2 nodes, $2.50" in html
    assert "node-0" not in html
    assert "1 call done, in 19.5 s on 2 nodes, $2.50" == text_of(state, 30.0)


def test_many_nodes_are_counted() -> None:
    """Those in need first."""
    nodes: list[SkywardEvent] = [NodeReady(node=node, at=1.0) for node in range(1000)]
    html = html_of(state_of(*nodes, InstanceRequested(node=999, at=2.0)), 3.0)
    assert "node-999" in html
    assert "+ 985 ready" in html
    assert len(html) < 20_000


@pytest.mark.parametrize("name", ["<script>alert(1)</script>", "<img src=x onerror=alert(1)>"])
def test_names_are_no_html(name: str) -> None:
    """Those of functions, providers, machines and steps."""
    state = state_of(
        InfraCreating(provider=name, region=name, at=0.5),
        InstanceRequested(node=0, at=0.5),
        InstanceLaunched(
            node=0, instance_id=name, spot=False, provider=name, instance_type=name, accelerator=name, at=0.0
        ),
        BootstrapProgress(step=name, instance_id="i", instance=InstanceInfo(node=0), at=0.5),
        Progress(label=name, done=1, total=2, at=0.5),
    )
    html = html_of(state, 1.0)
    assert "alert(1)" in html
    assert "<script" not in html
    assert "<img" not in html


def test_the_text_is_one_line() -> None:
    """For a reader without HTML."""
    assert "2 nodes | 1 running | 1 done | $1.00" == text_of(state_of(*READY), 13.0)
