"""What OpenTelemetry's variables say, nothing in these tests, and a tracer for the program's own spans."""

from __future__ import annotations

import os

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import Tracer


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("OTEL_")]:
        monkeypatch.delenv(name)


@pytest.fixture
def tracer() -> Tracer:
    """Return a tracer of the program, whose spans go nowhere."""
    return TracerProvider(shutdown_on_exit=False).get_tracer("program")
