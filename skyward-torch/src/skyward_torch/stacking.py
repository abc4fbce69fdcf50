"""
What a plugin that builds on another one finds beneath it.
"""

from __future__ import annotations

from typing import TypeVar

from skyward import ConfigError
from skyward.hookspecs import Cluster
from skyward.plugin import name_of

__all__ = ["beneath"]

T = TypeVar("T")


def beneath(above: object, kind: type[T], cluster: Cluster) -> T | None:
    """
    Return the pool's plugin that another one builds on; None if it has none, so that the other brings it.

    Args:
        above: The plugin that builds on it.
        kind: Class of the one beneath.
        cluster: The pool.

    Raises:
        ConfigError: If it stands after the one that builds on it, which would be around it then.
    """
    plugins = cluster.spec.plugins
    for place, plugin in enumerate(plugins):
        if isinstance(plugin, kind):
            if above in plugins[:place]:
                lower, upper = name_of(plugin), name_of(above)
                raise ConfigError(
                    f"plugins has {lower!r} after {upper!r}, which builds on it.",
                    hint=f"Write plugins=[sky.plugins.{lower}(...), sky.plugins.{upper}(...)].",
                )
            return plugin
    return None
