"""
NVIDIA's Multi-Process Service on nodes of Skyward.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from skyward.hookspecs import hookimpl


@hookimpl
def skyward_plugins() -> Mapping[str, Callable[..., Any]]:
    """Register `sky.plugins.mps`."""
    from skyward_mps.plugin import mps

    return {"mps": mps}
