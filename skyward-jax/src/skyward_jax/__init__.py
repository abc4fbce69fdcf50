"""
JAX on nodes of Skyward.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from skyward.hookspecs import hookimpl


@hookimpl
def skyward_plugins() -> Mapping[str, Callable[..., Any]]:
    """Register `sky.plugins.jax` and `@sky.integrations.jax`."""
    from skyward_jax.plugin import Jax

    return {"jax": Jax}
