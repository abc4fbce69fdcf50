"""
Pods of RunPod as nodes of Skyward.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from skyward.provider import hookimpl
from skyward_runpod.provider import RunPod

__all__ = ["RunPod"]


@hookimpl
def skyward_providers() -> Mapping[str, Callable[..., Any]]:
    """Register RunPod as a provider."""
    return {"RunPod": RunPod}
