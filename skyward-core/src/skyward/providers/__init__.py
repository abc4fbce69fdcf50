"""
The providers that core brings itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from skyward.hookspecs import hookimpl


@hookimpl
def skyward_providers() -> Mapping[str, Callable[..., Any]]:
    """Register this machine, and those that one has elsewhere."""
    from skyward.providers.local import Local
    from skyward.providers.ssh import SSH

    return {"Local": Local, "SSH": SSH}
