"""
Machines of Verda, formerly DataCrunch, as nodes of Skyward.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from skyward.provider import hookimpl
from skyward_verda.provider import Verda

__all__ = ["Verda"]


@hookimpl
def skyward_providers() -> Mapping[str, Callable[..., Any]]:
    """Register Verda as a provider."""
    return {"Verda": Verda}
