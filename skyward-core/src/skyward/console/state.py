"""
What is known of a pool, folded from its events: the values that the consoles draw.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, TypeAlias

from attrs import evolve, field, frozen
from attrs.converters import optional

from skyward.console.wording import clean
from skyward.model.events.event import (
    BootstrapCompleted,
    BootstrapConsole,
    BootstrapFailed,
    BootstrapPhase,
    BootstrapProgress,
    BootstrapRequested,
    BootstrapStarting,
    ClusterDestroyed,
    ClusterProvisioned,
    ClusterReady,
    ClusterRequested,
    CostFinal,
    CostUpdate,
    InfraCreating,
    InstanceBootstrapped,
    InstanceDestroyed,
    InstanceLaunched,
    InstanceLaunching,
    InstancePreempted,
    InstanceProvisioned,
    InstanceReplaced,
    InstanceRequested,
    InstanceRunning,
    InstanceStopping,
    Metrics,
    NodeReady,
    NodeRecovered,
    NodeSuspected,
    PoolStopping,
    Progress,
    ShutdownRequested,
    SkywardEvent,
    TaskCompleted,
    TaskStarted,
)
from skyward.plain import plain_line

__all__ = ["Bar", "NodeState", "NodeView", "RunningTask", "State", "fold", "step"]

NodeState: TypeAlias = Literal[
    "requested", "launching", "running", "bootstrap", "ready", "silent", "lost", "stopping", "gone"
]
Phase: TypeAlias = Literal["opening", "ready", "stopping", "closed"]

# The rate is that of the last few seconds: so many samples, so far apart.
_SAMPLES = 12
_SAMPLE_S = 0.25


@frozen(kw_only=True)
class NodeView:
    """
    Hold what is known of one node.

    Args:
        since: When it came into its state, in seconds since the epoch.
        detail: What it does in that state, such as the phase of its bootstrap.
        detail_since: When it began that.
        cpu: Load of its processors, 0 to 100.
        memory: Share of its memory that is in use, 0 to 100.
        gpu: Load of its accelerators, 0 to 100.
        gpu_memory: Share of their memory that is in use, 0 to 100.
    """

    state: NodeState = "requested"
    since: float = 0.0
    detail: str = field(default="", converter=plain_line)
    detail_since: float = 0.0
    instance_type: str | None = field(default=None, converter=optional(plain_line))
    accelerator: str | None = field(default=None, converter=optional(plain_line))
    spot: bool = False
    cpu: float | None = None
    memory: float | None = None
    gpu: float | None = None
    gpu_memory: float | None = None


@frozen
class RunningTask:
    """Hold what is known of a task that runs."""

    function: str = field(converter=plain_line)
    node: int
    since: float


@frozen
class Bar:
    """Hold how far one map or gather is, and when it was first and last heard of."""

    done: int
    total: int | None
    since: float
    at: float

    @property
    def complete(self) -> bool:
        """Return whether all of it is done."""
        return self.total is not None and self.done >= self.total


@frozen(kw_only=True)
class State:
    """
    Hold what is known of a pool.

    Args:
        began: When it was first heard of, in seconds since the epoch.
        at: When it was last heard of.
        wanted: How many nodes were asked for, as far as known.
        done: Tasks that returned, by node; None stands for calls that never reached one.
        failed: Tasks that failed for good, likewise.
        cancelled: How many tasks were stopped, because their result was not wanted any more.
        logs: What to type for its stored log; empty where it has none.
        samples: A few moments of the last seconds, and how many tasks had ended by then.
    """

    phase: Phase = "opening"
    began: float = 0.0
    at: float = 0.0
    provider: str = field(default="", converter=plain_line)
    region: str | None = field(default=None, converter=optional(plain_line))
    wanted: int = 0
    nodes: Mapping[int, NodeView] = {}
    running: Mapping[str, RunningTask] = {}
    done: Mapping[int | None, int] = {}
    failed: Mapping[int | None, int] = {}
    cancelled: int = 0
    bars: Mapping[str, Bar] = {}
    samples: tuple[tuple[float, int], ...] = ()
    cost: CostUpdate | None = None
    final: CostFinal | None = None
    logs: str = ""

    @property
    def ended(self) -> int:
        """Return how many tasks have ended."""
        return sum(self.done.values()) + sum(self.failed.values())

    def owed(self, now: float) -> float:
        """Return what is owed by now, in USD: it is reported now and then, and goes on meanwhile."""
        if self.final is not None:
            return self.final.total_cost
        if self.cost is None:
            return 0.0
        return self.cost.accumulated_cost + self.cost.hourly_rate * max(0.0, now - self.cost.at) / 3600

    def rate(self, now: float) -> float:
        """Return how many tasks ended a second, over the last few seconds."""
        span = _SAMPLES * _SAMPLE_S
        recent = [sample for sample in self.samples if now - sample[0] <= span]
        if not recent or now - recent[0][0] < _SAMPLE_S:
            return 0.0
        return (self.ended - recent[0][1]) / (now - recent[0][0])


def step(state: State, event: SkywardEvent) -> State:
    """
    Return the state after an event.

    >>> step(State(), NodeReady(node=1, at=5.0)).nodes[1].state
    'ready'
    """
    return fold(state, (event,))


def fold(state: State, events: Iterable[SkywardEvent]) -> State:
    """
    Return the state after several events.

    Thousands of them cost little more than their number, because the state is copied once.

    Args:
        state: What was known.
        events: What has happened since, in order.
    """
    draft = _Draft(state)
    event: SkywardEvent | None = None
    for event in events:
        if draft.began == 0.0:
            draft.began = event.at
        apply = _APPLY.get(type(event))
        if apply is not None:
            apply(draft, event)
    return draft.finished(event) if event is not None else state


class _Draft:
    """Be a state that can be changed."""

    __slots__ = ("bars", "began", "cancelled", "done", "facts", "failed", "nodes", "running", "state")

    def __init__(self, state: State) -> None:
        self.state = state
        self.began = state.began
        self.cancelled = state.cancelled
        self.nodes = dict(state.nodes)
        self.running = dict(state.running)
        self.done = dict(state.done)
        self.failed = dict(state.failed)
        self.bars = dict(state.bars)
        self.facts: dict[str, Any] = {}

    def finished(self, last: SkywardEvent) -> State:
        """Return the changed state, its clock set by the last event."""
        state = self.state
        samples = state.samples
        if not samples or last.at - samples[-1][0] >= _SAMPLE_S:
            # What ended before this fold began, so that a burst after silence counts from its beginning.
            first = (state.at, state.ended) if samples and last.at - samples[-1][0] > _SAMPLES * _SAMPLE_S else None
            ended = sum(self.done.values()) + sum(self.failed.values())
            samples = (*(samples if first is None else (first,)), (last.at, ended))[-_SAMPLES:]
        return evolve(
            state,
            began=self.began,
            at=last.at,
            nodes=self.nodes,
            running=self.running,
            done=self.done,
            failed=self.failed,
            cancelled=self.cancelled,
            bars=self.bars,
            samples=samples,
            **self.facts,
        )

    def node(self, index: int, event: SkywardEvent, state: NodeState | None = None, **changes: Any) -> None:
        """Change what is known of a node; a new state counts from now."""
        view = self.nodes.get(index, NodeView(since=event.at))
        if state is not None and state != view.state:
            unknown = dict.fromkeys(("cpu", "memory", "gpu", "gpu_memory"))
            changes = {"state": state, "since": event.at, "detail": "", **unknown} | changes
        if changes.get("detail", view.detail) != view.detail:
            changes["detail_since"] = event.at
        self.nodes[index] = evolve(view, **changes)


Apply: TypeAlias = Callable[[_Draft, Any], None]


def _requested(draft: _Draft, event: ClusterRequested) -> None:
    draft.facts["logs"] = event.logs
    nodes = getattr(event.spec, "nodes", None)
    desired = getattr(nodes, "initial", nodes)
    if isinstance(desired, int):
        draft.facts["wanted"] = desired


def _infrastructure(draft: _Draft, event: InfraCreating) -> None:
    draft.facts |= {"provider": event.provider, "region": event.region}


def _launching(draft: _Draft, event: InstanceLaunching) -> None:
    draft.facts["provider"] = event.provider
    for index, view in draft.nodes.items():
        if view.state == "requested":
            draft.node(index, event, "launching", instance_type=event.instance_type, accelerator=event.accelerator)


def _instance(state: NodeState) -> Apply:
    def apply(draft: _Draft, event: InstanceLaunched) -> None:
        draft.facts["provider"] = event.provider
        known = {"instance_type": event.instance_type, "accelerator": event.accelerator}
        draft.node(event.node, event, state, spot=event.spot, **known)

    return apply


def _node(state: NodeState, detail: str = "") -> Apply:
    def apply(draft: _Draft, event: NodeReady) -> None:
        draft.node(event.node, event, state, detail=detail)

    return apply


def _bootstrap(detail: Callable[[Any], str]) -> Apply:
    def apply(draft: _Draft, event: SkywardEvent) -> None:
        if event.instance is not None:
            draft.node(event.instance.node, event, "bootstrap", detail=detail(event))

    return apply


def _phase(event: BootstrapPhase) -> str:
    if event.phase == "bootstrap":
        return ""
    return event.phase if event.event == "started" else f"{event.phase} {event.event}"


def _preempted(draft: _Draft, event: InstancePreempted) -> None:
    if not event.certain or event.ends_at is not None:
        # Its calls go on until it is gone.
        return
    draft.node(event.node, event, "lost", detail=event.reason)
    _forget(draft, event.node)


def _suspected(draft: _Draft, event: NodeSuspected) -> None:
    draft.node(event.node, event, "silent", detail=event.reason)


def _destroyed(draft: _Draft, event: InstanceDestroyed) -> None:
    view = draft.nodes.get(event.node)
    # A node whose new instance is under way already is not gone with the old one.
    if view is not None and view.state in ("stopping", "ready", "silent", "lost", "gone"):
        draft.node(event.node, event, "gone", detail=event.reason)
        _forget(draft, event.node)


def _forget(draft: _Draft, node: int) -> None:
    for task_id in [one for one, task in draft.running.items() if task.node == node]:
        del draft.running[task_id]


def _started(draft: _Draft, event: TaskStarted) -> None:
    draft.running[event.task_id] = RunningTask(event.function, event.node, event.at)


def _completed(draft: _Draft, event: TaskCompleted) -> None:
    draft.running.pop(event.task_id, None)
    if event.stopped or event.again:
        # Neither is a task that failed: one is not wanted any more, the other goes on.
        draft.cancelled += event.stopped
        return
    counts = draft.done if event.success else draft.failed
    counts[event.node] = counts.get(event.node, 0) + 1


def _progress(draft: _Draft, event: Progress) -> None:
    label = plain_line(event.label)
    before = draft.bars.get(label)
    # The same function may be mapped again: its bar begins again.
    fresh = before is None or event.done < before.done
    draft.bars.pop(label, None)
    draft.bars[label] = Bar(event.done, event.total, event.at if fresh or before is None else before.since, event.at)


def _metrics(draft: _Draft, event: Metrics) -> None:
    if event.node in draft.nodes:
        used, whole = event.gpu_memory_used_mb, event.gpu_memory_total_mb
        draft.node(
            event.node,
            event,
            cpu=event.cpu_percent,
            memory=event.memory_percent,
            gpu=event.gpu_utilization,
            gpu_memory=100 * used / whole if used is not None and whole else None,
        )


def _facts(name: str, value: Callable[[Any], Any]) -> Apply:
    def apply(draft: _Draft, event: SkywardEvent) -> None:
        draft.facts[name] = value(event)

    return apply


def _ready(draft: _Draft, event: ClusterReady) -> None:
    draft.facts["phase"] = "ready"
    draft.facts["wanted"] = max(draft.facts.get("wanted", draft.state.wanted), event.nodes)


_APPLY: Mapping[type[SkywardEvent], Apply] = {
    ClusterRequested: _requested,
    InfraCreating: _infrastructure,
    InstanceRequested: _node("requested"),
    InstanceLaunching: _launching,
    InstanceLaunched: _instance("launching"),
    InstanceRunning: _instance("running"),
    InstanceProvisioned: _instance("running"),
    BootstrapRequested: _bootstrap(lambda event: ""),
    BootstrapConsole: _bootstrap(lambda event: clean(event.line).strip()),
    BootstrapFailed: _bootstrap(lambda event: f"{event.phase} failed"),
    InstanceBootstrapped: _node("bootstrap", "done"),
    NodeReady: _node("ready"),
    NodeSuspected: _suspected,
    NodeRecovered: _node("ready"),
    ClusterProvisioned: _facts("wanted", lambda event: event.nodes),
    ClusterReady: _ready,
    TaskStarted: _started,
    TaskCompleted: _completed,
    Progress: _progress,
    Metrics: _metrics,
    CostUpdate: _facts("cost", lambda event: event),
    CostFinal: _facts("final", lambda event: event),
    InstancePreempted: _preempted,
    InstanceReplaced: _node("launching"),
    InstanceStopping: _node("stopping"),
    InstanceDestroyed: _destroyed,
    ShutdownRequested: _facts("phase", lambda event: "stopping"),
    PoolStopping: _facts("phase", lambda event: "stopping"),
    ClusterDestroyed: _facts("phase", lambda event: "closed"),
    BootstrapStarting: _bootstrap(_phase),
    BootstrapProgress: _bootstrap(_phase),
    BootstrapPhase: _bootstrap(_phase),
    BootstrapCompleted: _bootstrap(_phase),
}
