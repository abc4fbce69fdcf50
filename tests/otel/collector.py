"""
A receiver of OTLP over HTTP, with OpenTelemetry's own messages: what the exporters send is read as a collector does.

It is no collector: `test_a_collector.py` has a real one between the two.
"""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

_KINDS = {
    "/v1/traces": ExportTraceServiceRequest,
    "/v1/metrics": ExportMetricsServiceRequest,
    "/v1/logs": ExportLogsServiceRequest,
}


class Received:
    """
    Hold what came.

    Args:
        url: Where the receiver listens.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.headers: list[dict[str, str]] = []
        self.requests: list[tuple[str, Any]] = []

    def spans(self) -> list[Span]:
        """List the spans, in the order in which they began."""
        found = [
            Span(span, attributes(resource.resource))
            for path, request in list(self.requests)
            if path == "/v1/traces"
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]
        return sorted(found, key=lambda span: span.start)

    def records(self) -> list[Record]:
        """List the records of log, in the order in which they came."""
        return [
            Record(record, attributes(resource.resource))
            for path, request in list(self.requests)
            if path == "/v1/logs"
            for resource in request.resource_logs
            for scope in resource.scope_logs
            for record in scope.log_records
        ]

    def points(self, name: str) -> list[tuple[dict[str, Any], Any]]:
        """List the points of a metric, each with its attributes, the latest request's last."""
        found = []
        for path, request in list(self.requests):
            if path != "/v1/metrics":
                continue
            for resource in request.resource_metrics:
                for scope in resource.scope_metrics:
                    for metric in scope.metrics:
                        if metric.name == name:
                            data = getattr(metric, metric.WhichOneof("data"))
                            found += [(attributes(point), point) for point in data.data_points]
        return found


class Span:
    """One span, with who it is of."""

    def __init__(self, span: Any, resource: dict[str, Any]) -> None:
        self.name: str = span.name
        self.trace: str = span.trace_id.hex()
        self.id: str = span.span_id.hex()
        self.parent: str = span.parent_span_id.hex()
        self.start: int = span.start_time_unix_nano
        self.end: int = span.end_time_unix_nano
        self.failed: bool = span.status.code == 2
        self.why: str = span.status.message
        self.attributes = attributes(span)
        self.resource = resource
        self.events: list[str] = [event.name for event in span.events]

    def __repr__(self) -> str:
        return f"<{self.name} {self.id} in {self.parent}>"


class Record:
    """One record of log, with who it is of."""

    def __init__(self, record: Any, resource: dict[str, Any]) -> None:
        self.body: str = record.body.string_value
        self.severity: str = record.severity_text
        self.trace: str = record.trace_id.hex()
        self.span: str = record.span_id.hex()
        self.attributes = attributes(record)
        self.resource = resource
        self.name: str = record.event_name


def attributes(holder: Any) -> dict[str, Any]:
    """Return attributes as a dict."""
    return {
        each.key: getattr(each.value, each.value.WhichOneof("value") or "string_value") for each in holder.attributes
    }


@contextmanager
def receiver(status: int = 200) -> Iterator[Received]:
    """
    Run a receiver.

    Args:
        status: What it answers.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.headers.get("content-encoding") == "gzip":
                body = gzip.decompress(body)
            received.headers.append({name.lower(): value for name, value in self.headers.items()})
            received.requests.append((self.path, _KINDS[self.path].FromString(body)))
            self.send_response(status)
            self.send_header("content-type", "application/x-protobuf")
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            return

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        received = Received(f"http://127.0.0.1:{server.server_address[1]}")
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield received
        finally:
            server.shutdown()
            thread.join()
