"""
Spans that functions open on a node: gathered there, and sent to the client over the connection that is there anyway.

The node needs no way to the collector, and no key for it.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from attrs import frozen
from opentelemetry import context as contexts, trace
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider

import skyward as sky
from skyward_otel.trace_text import read, span_of_rank, span_of_run

AT_ONCE = 64
"""Spans that are sent together."""

EVERY = 1.0
"""Seconds after which those that have ended are sent, whatever their number."""

MOST = 10_000
"""Spans that wait for a call to be sent by; more are dropped, and counted."""


@frozen(kw_only=True)
class SpansEnded(sky.SkywardEvent):
    """
    Carry spans that ended on a node.

    Args:
        spans: Each as plain values.
        clock: When they were sent, by the node's clock.
        dropped: How many were not sent since the last time.
    """

    spans: tuple[dict[str, Any], ...]
    clock: float
    dropped: int = 0


class Gathering(SpanProcessor):
    """Gather spans of this process, and send them to the client of the call that runs."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ended: list[dict[str, Any]] = []
        self._dropped = 0
        self._sent = time.monotonic()

    def on_end(self, span: ReadableSpan) -> None:
        """Take a span; it is sent with others."""
        if span.context is None or not span.context.trace_flags.sampled:
            return
        with self._lock:
            if len(self._ended) < MOST:
                self._ended.append(plain(span))
            else:
                self._dropped += 1
            due = len(self._ended) >= AT_ONCE or time.monotonic() - self._sent >= EVERY
        if due:
            self.send()

    def send(self) -> None:
        """Send what has ended, if a call runs that it can be sent by."""
        while True:
            with self._lock:
                self._sent = time.monotonic()
                part, self._ended = self._ended[:AT_ONCE], self._ended[AT_ONCE:]
                dropped, self._dropped = self._dropped, 0
            if not part and not dropped:
                return
            now = time.time()
            try:
                sky.emit(SpansEnded(spans=tuple(part), clock=now, dropped=dropped, at=now))
            except Exception:
                # Of a thread that outlives its call, or larger than an event may be: none of it may harm the call.
                with self._lock:
                    self._dropped += dropped + len(part)
                return

    def shutdown(self) -> None:
        """Do nothing: a call's spans are sent at its end."""

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        """Send what has ended."""
        self.send()
        return True


_gathering: Gathering | None = None


def provide() -> None:
    """Gather spans of this process, unless the user's own code has seen to that."""
    global _gathering  # noqa: PLW0603  # one for a process, as OpenTelemetry has one provider
    if _gathering is not None:
        return
    _gathering = Gathering()
    provider = TracerProvider()
    provider.add_span_processor(_gathering)
    trace.set_tracer_provider(provider)


@contextmanager
def joined() -> Iterator[None]:
    """Run a call in its trace, and send the spans that ended in it."""
    brought = sky.carried("otel")
    call = None if brought is None else read(brought.text)
    if brought is None or call is None:
        yield
        return
    run = span_of_run(span_of_rank(call, brought.task, brought.broadcast), brought.attempt)
    place = trace.SpanContext(
        call.trace,
        run,
        is_remote=True,
        trace_flags=trace.TraceFlags(call.flags),
        trace_state=trace.TraceState.from_header([call.state] if call.state else []),
    )
    token = contexts.attach(trace.set_span_in_context(trace.NonRecordingSpan(place)))
    try:
        yield
    finally:
        # A generator may be left in another context than it was begun in.
        with contextlib.suppress(ValueError):
            contexts.detach(token)
        if _gathering is not None:
            _gathering.send()


def plain(span: ReadableSpan) -> dict[str, Any]:
    """Return a span as plain values, which travel."""
    assert span.context is not None
    scope = span.instrumentation_scope
    return {
        "name": span.name,
        "trace": span.context.trace_id,
        "span": span.context.span_id,
        "parent": span.parent.span_id if span.parent is not None else 0,
        "kind": span.kind.name,
        "start": span.start_time or 0,
        "end": span.end_time or 0,
        "status": span.status.status_code.name,
        "description": span.status.description,
        "attributes": _attributes(span.attributes),
        "events": [(event.name, event.timestamp, _attributes(event.attributes)) for event in span.events],
        "links": [(link.context.trace_id, link.context.span_id, _attributes(link.attributes)) for link in span.links],
        "scope": (scope.name, scope.version) if scope is not None else ("", None),
    }


def _attributes(attributes: Any) -> dict[str, Any]:
    return {str(key): list(value) if isinstance(value, tuple) else value for key, value in (attributes or {}).items()}
