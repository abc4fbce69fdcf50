"""
What goes to the collector, by OpenTelemetry's own exporters, in a thread of its own.

The pool's loop only leaves a note. What cannot be exported is counted and said once: neither the pool nor the program
waits for a collector, but for a moment when the pool is left.
"""

from __future__ import annotations

import logging
import math
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from attrs import field, frozen

T = TypeVar("T")

_log = logging.getLogger(__name__)

LEAVING = 5.0
"""Seconds for which the end of a pool waits for what is still to be exported."""

MOST = 65_536
"""Notes that wait to be exported, if `OTEL_BSP_MAX_QUEUE_SIZE` says nothing else; more are counted and dropped."""

_NOISY = ("opentelemetry", "urllib3")
"""Loggers of exporters, which tell of each failed try; what they tell of this thread's is left out."""


@frozen(kw_only=True)
class Destination:
    """
    Say where to export to; what is left out is taken from the variables of OpenTelemetry.

    Args:
        endpoint: The collector's address, without the path of a signal.
        headers: What each request bears, such as a key.
        timeout: Seconds that one export may take.
        traces: Whether traces are exported.
        metrics: Whether metrics are.
        logs: Whether logs are.
    """

    endpoint: str | None = None
    headers: Mapping[str, str] | None = field(default=None, repr=False)
    timeout: float | None = None
    traces: bool = True
    metrics: bool = True
    logs: bool = True

    def url(self, signal: str) -> str | None:
        """
        Return the address for a signal; None leaves it to the variables.

        Args:
            signal: `"traces"`, `"metrics"` or `"logs"`.

        >>> Destination(endpoint="http://localhost:4318/").url("traces")
        'http://localhost:4318/v1/traces'
        """
        return None if self.endpoint is None else f"{self.endpoint.rstrip('/')}/v1/{signal}"

    def wants(self, signal: str) -> bool:
        """Return whether a signal is exported: said here, and not switched off by the variables."""
        if os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
            return False
        chosen = os.environ.get(f"OTEL_{signal.upper()}_EXPORTER", "otlp")
        return bool(getattr(self, signal)) and chosen.strip().lower() != "none"

    def exporter(self, signal: str, kind: Callable[..., T]) -> T:
        """Return OpenTelemetry's exporter of a signal."""
        given: dict[str, Any] = {"endpoint": self.url(signal), "timeout": self.timeout}
        if self.headers is not None:
            given["headers"] = dict(self.headers)
        return kind(**{name: value for name, value in given.items() if value is not None})


class Outbox:
    """
    Export notes in batches, from a thread of its own.

    Args:
        name: The pool's name.
        made: Makes spans and records of log of a note.
        spans: Exports spans; None if none are.
        records: Exports records of log; None if none are.
        collect: Collects metrics and exports them; None if none are.
        where: The collector, for messages.
    """

    def __init__(
        self,
        name: str,
        made: Callable[[Any], tuple[list[Any], list[Any]]],
        *,
        spans: Any,
        records: Any,
        collect: Callable[[], bool] | None,
        where: str,
    ) -> None:
        self._name = name
        self._made = made
        self._spans = spans
        self._records = records
        self._collect = collect
        self._where = where
        self._most = _number("OTEL_BSP_MAX_QUEUE_SIZE", MOST)
        self._delay = _number("OTEL_BSP_SCHEDULE_DELAY", 5000) / 1000
        self._batch = max(1, _number("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", 512))
        self._every = _number("OTEL_METRIC_EXPORT_INTERVAL", 60_000) / 1000
        self._waiting: deque[Any] = deque()
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        self._closing = False
        self._said = False
        self.lost = 0

    def put(self, note: object) -> None:
        """Leave a note, from any thread; it waits for nothing."""
        if len(self._waiting) >= self._most:
            self.lost += 1
            return
        self._waiting.append(note)
        if self._thread is None:
            self._start()
        if len(self._waiting) >= self._batch and not self._wake.is_set():
            self._wake.set()

    def close(self) -> None:
        """Send what waits, within a moment; what does not get through is counted."""
        if self._collect is not None and self._thread is None:
            self._start()
        self._closing = True
        self._wake.set()
        if self._thread is not None:
            self._thread.join(LEAVING)
            if self._thread.is_alive():
                # Ends the pauses between tries.
                for exporter in (self._spans, self._records):
                    if exporter is not None:
                        exporter.shutdown()
                self._thread.join(1.0)
                self.lost += len(self._waiting)
        if self.lost:
            _log.warning("otel.lost pool=%s items=%d collector=%s", self._name, self.lost, self._where)

    def _start(self) -> None:
        with self._starting:
            if self._thread is None and not self._closing:
                self._thread = threading.Thread(target=self._run, name=f"skyward-otel-{self._name}", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        quiet = _Quiet(threading.get_ident())
        loggers = [logging.getLogger(name) for name in _exporters()]
        for logger in loggers:
            logger.addFilter(quiet)
        token = _suppressed()
        try:
            due = time.monotonic() + self._every
            while True:
                self._wake.wait(min(self._delay, max(0.0, due - time.monotonic())))
                self._wake.clear()
                closing = self._closing
                self._drain()
                if self._collect is not None and (closing or time.monotonic() >= due):
                    due = time.monotonic() + self._every
                    self._try(self._collect, 1)
                if closing and not self._waiting:
                    return
        finally:
            token()
            for logger in loggers:
                logger.removeFilter(quiet)

    def _drain(self) -> None:
        spans: list[Any] = []
        records: list[Any] = []
        while self._waiting:
            note = self._waiting.popleft()
            try:
                more_spans, more_records = self._made(note)
            except Exception:
                _log.exception("otel.note_failed pool=%s", self._name)
                continue
            spans += more_spans
            records += more_records
            if len(spans) >= self._batch:
                self._export(self._spans, spans)
                spans = []
            if len(records) >= self._batch:
                self._export(self._records, records)
                records = []
        self._export(self._spans, spans)
        self._export(self._records, records)

    def _export(self, exporter: Any, batch: Sequence[Any]) -> None:
        if exporter is not None and batch:
            self._try(lambda: exporter.export(tuple(batch)).name == "SUCCESS", len(batch))

    def _try(self, export: Callable[[], bool], count: int) -> None:
        try:
            done = export()
        except Exception:
            # The exporters answer with a failure; what they raise all the same is one.
            done = False
        if done:
            return
        self.lost += count
        if not self._said:
            self._said = True
            _log.warning(
                "otel.not_exported pool=%s collector=%s: it takes nothing; what is lost is counted, and this said once",
                self._name,
                self._where,
            )


class _Quiet(logging.Filter):
    """Leave out what a thread logs."""

    def __init__(self, thread: int) -> None:
        super().__init__()
        self._of = thread

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a record is of another thread."""
        return record.thread != self._of


def _exporters() -> Iterable[str]:
    return [name for name in logging.root.manager.loggerDict if name.startswith(_NOISY)]


def _suppressed() -> Callable[[], None]:
    """Skip spans of this thread's own requests; return what ends that."""
    from opentelemetry import context

    key = getattr(context, "_SUPPRESS_INSTRUMENTATION_KEY", "suppress_instrumentation")
    token = context.attach(context.set_value(key, True))
    return lambda: context.detach(token)


def _number(variable: str, otherwise: int) -> int:
    """Return a number of the environment; what is none, or not above zero, counts as not there."""
    try:
        value = float(os.environ.get(variable, "") or otherwise)
    except ValueError:
        return otherwise
    return int(value) if math.isfinite(value) and value > 0 else otherwise
