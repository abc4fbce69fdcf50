"""
What `sky.plugins` is: the installed plugins by name, and `Plugin` for those of one's own.

    with sky.Compute(plugins=[sky.plugins.torch(backend="nccl")]) as pool: ...

    from skyward.plugins import Plugin
"""

from __future__ import annotations

from typing import Any

from skyward.errors import ConfigError
from skyward.plugin import Plugin

__all__ = ["Plugin"]


def __getattr__(name: str) -> Any:
    """Return what makes the plugin of a name; an AttributeError says what to type, or what was meant."""
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
    from skyward.registry import plugin

    try:
        return plugin(name)
    except ConfigError as error:
        if isinstance(error, AttributeError):
            raise
        raise AttributeError(str(error), name=name) from None


def __dir__() -> list[str]:
    """List the installed plugins."""
    from skyward.registry import plugin_factories

    return sorted({*__all__, *plugin_factories()})
