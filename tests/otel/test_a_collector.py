"""Through a real collector: Rotel takes what a pool exports, and passes it on as it does for any program."""

from __future__ import annotations

import importlib.util
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import skyward as sky
from tests.otel.collector import Received, receiver
from tests.otel.test_otel import double, work
from tests.waiting import until

pytestmark = pytest.mark.slow


@contextmanager
def rotel(passes_on_to: str) -> Iterator[str]:
    """Run the collector, and return its address."""
    found = importlib.util.find_spec("rotel")
    if found is None or found.origin is None:
        pytest.skip("rotel is not installed: it has no wheel for this Python or machine")
    with socket.socket() as http, socket.socket() as grpc:
        http.bind(("127.0.0.1", 0))
        grpc.bind(("127.0.0.1", 0))
        ports = http.getsockname()[1], grpc.getsockname()[1]
    program = subprocess.Popen(
        [
            *(Path(found.origin).with_name("rotel-agent"), "start"),
            *("--otlp-http-endpoint", f"127.0.0.1:{ports[0]}", "--otlp-grpc-endpoint", f"127.0.0.1:{ports[1]}"),
            *("--exporter", "otlp", "--otlp-exporter-endpoint", passes_on_to, "--otlp-exporter-protocol", "http"),
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        until(lambda: _listens(ports[0]))
        yield f"http://127.0.0.1:{ports[0]}"
    finally:
        program.terminate()
        program.wait(20)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _all_there(received: Received) -> bool:
    names = {span.name for span in received.spans()}
    bodies = {record.body for record in received.records()}
    return (
        {"double", "run double", "outer"} <= names and "doubling 4" in bodies and bool(received.points("skyward.calls"))
    )


def test_a_collector_takes_all_three_signals() -> None:
    """What comes out of it is what went in: one trace for each call, lines, counts."""
    with receiver() as received, rotel(received.url) as collector:
        with sky.Compute(console="silent", plugins=[sky.plugins.otel(endpoint=collector)]) as pool:
            assert 8 == double(4) >> pool
            work(2) >> pool
        until(lambda: _all_there(received))
        spans = received.spans()
    (run,) = [span for span in spans if span.name == "run work"]
    (call,) = [span for span in spans if span.name == "work"]
    (outer,) = [span for span in spans if span.name == "outer"]
    assert (call.id, run.id) == (run.parent, outer.parent)
    assert {call.trace} == {span.trace for span in spans if span.name.startswith("step ")}
    assert 0 == run.resource["skyward.node"]
