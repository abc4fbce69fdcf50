"""
A provider, a plugin and a command for Skyward, as any user could write them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from skyward.hookspecs import Command, hookimpl


@hookimpl
def skyward_providers() -> Mapping[str, Callable[..., Any]]:
    """Register `sky.SampleCloud`."""
    from skyward_sample.provider import SampleCloud

    return {"SampleCloud": SampleCloud}


@hookimpl
def skyward_plugins() -> Mapping[str, Callable[..., Any]]:
    """Register `sky.plugins.sample`."""
    from skyward_sample.tally import sample

    return {"sample": sample}


@hookimpl
def skyward_commands() -> Mapping[str, Command]:
    """Register `sky rooms`."""
    from skyward_sample.rooms import rooms

    return {"rooms": rooms}
