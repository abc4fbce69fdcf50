"""
NVIDIA's cuML on nodes of Skyward.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from skyward.hookspecs import hookimpl


@hookimpl
def skyward_plugins() -> Mapping[str, Callable[..., Any]]:
    """Register `sky.plugins.cuml`."""
    from skyward_cuml.plugin import Cuml

    return {"cuml": Cuml}
