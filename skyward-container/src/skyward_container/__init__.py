"""
Docker and Podman containers of this machine as nodes of Skyward.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from skyward.provider import hookimpl
from skyward_container.provider import Container

__all__ = ["Container"]


@hookimpl
def skyward_providers() -> Mapping[str, Callable[..., Any]]:
    """Register containers as a provider."""
    return {"Container": Container}
