"""Events are values: exact fields, cheap, comparable, able to travel."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from time import time
from typing import Any

import attrs
import pytest

from skyward.model.events import event as events
from skyward.model.events.event import (
    ALL,
    BootstrapCompleted,
    BootstrapPhase,
    BootstrapProgress,
    BootstrapStarting,
    InstanceStopping,
    Log,
    LogLine,
    NodeReady,
    SkywardEvent,
    TaskCompleted,
)
from skyward.model.instances.instance import InstanceInfo

_INSTANCE_FACTS = "instance_id node spot provider ip instance_type price_on_demand price_spot accelerator"

FIELDS = {
    "ClusterRequested": "spec logs",
    "InstanceRequested": "node",
    "BootstrapRequested": "",
    "ShutdownRequested": "reason",
    "InfraCreating": "provider region",
    "InfraCreated": "provider region",
    "InstanceLaunching": "count instance_type provider accelerator place spot price next_best",
    "InstanceLaunched": _INSTANCE_FACTS,
    "InstanceRunning": _INSTANCE_FACTS,
    "InstanceProvisioned": _INSTANCE_FACTS,
    "BootstrapPhase": "phase event elapsed",
    "BootstrapStarting": "elapsed instance_id phase event",
    "BootstrapProgress": "elapsed instance_id step phase event",
    "BootstrapCompleted": "elapsed instance_id phase event",
    "BootstrapConsole": "line",
    "BootstrapCommand": "command",
    "BootstrapFailed": "phase error",
    "InstanceBootstrapped": "node",
    "NodeReady": "node",
    "NodeSuspected": "node silent reason",
    "NodeRecovered": "node silent",
    "ClusterProvisioned": "nodes elapsed",
    "ClusterReady": "nodes elapsed",
    "TaskStarted": "task_id function node",
    "TaskCompleted": "task_id function node success duration error again retry_in stopped",
    "Progress": "label done total",
    "Log": "line stream node task_id",
    "Metric": "name value unit node",
    "Metrics": (
        "instance_id node cpu_percent memory_percent memory_used_mb memory_total_mb gpu_utilization "
        "gpu_memory_used_mb gpu_memory_total_mb gpu_temperature"
    ),
    "InstancePreempted": "reason node instance_id certain ends_at cause",
    "NodeUnhealthy": "check reason node instance_id replaced",
    "InstanceReplaced": "old new node",
    "LaunchDelayed": "nodes failures retry_in reason",
    "InstanceStopping": "instance_id node reason",
    "InstanceDestroyed": "instance_id node reason",
    "InstanceLingers": "instance_id node seconds cost",
    "PoolStopping": "reason",
    "ClusterDestroyed": "reason elapsed",
    "CostUpdate": "elapsed_seconds accumulated_cost hourly_rate spot_count ondemand_count",
    "CostFinal": "total_cost total_seconds hourly_rate spot_count ondemand_count savings_vs_ondemand receipt",
    "Error": "message fatal instance_id",
}


@dataclass(frozen=True)
class Checkpoint(SkywardEvent):
    """An event as a user would write it."""

    step: int


def made(kind: type[SkywardEvent]) -> SkywardEvent:
    """An event of a type, with something in every field that must have something."""
    required = (one.name for one in attrs.fields(kind) if one.default is attrs.NOTHING)
    values: dict[str, Any] = dict.fromkeys(required, 1)
    return kind(**values)


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
def test_fields_are_those_of_the_contract(kind: type[SkywardEvent]) -> None:
    """Each event has `at`, `instance` and exactly the fields that users match on."""
    assert ["at", "instance", *FIELDS[kind.__name__].split()] == [one.name for one in attrs.fields(kind)]


def test_all_lists_every_event() -> None:
    """`ALL` holds each public event class once."""
    public = {
        value
        for name, value in vars(events).items()
        if isinstance(value, type) and issubclass(value, SkywardEvent) and not name.startswith("_")
    }
    assert public - {SkywardEvent} == set(ALL)
    assert len(ALL) == len(FIELDS)


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
def test_events_travel(kind: type[SkywardEvent]) -> None:
    """Every event is equal to itself after pickling."""
    event = made(kind)
    assert pickle.loads(pickle.dumps(event)) == event


def test_an_event_is_stamped_when_it_is_made() -> None:
    """`at` is the time of creation unless it is given."""
    before = time()
    assert before <= NodeReady(node=0).at <= time()
    assert NodeReady(node=0, at=5.0).at == 5.0


def test_events_are_frozen() -> None:
    """An event cannot be changed, because many handlers see the same one."""
    with pytest.raises(attrs.exceptions.FrozenInstanceError, match="set attribute"):
        NodeReady(node=0).node = 1  # type: ignore[misc]


def test_fields_are_keywords() -> None:
    """Fields are given by name only."""
    with pytest.raises(TypeError, match="positional"):
        Log("hello", 0)  # type: ignore[call-arg, arg-type]


def test_older_bootstrap_events_are_phases_of_the_whole() -> None:
    """Who listens to `BootstrapPhase` hears the older three as well."""
    assert isinstance(BootstrapStarting(instance_id="i"), BootstrapPhase)
    assert ("bootstrap", "started") == (
        BootstrapStarting(instance_id="i").phase,
        BootstrapStarting(instance_id="i").event,
    )
    assert ("bootstrap", "completed") == (
        BootstrapCompleted(instance_id="i").phase,
        BootstrapCompleted(instance_id="i").event,
    )
    assert BootstrapProgress(instance_id="i", step="apt").phase == "apt"


def test_log_line_is_log() -> None:
    """The older name is the same class, and its older fields can be read."""
    line = Log(line="x", node=1, at=2.0, instance=InstanceInfo(id="i-1"))
    assert LogLine is Log
    assert (2.0, "i-1") == (line.timestamp, line.instance_id)
    assert Log(line="x", node=1).instance_id is None


def test_a_log_line_is_made_by_its_older_fields() -> None:
    """The time and the instance can be given under the names of the older class."""
    line = LogLine(node=2, instance_id="i-1", line="x", timestamp=2.0)
    assert (2.0, "i-1") == (line.at, line.instance_id)
    assert line == Log(node=2, line="x", at=2.0, instance=InstanceInfo(id="i-1", node=2))
    assert line == attrs.evolve(line, at=2.0)


def test_an_instance_is_stopped_of_which_only_the_id_is_known() -> None:
    """The older constructor names no node."""
    assert InstanceStopping(instance_id="i-1").node is None


def test_events_match_by_keyword() -> None:
    """Handlers can take events apart with `match`."""
    match TaskCompleted(task_id="1", function="f", node=0, duration=2.5):
        case TaskCompleted(success=True, duration=duration):
            assert duration == 2.5
        case other:
            pytest.fail(f"not matched: {other}")


def test_dataclasses_of_users_travel() -> None:
    """A frozen dataclass that extends the base keeps its fields when it is pickled."""
    assert pickle.loads(pickle.dumps(Checkpoint(3))).step == 3
