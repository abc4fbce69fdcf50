"""
The plugin: what it refuses, and what it does on the client and on nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from attrs import field, frozen

from skyward import ConfigError, Image, InstanceInfo
from skyward.hookspecs import Cluster, Follower, hookimpl
from skyward.packages import importing, with_packages
from skyward.plugin import during

__all__ = ["Otel"]


def _endpoint(value: object) -> str | None:
    """Return the address of a collector, checked."""
    if value is None:
        return None
    if not isinstance(value, str) or urlsplit(value).scheme not in ("http", "https") or not urlsplit(value).netloc:
        raise ConfigError(
            f"endpoint must be the address of a collector, such as 'http://localhost:4318', not {value!r}."
        )
    for signal in ("traces", "metrics", "logs"):
        if value.rstrip("/").endswith(f"/v1/{signal}"):
            raise ConfigError(
                f"endpoint={value!r} is that of {signal} alone.", hint="Leave out /v1/..., which each signal adds."
            )
    return value


def _headers(value: object) -> Mapping[str, str] | None:
    """Return headers, checked."""
    if value is None:
        return None
    if not isinstance(value, Mapping) or not all(isinstance(text, str) for pair in value.items() for text in pair):
        # No value in the message: a header is a key, mostly.
        raise ConfigError("headers must be a dict of texts, such as {'authorization': 'Bearer ...'}.")
    return dict(value)


def _seconds(value: object) -> float | None:
    """Return a number of seconds, checked."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 3600:
        raise ConfigError(f"timeout must be seconds, above 0 and below 3600, not {value!r}.")
    return float(value)


@frozen(kw_only=True)
class Otel:
    """
    Export calls as traces, and metrics and logs of the pool, to a collector of OpenTelemetry by OTLP over HTTP.

    What is left out is taken from OpenTelemetry's variables, such as `OTEL_EXPORTER_OTLP_ENDPOINT`.

    Args:
        endpoint: The collector's address, such as `"http://localhost:4318"`.
        headers: What each request bears, such as a key. It stays on this machine.
        service: The service's name; `skyward` where the variables name none.
        timeout: Seconds that one export may take.
        traces: Whether calls are traced.
        metrics: Whether metrics are exported.
        logs: Whether the pool's events and what functions print are.
        phases: Whether each phase of a call has a span; without, there are two for a call: itself, and its run.

    Raises:
        ConfigError: If a value is none of what its field takes.

    >>> Otel(endpoint="http://localhost:4318", headers={"key": "secret"}).endpoint
    'http://localhost:4318'
    """

    endpoint: str | None = field(default=None, converter=_endpoint)
    headers: Mapping[str, str] | None = field(default=None, converter=_headers, repr=False, hash=False)
    service: str | None = None
    timeout: float | None = field(default=None, converter=_seconds)
    traces: bool = True
    metrics: bool = True
    logs: bool = True
    phases: bool = True
    name = "otel"

    @hookimpl
    def skyward_transform(self, image: Image, cluster: Cluster) -> Image:
        """Add the SDK, by which functions open spans, unless nodes on this machine have it as it is."""
        return with_packages(image, ["opentelemetry-sdk"], cluster) if self.traces else image

    @hookimpl
    def skyward_follow(self, pool: Any) -> Follower:
        """Follow the pool's calls and events."""
        from skyward_otel.exporting import Destination
        from skyward_otel.following import OtelFollower

        to = Destination(
            endpoint=self.endpoint,
            headers=self.headers,
            timeout=self.timeout,
            traces=self.traces,
            metrics=self.metrics,
            logs=self.logs,
        )
        return OtelFollower(pool, to, self.service, phases=self.phases)

    @hookimpl
    @contextmanager
    def skyward_around_process(self, info: InstanceInfo) -> Iterator[None]:
        """Gather the spans of functions."""
        if self.traces:
            with importing(self.name, info, "install opentelemetry-sdk there"):
                from skyward_otel.node_spans import provide
            provide()
        yield

    @hookimpl
    def skyward_decorate(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        """Run the function in the trace of its call."""
        if not self.traces:
            return fn
        from skyward_otel.node_spans import joined

        return during(joined)(fn)

    def __reduce__(self) -> tuple[Any, ...]:
        """Leave the address and its key at home: nodes send nothing to the collector."""
        return _on_node, (self.traces,)


def _on_node(traces: bool) -> Otel:  # noqa: FBT001  # as it was pickled
    """Return the plugin as nodes have it."""
    return Otel(traces=traces)
