"""
Machines of Amazon EC2 as nodes of Skyward.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from skyward.provider import hookimpl
from skyward_aws.provider import AWS

__all__ = ["AWS"]


@hookimpl
def skyward_providers() -> Mapping[str, Callable[..., Any]]:
    """Register EC2 as a provider."""
    return {"AWS": AWS}
