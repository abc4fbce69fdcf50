"""
Droplets of DigitalOcean as nodes of Skyward.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from skyward.provider import hookimpl
from skyward_digitalocean.provider import DigitalOcean

__all__ = ["DigitalOcean"]


@hookimpl
def skyward_providers() -> Mapping[str, Callable[..., Any]]:
    """Register DigitalOcean as a provider."""
    return {"DigitalOcean": DigitalOcean}
