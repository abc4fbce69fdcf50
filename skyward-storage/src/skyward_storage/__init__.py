"""
Object stores that speak S3: `sky.Storage`, and `sky.storage` with one preset for each of several providers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from skyward.hookspecs import hookimpl
from skyward_storage import presets
from skyward_storage.keys import Keys
from skyward_storage.storage import Storage

__all__ = ["Keys", "Storage", "presets"]


@hookimpl
def skyward_names() -> Mapping[str, Any]:
    """Register the class, and the module of presets."""
    return {"Storage": Storage, "storage": presets}
