"""Values of OpenTelemetry's SDK, made of ours: spans, records of log, resources."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opentelemetry import trace
from opentelemetry._logs import LogRecord, SeverityNumber
from opentelemetry.sdk._logs import ReadableLogRecord
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags, TraceState

import skyward as sky
from skyward_otel.spans import Span

SCOPE = InstrumentationScope("skyward")

_SAMPLED = TraceFlags(TraceFlags.SAMPLED)
_KINDS = {"client": SpanKind.CLIENT, "server": SpanKind.SERVER, "internal": SpanKind.INTERNAL}


def client_resource(service: str | None) -> Resource:
    """
    Return who the client is, as the variables of OpenTelemetry say it.

    Args:
        service: Its name; None leaves that to the variables, and is `skyward` where they say nothing.
    """
    found = Resource.create({"service.name": service} if service is not None else {})
    if str(found.attributes.get("service.name", "")).startswith("unknown_service"):
        return found.merge(Resource({"service.name": "skyward"}))
    return found


def node_resource(client: Resource, node: int, info: sky.InstanceInfo | None) -> Resource:
    """
    Return who a node is: of the client's service, on another host.

    Args:
        client: Who the client is.
        node: The node's index.
        info: What is known of it.
    """
    facts: dict[str, Any] = {"skyward.node": node, "service.instance.id": f"node-{node}"}
    if info is not None:
        facts |= {
            "host.name": info.hostname,
            "host.id": info.id,
            "host.type": info.instance_type,
            "cloud.provider": info.provider,
            "cloud.region": info.region,
        }
    return client.merge(Resource({key: value for key, value in facts.items() if value not in (None, "")}))


def sdk_span(span: Span, resource: Resource, state: str = "") -> ReadableSpan:
    """
    Return a span as the SDK has them.

    Args:
        span: The span.
        resource: Who it is of.
        state: Its trace's `tracestate`.
    """
    states = TraceState.from_header([state]) if state else TraceState()
    context = SpanContext(span.trace, span.span, is_remote=False, trace_flags=_SAMPLED, trace_state=states)
    parent = None
    if span.parent:
        parent = SpanContext(span.trace, span.parent, is_remote=False, trace_flags=_SAMPLED, trace_state=states)
    status = Status(StatusCode.UNSET) if span.failure is None else Status(StatusCode.ERROR, span.failure)
    start = round(span.start * 1e9)
    return ReadableSpan(
        name=span.name,
        context=context,
        parent=parent,
        resource=resource,
        attributes=span.attributes,
        kind=_KINDS[span.kind],
        status=status,
        start_time=start,
        end_time=max(start, round(span.end * 1e9)),
        instrumentation_scope=SCOPE,
    )


def sdk_span_of_node(found: Mapping[str, Any], resource: Resource, ahead: float) -> ReadableSpan:
    """
    Return a span that a function opened on a node, by the client's clock.

    Args:
        found: The span, as plain values.
        resource: Who the node is.
        ahead: Seconds that its clock is ahead.
    """
    late = round(ahead * 1e9)
    trace_id = int(found["trace"])
    parent = int(found["parent"])
    name, version = found["scope"]
    return ReadableSpan(
        name=str(found["name"]),
        context=SpanContext(trace_id, int(found["span"]), is_remote=False, trace_flags=_SAMPLED),
        parent=SpanContext(trace_id, parent, is_remote=True, trace_flags=_SAMPLED) if parent else None,
        resource=resource,
        attributes=found["attributes"],
        events=tuple(Event(event, attributes, at - late) for event, at, attributes in found["events"]),
        links=tuple(
            Link(SpanContext(of, span, is_remote=True, trace_flags=_SAMPLED), attributes)
            for of, span, attributes in found["links"]
        ),
        kind=SpanKind[found["kind"]],
        status=Status(StatusCode[found["status"]], found["description"]),
        start_time=int(found["start"]) - late,
        end_time=int(found["end"]) - late,
        instrumentation_scope=InstrumentationScope(str(name), version),
    )


def sdk_record(
    body: str,
    severity: str,
    at: float,
    resource: Resource,
    attributes: Mapping[str, Any],
    *,
    name: str | None = None,
    within: tuple[int, int] | None = None,
) -> ReadableLogRecord:
    """
    Return a record of log as the SDK has them.

    Args:
        body: What it says.
        severity: `"INFO"`, `"WARN"`, `"ERROR"` or `"FATAL"`.
        at: When, in seconds since 1970.
        resource: Who it is of.
        attributes: What else is known.
        name: Name of the event that it is of; None for a line.
        within: The trace and the span that it is of.
    """
    context = None
    if within is not None:
        place = SpanContext(*within, is_remote=False, trace_flags=_SAMPLED)
        context = trace.set_span_in_context(trace.NonRecordingSpan(place))
    record = LogRecord(
        timestamp=round(at * 1e9),
        observed_timestamp=round(at * 1e9),
        context=context,
        severity_text=severity,
        severity_number=SeverityNumber[severity],
        body=body,
        attributes=dict(attributes),
        event_name=name,
    )
    return ReadableLogRecord(log_record=record, resource=resource, instrumentation_scope=SCOPE)
