"""
An experiment tracker: tasks log numbers, and files on the client have them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from skyward.hookspecs import hookimpl
from tracker.record import log as log


@hookimpl
def skyward_plugins() -> Mapping[str, Callable[..., Any]]:
    """Register `sky.plugins.tracker`."""
    from tracker.plugin import tracker

    return {"tracker": tracker}
