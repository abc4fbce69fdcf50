"""
Transformers on nodes of Skyward.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from skyward.hookspecs import hookimpl


@hookimpl
def skyward_plugins() -> Mapping[str, Callable[..., Any]]:
    """Register `sky.plugins.transformers` and `@sky.integrations.transformers`."""
    from skyward_transformers.plugin import Transformers

    return {"transformers": Transformers}
