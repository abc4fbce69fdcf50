"""
NVIDIA's Multi-Instance GPU on nodes of Skyward.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from skyward.hookspecs import hookimpl


@hookimpl
def skyward_plugins() -> Mapping[str, Callable[..., Any]]:
    """Register `sky.plugins.mig`."""
    from skyward_mig.plugin import Mig

    return {"mig": Mig}
