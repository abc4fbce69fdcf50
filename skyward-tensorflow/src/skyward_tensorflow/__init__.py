"""
TensorFlow on nodes of Skyward.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from skyward.hookspecs import hookimpl


@hookimpl
def skyward_plugins() -> Mapping[str, Callable[..., Any]]:
    """Register `sky.plugins.tensorflow` and `@sky.integrations.tensorflow`."""
    from skyward_tensorflow.plugin import TensorFlow

    return {"tensorflow": TensorFlow}
