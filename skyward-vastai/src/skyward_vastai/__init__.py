"""
Machines of Vast.ai as nodes of Skyward.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from skyward.provider import hookimpl
from skyward_vastai.provider import VastAI

__all__ = ["VastAI"]


@hookimpl
def skyward_providers() -> Mapping[str, Callable[..., Any]]:
    """Register Vast.ai as a provider."""
    return {"VastAI": VastAI}
