"""A real pool's traces, metrics and logs, as a receiver of OTLP reads them; sent by OpenTelemetry's own exporters."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator

import pytest
from opentelemetry.trace import Tracer

import skyward as sky
from skyward_otel.node_spans import AT_ONCE, SpansEnded
from tests.otel.collector import Received, Span, receiver


@pytest.fixture
def received() -> Iterator[Received]:
    """Run a receiver."""
    with receiver() as received:
        yield received


@sky.function
def double(x: int) -> int:
    """Double a number, and say so."""
    print(f"doubling {x}")
    return 2 * x


@sky.function
def fail() -> None:
    """Fail."""
    raise ValueError("as told")


@sky.function
def work(steps: int) -> None:
    """Open spans."""
    from opentelemetry import trace

    tracer = trace.get_tracer("mine", "1.0")
    with tracer.start_as_current_span("outer", attributes={"steps": steps}) as outer:
        outer.add_event("began")
        for step in range(steps):
            with tracer.start_as_current_span(f"step {step}"):
                pass


@sky.function
def count(n: int) -> Iterator[int]:
    """Open a span for each item."""
    from opentelemetry import trace

    for i in range(n):
        with trace.get_tracer("mine").start_as_current_span(f"item {i}"):
            yield i


@sky.function
async def wait() -> None:
    """Open a span in an event loop."""
    import asyncio

    from opentelemetry import trace

    with trace.get_tracer("mine").start_as_current_span("awaited"):
        await asyncio.sleep(0)


def named(received: Received, name: str) -> list[Span]:
    """Return the spans of a name."""
    return [span for span in received.spans() if span.name == name]


def test_a_call_is_one_trace_from_the_callers_span_to_the_functions_own(received: Received, tracer: Tracer) -> None:
    """The client's spans, the run on the node, and what the function opens there."""
    with (
        sky.Compute(console="silent", plugins=[sky.plugins.otel(endpoint=received.url, logs=False)]) as pool,
        tracer.start_as_current_span("program") as program,
    ):
        work(3) >> pool
    around = program.get_span_context()
    assert {f"{around.trace_id:032x}"} == {span.trace for span in received.spans()}
    (call,), (run,), (outer,) = (named(received, name) for name in ("work", "run work", "outer"))
    assert (f"{around.span_id:016x}", call.id, run.id) == (call.parent, run.parent, outer.parent)
    assert ["step 0", "step 1", "step 2"] == [span.name for span in received.spans() if span.parent == outer.id]
    assert "submit queue transfer result".split() == [
        span.name for span in received.spans() if span.parent == call.id and span.id != run.id
    ]
    assert call.start <= run.start <= outer.start <= outer.end <= run.end <= call.end
    assert ("skyward", 0) == (run.resource["service.name"], run.resource["skyward.node"])
    assert run.resource["host.name"] == outer.resource["host.name"]
    assert "skyward.node" not in call.resource
    assert (3, ["began"]) == (outer.attributes["steps"], outer.events)


def test_a_call_outside_any_span_begins_a_trace(received: Received) -> None:
    """Each its own; and generators, coroutines and broadcasts join theirs."""
    with sky.Compute(console="silent", nodes=2, plugins=[sky.plugins.otel(endpoint=received.url, logs=False)]) as pool:
        assert [0, 1, 2] == list(count(3) >> pool)
        wait() >> pool
        work(0) @ pool
    calls = [span for span in received.spans() if not span.parent]
    assert ["count", "wait", "work", "work"] == [span.name for span in calls]
    assert 3 == len({span.trace for span in calls})
    for name, within in (("item 2", "run count"), ("awaited", "run wait"), ("outer", "run work")):
        for span in named(received, name):
            assert span.parent in {run.id for run in named(received, within)}
    assert 2 == len({span.parent for span in named(received, "outer")})
    assert {0, 1} == {span.resource["skyward.node"] for span in named(received, "outer")}


def test_a_failure_is_told_in_the_trace_and_in_the_log(received: Received) -> None:
    """With the trace's ids."""
    with (
        sky.Compute(console="silent", plugins=[sky.plugins.otel(endpoint=received.url)]) as pool,
        pytest.raises(ValueError, match="as told"),
    ):
        fail() >> pool
    (call,), (run,) = named(received, "fail"), named(received, "run fail")
    assert [(True, "ValueError: as told")] * 2 == [(span.failed, span.why) for span in (call, run)]
    (record,) = [record for record in received.records() if record.name == "skyward.call.failed"]
    assert ("ERROR", run.trace, run.id) == (record.severity, record.trace, record.span)


def test_lines_and_events_are_logged(received: Received) -> None:
    """A line has the ids of the call that printed it."""
    with sky.Compute(console="silent", plugins=[sky.plugins.otel(endpoint=received.url)]) as pool:
        assert [2, 4] == pool.map(double, [1, 2])
    lines = [record for record in received.records() if record.body.startswith("doubling")]
    runs = {span.id: span for span in named(received, "run double")}
    assert {"doubling 1", "doubling 2"} == {line.body for line in lines}
    assert all(line.trace == runs[line.span].trace for line in lines)
    assert {("stdout", 0)} == {(line.attributes["log.iostream"], line.attributes["skyward.node"]) for line in lines}
    names = [record.name for record in received.records() if record.name]
    assert ["skyward.NodeReady", "skyward.ClusterReady"] == [name for name in names if name.endswith("Ready")]
    assert "skyward.InstanceDestroyed" in names


def test_metrics_tell_calls_durations_queue_nodes_and_cost(received: Received) -> None:
    """Collected at least once, when the pool is left."""
    with sky.Compute(console="silent", plugins=[sky.plugins.otel(endpoint=received.url)]) as pool:
        pool.map(double, [1, 2, 3])
        with pytest.raises(ValueError, match="as told"):
            fail() >> pool
    calls = {
        (about["code.function.name"], about["skyward.outcome"]): point.as_int
        for about, point in received.points("skyward.calls")
    }
    assert {("double", "ok"): 3, ("fail", "failed"): 1} == calls
    durations = {about["code.function.name"]: point for about, point in received.points("skyward.call.run")}
    assert (3, 1) == (durations["double"].count, durations["fail"].count)
    assert 0 < durations["double"].sum < 60
    for name in ("skyward.queue.length", "skyward.cost", "skyward.cost.rate", "skyward.calls.running"):
        assert [{"skyward.pool": "pool"}] == [about for about, _ in received.points(name)]


@pytest.mark.slow
def test_spans_of_nodes_that_are_trusted_with_data_come_once_they_are_listed(received: Received) -> None:
    """Their event is opened as any of the user's own."""
    plugin = sky.plugins.otel(endpoint=received.url, logs=False)
    with sky.Compute(console="silent", trust=sky.Data(SpansEnded), plugins=[plugin]) as pool:
        work(1) >> pool
    assert 1 == len(named(received, "outer"))


def test_many_spans_of_one_call_travel_in_parts(received: Received) -> None:
    """None is lost."""
    with sky.Compute(console="silent", plugins=[sky.plugins.otel(endpoint=received.url, logs=False)]) as pool:
        work(3 * AT_ONCE) >> pool
    assert 3 * AT_ONCE == sum(span.name.startswith("step ") for span in received.spans())


def test_the_variables_of_opentelemetry_hold(received: Received, monkeypatch: pytest.MonkeyPatch) -> None:
    """Address, key, name and sampling, where nothing is said in code."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", received.url)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key=secret")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
    monkeypatch.setenv("OTEL_SERVICE_NAME", "study")
    monkeypatch.setenv("OTEL_METRICS_EXPORTER", "none")
    with sky.Compute(console="silent", plugins=[sky.plugins.otel(phases=False, logs=False)]) as pool:
        double(1) >> pool
    assert ["double", "run double"] == [span.name for span in received.spans()]
    assert {"study"} == {span.resource["service.name"] for span in received.spans()}
    assert {"/v1/traces"} == {path for path, _ in received.requests}
    assert {"secret"} == {headers["x-key"] for headers in received.headers}


def test_what_is_not_sampled_is_not_exported(received: Received, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the call nor what its function opens."""
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "always_off")
    with sky.Compute(console="silent", plugins=[sky.plugins.otel(endpoint=received.url)]) as pool:
        work(1) >> pool
    assert [] == received.spans()
    assert [1] == [point.as_int for _, point in received.points("skyward.calls")]


def test_a_disabled_sdk_sends_nothing(received: Received, monkeypatch: pytest.MonkeyPatch) -> None:
    """As its variable says."""
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    with sky.Compute(console="silent", plugins=[sky.plugins.otel(endpoint=received.url)]) as pool:
        double(1) >> pool
    assert [] == received.requests


@pytest.mark.slow
def test_a_collector_that_is_away_costs_only_its_spans(caplog: pytest.LogCaptureFixture) -> None:
    """The pool runs as ever and is left in seconds; what is lost is counted, and said once."""
    plugin = sky.plugins.otel(endpoint="http://127.0.0.1:9", timeout=1)
    with sky.Compute(console="silent", plugins=[plugin]) as pool:
        began = time.monotonic()
        assert [2 * x for x in range(200)] == pool.map(double, range(200))
        assert time.monotonic() - began < 30
        left = time.monotonic()
    assert time.monotonic() - left < 15
    said = [record.getMessage() for record in caplog.records if record.name.startswith("skyward_otel")]
    assert 1 == sum("otel.not_exported" in message for message in said)
    assert 1 == sum("otel.lost" in message for message in said)
    assert [] == [record for record in caplog.records if record.name.startswith(("opentelemetry", "urllib3"))]


def test_a_collector_that_refuses_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    """What it answers with is no failure of the pool."""
    with (
        receiver(status=401) as refusing,
        sky.Compute(console="silent", plugins=[sky.plugins.otel(endpoint=refusing.url)]) as pool,
    ):
        double(1) >> pool
    assert refusing.requests
    assert 1 == sum("otel.not_exported" in message for message in caplog.messages)


def test_core_loads_nothing_of_opentelemetry() -> None:
    """It costs nothing where it is not used: not even an import."""
    import subprocess

    code = "import sys, skyward; skyward.plugins; print([name for name in sys.modules if 'opentelemetry' in name])"
    assert "[]\n" == subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
