"""
Keras 3 on nodes of Skyward.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from skyward.hookspecs import hookimpl


@hookimpl
def skyward_plugins() -> Mapping[str, Callable[..., Any]]:
    """Register `sky.plugins.keras` and `@sky.integrations.keras`."""
    from skyward_keras.plugin import Keras

    return {"keras": Keras}
