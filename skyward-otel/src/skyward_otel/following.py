"""The client's side: each call begins in the span that it is made in, and is exported when it has ended."""

from __future__ import annotations

import random
from collections import OrderedDict
from typing import Any

import attrs
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import DEFAULT_ON, Decision

import skyward as sky
from skyward.hookspecs import CallTimes, Follower
from skyward_otel.exporting import Destination, Outbox
from skyward_otel.instruments import Instruments
from skyward_otel.node_spans import SpansEnded
from skyward_otel.sdk_values import client_resource, node_resource, sdk_record, sdk_span, sdk_span_of_node
from skyward_otel.spans import TASK_BITS, spans_of
from skyward_otel.trace_text import CallSpan, read, span_of_rank, span_of_run, written

ENDED = 8192
"""Calls that are remembered after their end, because lines that they printed may come later."""

LOGGED: tuple[type[sky.SkywardEvent], ...] = (
    sky.ClusterRequested,
    sky.InfraCreating,
    sky.InstanceLaunching,
    sky.InstanceLaunched,
    sky.InstanceRunning,
    sky.BootstrapFailed,
    sky.NodeReady,
    sky.ClusterReady,
    sky.LaunchDelayed,
    sky.NodeSuspected,
    sky.NodeRecovered,
    sky.NodeUnhealthy,
    sky.InstancePreempted,
    sky.InstanceReplaced,
    sky.InstanceStopping,
    sky.InstanceDestroyed,
    sky.InstanceLingers,
    sky.PoolStopping,
    sky.ClusterDestroyed,
    sky.CostFinal,
    sky.Error,
)
"""The pool's own events that are logged."""

_WARNINGS = (
    sky.BootstrapFailed,
    sky.LaunchDelayed,
    sky.NodeSuspected,
    sky.NodeUnhealthy,
    sky.InstancePreempted,
)


class OtelFollower(Follower):
    """
    Follow a pool, and export what becomes of its calls.

    Args:
        pool: The pool.
        to: Where to.
        service: Name of the service; None leaves it to the variables.
        phases: Whether each phase of a call has a span.
    """

    own = False

    def __init__(self, pool: Any, to: Destination, service: str | None, *, phases: bool) -> None:
        self._pool = pool
        self._phases = phases
        self._traces, self._logs = to.wants("traces"), to.wants("logs")
        wanted: list[type[sky.SkywardEvent]] = [sky.NodeReady]
        wanted += [SpansEnded] if self._traces else []
        wanted += [sky.Log, *LOGGED] if self._logs else []
        self.events = tuple(dict.fromkeys(wanted))
        self._resource = client_resource(service)
        self._nodes: dict[int | None, Any] = {None: self._resource}
        self._sampler = TracerProvider(resource=self._resource, shutdown_on_exit=False).sampler
        self._random = random.Random()
        # Where calls are, for the lines that they print: task, and what it carries and its attempt.
        self._running: dict[int, tuple[str, int, int]] = {}
        self._ended: OrderedDict[int, tuple[str, int, int]] = OrderedDict()
        self._first: dict[int, float] = {}
        self._instruments = Instruments(pool, self._resource, _metrics(to)) if to.wants("metrics") else None
        spans = _spans(to) if self._traces else None
        self._outbox = Outbox(
            pool.name,
            self._made,
            spans=spans,
            records=_records(to) if self._logs else None,
            collect=self._instruments.collect if self._instruments is not None else None,
            where=to.endpoint or "of the environment",
        )

    def submitted(self, function: str) -> str:
        """Begin a call in the span that it is made in; what it carries names both."""
        around = trace.get_current_span().get_span_context()
        new = self._random.getrandbits
        trace_id = around.trace_id if around.is_valid else new(128) or 1
        if self._sampler is DEFAULT_ON:
            flags = int(around.trace_flags) if around.is_valid else 1
            state = around.trace_state
        else:
            decided = self._sampler.should_sample(None if not around.is_valid else _current(), trace_id, function)
            flags, state = (
                int(decided.decision is Decision.RECORD_AND_SAMPLE),
                decided.trace_state or around.trace_state,
            )
        parent = around.span_id if around.is_valid else 0
        header = state.to_header() if state else ""
        return written(CallSpan(trace_id, new(64) or 1, flags, parent, header))

    def started(self, attempt: int, node: int, carried: str) -> None:
        """Record where an attempt is, for what it prints."""
        if carried:
            self._running[attempt & (1 << TASK_BITS) - 1] = carried, attempt, 0

    def ended(self, call: CallTimes) -> None:
        """Leave a note for the thread that exports."""
        self._outbox.put(call)

    def happened(self, event: sky.SkywardEvent) -> None:
        """Leave a note of an event."""
        if isinstance(event, sky.NodeReady):
            self._nodes[event.node] = node_resource(self._resource, event.node, event.instance)
            if not self._logs:
                return
        self._outbox.put(event)

    def left(self) -> None:
        """Send what is left."""
        self._outbox.close()

    # In the thread that exports.

    def _made(self, note: Any) -> tuple[list[Any], list[Any]]:
        if isinstance(note, CallTimes):
            return self._of_call(note)
        if isinstance(note, SpansEnded):
            node = note.instance.node if note.instance is not None else 0
            self._outbox.lost += note.dropped
            ahead = note.clock - note.at
            return [sdk_span_of_node(found, self._of_node(node), ahead) for found in note.spans], []
        if isinstance(note, sky.Log):
            return [], [self._line(note)]
        return [], [self._event(note)]

    def _of_call(self, call: CallTimes) -> tuple[list[Any], list[Any]]:
        if self._instruments is not None:
            self._instruments.ended(call)
        self._running.pop(call.task, None)
        self._ended[call.task] = call.carried, call.attempt, call.broadcast
        if len(self._ended) > ENDED:
            self._ended.popitem(last=False)
        first = self._first.pop(call.task, call.submitted)
        if call.again:
            self._first[call.task] = first
        carried = read(call.carried)
        if carried is None:
            return [], []
        records = []
        if self._logs and call.failure is not None and not call.stopped:
            severity = "WARN" if call.again else "ERROR"
            about = {"skyward.pool": self._pool.name, "skyward.task": call.task, "code.function.name": call.function}
            place = self._place(call.carried, call.task, call.attempt, call.broadcast)
            text = f"{call.function} failed: {call.failure}"
            name = "skyward.call.failed"
            records.append(
                sdk_record(text, severity, call.answered, self._of_node(call.node), about, name=name, within=place)
            )
        if not self._traces or not carried.sampled:
            return [], records
        described = spans_of(call, carried, self._pool.name, first, phases=self._phases)
        return [sdk_span(span, self._of_node(span.node), carried.state) for span in described], records

    def _line(self, line: sky.Log) -> Any:
        about: dict[str, Any] = {
            "log.iostream": line.stream,
            "skyward.pool": self._pool.name,
            "skyward.node": line.node,
        }
        place = None
        if line.task_id is not None:
            about["skyward.task"] = int(line.task_id)
            known = self._running.get(int(line.task_id)) or self._ended.get(int(line.task_id))
            place = None if known is None else self._place(known[0], int(line.task_id), known[1], known[2])
        return sdk_record(line.line, "INFO", line.at, self._of_node(line.node), about, within=place)

    def _event(self, event: sky.SkywardEvent) -> Any:
        severity = "WARN" if isinstance(event, _WARNINGS) else "INFO"
        if isinstance(event, sky.Error):
            severity = "FATAL" if event.fatal else "ERROR"
        plain = {
            f"skyward.{name}": value
            for name, value in _fields(event).items()
            if isinstance(value, str | bool | int | float) and name != "at"
        }
        name = type(event).__name__
        said = getattr(event, "message", "") or getattr(event, "reason", "")
        body = f"{name}: {said}" if said else name
        about = {**plain, "skyward.pool": self._pool.name}
        return sdk_record(body, severity, event.at, self._resource, about, name=f"skyward.{name}")

    def _of_node(self, node: int | None) -> Any:
        found = self._nodes.get(node)
        if found is None and node is not None:
            found = self._nodes[node] = node_resource(self._resource, node, None)
        return found

    @staticmethod
    def _place(carried: str, task: int, attempt: int, broadcast: int) -> tuple[int, int] | None:
        """Return the trace and the span in which an attempt runs."""
        call = read(carried)
        if call is None:
            return None
        return call.trace, span_of_run(span_of_rank(call, task, broadcast), attempt)


def _fields(event: sky.SkywardEvent) -> dict[str, Any]:
    return {each.name: getattr(event, each.name) for each in attrs.fields(type(event))}


def _current() -> Any:
    from opentelemetry import context

    return context.get_current()


def _spans(to: Destination) -> Any:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    return to.exporter("traces", OTLPSpanExporter)


def _records(to: Destination) -> Any:
    from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter

    return to.exporter("logs", OTLPLogExporter)


def _metrics(to: Destination) -> Any:
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter

    return to.exporter("metrics", OTLPMetricExporter)
