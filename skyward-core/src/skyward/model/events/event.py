"""
What happens to a pool, as frozen values.

Every event has `at` and `instance`; the other fields are its own.
A class that extends another one is delivered to handlers of both: `BootstrapStarting` *is* a `BootstrapPhase`.
Own events extend `SkywardEvent` and travel with `emit`.

There are no validators here: two events are made for every task, at tens of thousands of tasks a second.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import frozen

if TYPE_CHECKING:
    from skyward.model.spec.spec import Spec

__all__ = [
    "ALL",
    "BootstrapCommand",
    "BootstrapCompleted",
    "BootstrapConsole",
    "BootstrapFailed",
    "BootstrapPhase",
    "BootstrapProgress",
    "BootstrapRequested",
    "BootstrapStarting",
    "Callback",
    "ClusterDestroyed",
    "ClusterProvisioned",
    "ClusterReady",
    "ClusterRequested",
    "CostFinal",
    "CostUpdate",
    "Error",
    "InfraCreated",
    "InfraCreating",
    "InstanceBootstrapped",
    "InstanceDestroyed",
    "InstanceLaunched",
    "InstanceLaunching",
    "InstanceLingers",
    "InstancePreempted",
    "InstanceProvisioned",
    "InstanceReplaced",
    "InstanceRequested",
    "InstanceRunning",
    "InstanceStopping",
    "LaunchDelayed",
    "Log",
    "LogLine",
    "Metric",
    "Metrics",
    "NodeReady",
    "NodeRecovered",
    "NodeSuspected",
    "NodeUnhealthy",
    "PoolStopping",
    "Progress",
    "ShutdownRequested",
    "SkywardEvent",
    "TaskCompleted",
    "TaskStarted",
]

from skyward.model.events.bootstrap_event import (
    BootstrapCommand,
    BootstrapCompleted,
    BootstrapConsole,
    BootstrapFailed,
    BootstrapPhase,
    BootstrapProgress,
    BootstrapStarting,
)
from skyward.model.events.cost_event import CostFinal, CostUpdate
from skyward.model.events.event_base import Callback, SkywardEvent
from skyward.model.events.lingering_event import InstanceLingers
from skyward.model.events.loss_event import InstancePreempted, NodeRecovered, NodeSuspected, NodeUnhealthy
from skyward.model.events.task_event import Log, LogLine, Metric, Metrics, Progress, TaskCompleted, TaskStarted

# Requests


@frozen(kw_only=True)
class ClusterRequested(SkywardEvent):
    """
    Report that a pool is being opened for `spec`.

    Args:
        logs: What to type to read its stored log; empty where it has none.
    """

    spec: Spec | None = None
    logs: str = ""


@frozen(kw_only=True)
class InstanceRequested(SkywardEvent):
    """Report that `node` needs an instance."""

    node: int


@frozen(kw_only=True)
class BootstrapRequested(SkywardEvent):
    """Report that an instance that runs is about to be bootstrapped."""


@frozen(kw_only=True)
class ShutdownRequested(SkywardEvent):
    """Report that the pool was asked to close, and why."""

    reason: str = ""


# Infrastructure and instances


@frozen(kw_only=True)
class InfraCreating(SkywardEvent):
    """Report that networks, keys and the like are being created."""

    provider: str = ""
    region: str | None = None


@frozen(kw_only=True)
class InfraCreated(SkywardEvent):
    """Report that networks, keys and the like exist."""

    provider: str = ""
    region: str | None = None


@frozen(kw_only=True)
class InstanceLaunching(SkywardEvent):
    """
    Report that `count` instances are being asked for.

    Args:
        accelerator: The accelerators of each, such as `"8 × A100 40GB"`; None without any.
        place: The region or zone; None where there is none.
        spot: Whether they may be reclaimed.
        price: What an hour of each costs, in USD.
        next_best: What is tried if there are none, in words: the next two offers.
    """

    count: int
    instance_type: str | None
    provider: str
    accelerator: str | None = None
    place: str | None = None
    spot: bool = False
    price: float = 0.0
    next_best: tuple[str, ...] = ()


@frozen(kw_only=True)
class _InstanceFacts(SkywardEvent):
    """
    Hold what is known of one instance.

    Args:
        price_on_demand: In USD an hour; None where the provider does not sell it so.
        price_spot: In USD an hour; None where the provider does not sell it so.
        accelerator: Its accelerators, such as `"8 × A100 40GB"`; None without any.
    """

    instance_id: str
    node: int
    spot: bool
    provider: str
    ip: str | None = None
    instance_type: str | None = None
    price_on_demand: float | None = None
    price_spot: float | None = None
    accelerator: str | None = None


@frozen(kw_only=True)
class InstanceLaunched(_InstanceFacts):
    """Report that the provider accepted the launch; the instance is billed from about now."""


@frozen(kw_only=True)
class InstanceRunning(_InstanceFacts):
    """Report that the instance runs and has an address."""


@frozen(kw_only=True)
class InstanceProvisioned(_InstanceFacts):
    """Report that the instance can be reached and is ready to be bootstrapped."""


# Bootstrap


@frozen(kw_only=True)
class InstanceBootstrapped(SkywardEvent):
    """Report that the environment of `node` is complete."""

    node: int


@frozen(kw_only=True)
class NodeReady(SkywardEvent):
    """Report that the workers of `node` take tasks."""

    node: int


@frozen(kw_only=True)
class ClusterProvisioned(SkywardEvent):
    """Report that the first order's instances run and can be reached; `elapsed` is in seconds since the request."""

    nodes: int
    elapsed: float


@frozen(kw_only=True)
class ClusterReady(SkywardEvent):
    """Report that the pool takes tasks on `nodes` nodes; `elapsed` is in seconds since the request."""

    nodes: int
    elapsed: float


# Loss and end


@frozen(kw_only=True)
class InstanceReplaced(SkywardEvent):
    """Report that `node` moved from the instance `old` to the instance `new` (their ids)."""

    old: str
    new: str
    node: int


@frozen(kw_only=True)
class LaunchDelayed(SkywardEvent):
    """
    Report that `nodes` could not be started, and are asked for again.

    Args:
        nodes: The nodes.
        failures: How often each of them could not be started, in a row.
        retry_in: Seconds until they are asked for again.
        reason: Why the last start failed.
    """

    nodes: tuple[int, ...]
    failures: int
    retry_in: float
    reason: str = ""


@frozen(kw_only=True)
class InstanceStopping(SkywardEvent):
    """Report that an instance is being terminated, and of which node, where that is known."""

    instance_id: str
    node: int | None = None
    reason: str = ""


@frozen(kw_only=True)
class InstanceDestroyed(SkywardEvent):
    """Report that the provider confirmed the end of an instance."""

    instance_id: str
    node: int
    reason: str = ""


@frozen(kw_only=True)
class PoolStopping(SkywardEvent):
    """Report that the pool takes no more tasks and begins to end its instances."""

    reason: str = ""


@frozen(kw_only=True)
class ClusterDestroyed(SkywardEvent):
    """Report that nothing of the pool is left; `elapsed` is its whole life in seconds."""

    reason: str = ""
    elapsed: float = 0.0


# Money and trouble


@frozen(kw_only=True)
class Error(SkywardEvent):
    """Report trouble outside any task; `fatal` ends the pool."""

    message: str
    fatal: bool = False
    instance_id: str | None = None


ALL: tuple[type[SkywardEvent], ...] = (
    ClusterRequested,
    InfraCreating,
    InfraCreated,
    InstanceRequested,
    InstanceLaunching,
    InstanceLaunched,
    InstanceRunning,
    InstanceProvisioned,
    ClusterProvisioned,
    BootstrapRequested,
    BootstrapStarting,
    BootstrapProgress,
    BootstrapPhase,
    BootstrapCommand,
    BootstrapConsole,
    BootstrapFailed,
    BootstrapCompleted,
    InstanceBootstrapped,
    NodeReady,
    NodeSuspected,
    NodeRecovered,
    ClusterReady,
    TaskStarted,
    TaskCompleted,
    Progress,
    Log,
    Metric,
    Metrics,
    CostUpdate,
    InstancePreempted,
    NodeUnhealthy,
    InstanceReplaced,
    LaunchDelayed,
    ShutdownRequested,
    PoolStopping,
    InstanceStopping,
    InstanceDestroyed,
    InstanceLingers,
    CostFinal,
    ClusterDestroyed,
    Error,
)
