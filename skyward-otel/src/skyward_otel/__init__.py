"""
OpenTelemetry for pools of Skyward.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from skyward.hookspecs import hookimpl


@hookimpl
def skyward_plugins() -> Mapping[str, Callable[..., Any]]:
    """Register `sky.plugins.otel`."""
    from skyward_otel.plugin import Otel

    return {"otel": Otel}
