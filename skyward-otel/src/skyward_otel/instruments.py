"""Metrics of a pool: calls by outcome, how long they took, the queue, nodes by state, cost."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from skyward.hookspecs import CallTimes
from skyward_otel.spans import outcome


class Instruments:
    """
    Count and measure the calls of a pool.

    Args:
        pool: The pool.
        resource: Who measures.
        exporter: Exports what was measured.
    """

    def __init__(self, pool: Any, resource: Any, exporter: Any) -> None:
        from opentelemetry.metrics import Observation
        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader

        self._pool = pool
        self._observation = Observation
        self._last: dict[str, Any] = {"queued": 0, "running": 0, "nodes": {}, "cost": 0.0, "rate": 0.0}
        # Without an interval it has no thread of its own.
        self._reader = PeriodicExportingMetricReader(_Heard(exporter, self._answered), export_interval_millis=math.inf)
        self._took = True
        self._provider = MeterProvider(resource=resource, metric_readers=[self._reader], shutdown_on_exit=False)
        meter = self._provider.get_meter("skyward")
        self._calls = meter.create_counter("skyward.calls", "{call}", "Attempts of calls that ended.")
        self._durations = meter.create_histogram("skyward.call.duration", "s", "From submission to the answer.")
        self._runs = meter.create_histogram("skyward.call.run", "s", "How long functions ran on nodes.")
        self._waits = meter.create_histogram("skyward.call.wait", "s", "How long calls waited for a slot.")
        gauge = meter.create_observable_gauge
        gauge("skyward.queue.length", [self._of("queued")], "{call}", "Calls that wait for a slot.")
        gauge("skyward.calls.running", [self._of("running")], "{call}", "Calls that run.")
        gauge("skyward.nodes", [self._nodes], "{node}", "Nodes by their state.")
        gauge("skyward.cost.rate", [self._of("rate")], "USD/h", "What an hour of the machines costs.")
        meter.create_observable_counter("skyward.cost", [self._of("cost")], "USD", "What the pool has cost.")

    def ended(self, call: CallTimes) -> None:
        """Count an attempt that ended."""
        about = {"skyward.pool": self._pool.name, "code.function.name": call.function}
        how = {**about, "skyward.outcome": outcome(call)}
        self._calls.add(1, how)
        if not call.again:
            self._durations.record(max(0.0, call.answered - call.submitted), how)
        if call.began is not None and call.ended is not None:
            self._runs.record(max(0.0, call.ended - call.began), how)
        if call.placed is not None:
            self._waits.record(max(0.0, call.placed - call.queued), about)

    def collect(self) -> bool:
        """Collect and export what was measured, and return whether that was taken."""
        self.look()
        self._took = True
        self._reader.collect()
        return self._took

    def look(self) -> None:
        """Record what the pool is at this moment; one that is closed is as it was last seen, but for its cost."""
        cost = self._pool.cost
        self._last |= {"cost": cost.accumulated, "rate": cost.hourly_rate}
        found = self._pool.snapshot()
        if found["active"]:
            self._last |= {"queued": found["queued"], "running": found["running"], "nodes": dict(found["nodes"])}
        else:
            self._last |= {"queued": 0, "running": 0, "nodes": {}}

    def _answered(self, took: bool) -> None:  # noqa: FBT001  # the exporter's answer
        self._took = took

    def _of(self, name: str) -> Callable[[Any], list[Any]]:
        return lambda _: [self._observation(self._last[name], {"skyward.pool": self._pool.name})]

    def _nodes(self, _: Any) -> Iterator[Any]:
        for state, count in Counter(self._last["nodes"].values()).items():
            yield self._observation(count, {"skyward.pool": self._pool.name, "skyward.node.state": state})


def _Heard(exporter: Any, answered: Callable[[bool], None]) -> Any:  # noqa: N802  # it makes a class of what is loaded late
    from opentelemetry.sdk.metrics.export import MetricExporter

    class Heard(MetricExporter):
        """Export by another exporter, and pass on whether that worked."""

        def __init__(self) -> None:
            super().__init__(exporter._preferred_temporality, exporter._preferred_aggregation)

        def export(self, metrics_data: Any, timeout_millis: float = 10_000, **kwargs: Any) -> Any:
            result = exporter.export(metrics_data, timeout_millis=timeout_millis, **kwargs)
            answered(result.name == "SUCCESS")
            return result

        def force_flush(self, timeout_millis: float = 10_000) -> bool:
            return bool(exporter.force_flush(timeout_millis))

        def shutdown(self, timeout_millis: float = 30_000, **kwargs: Any) -> None:
            exporter.shutdown(timeout_millis=timeout_millis, **kwargs)

    return Heard()
