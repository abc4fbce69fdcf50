"""
The machines of ours that there are, read from the clouds alone, and how they are ended without their pool.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence
from typing import Any

from attrs import frozen

from skyward.engine.pool_file import providers_of_file
from skyward.engine.provider_handle import ProviderHandle
from skyward.engine.regions import PROVIDER_TIMEOUT
from skyward.errors import AllProvidersFailedError, NoCredentialsError, SkywardError
from skyward.market.answer import answer
from skyward.market.handles import given_handles, installed_handles
from skyward.market.source import source_of
from skyward.model.machine import Instance
from skyward.registry import plugin, provider

__all__ = ["Owned", "end", "instances", "look"]

_log = logging.getLogger(__name__)


@frozen(kw_only=True, eq=False)
class Owned:
    """
    Hold what clouds say about machines of ours.

    Args:
        found: The machines, each with the provider that lists it.
        asked: The names of the providers that rent machines.
        failures: Why providers could not be asked, by name: what they have is not known.
    """

    found: tuple[tuple[ProviderHandle, Instance], ...]
    asked: tuple[str, ...]
    failures: dict[str, SkywardError]

    @property
    def instances(self) -> list[Instance]:
        """Return the machines."""
        return [instance for _, instance in self.found]


def instances(providers: Any = None) -> Any:
    """
    List every machine of ours that clouds have now, whichever pool, client or person rented it.

    Nothing that is kept here is looked at. Where an event loop runs, what is returned may be awaited.

    Args:
        providers: A provider or several; without any, those of the nearest `skyward.toml` and all that are installed
            and can be made without arguments.

    Returns:
        The machines, with their `tags`. A provider that cannot be asked is left out with a warning in the log, and one
        that nobody named and for which there are no credentials without any.

    Raises:
        ConfigError: If one of them is no provider.
        AllProvidersFailedError: If none of them can be asked.

    >>> import skyward as sky
    >>> sky.instances(sky.Local())
    []
    """

    async def listed() -> list[Instance]:
        owned = await look(providers)
        if owned.failures and not owned.found:
            reasons = tuple((name, str(error)) for name, error in owned.failures.items())
            lines = "".join(f"\n  {name}: {reason}" for name, reason in reasons)
            raise AllProvidersFailedError(f"No provider says which machines there are:{lines}", reasons=reasons)
        for name, error in owned.failures.items():
            _log.warning("instances.failed provider=%s reason=%s", name, error)
        return owned.instances

    return answer(listed)


async def look(providers: Any = None) -> Owned:
    """
    Ask providers, side by side, for the machines of ours that they have.

    Args:
        providers: As for `instances`.

    Raises:
        ConfigError: If one of them is no provider.
    """
    named, installed, failures = _handles(providers)
    asked = [handle for handle in (*named, *installed) if handle.implements("skyward_owned")]
    answers = await asyncio.gather(*map(_ask, asked))
    found: list[tuple[ProviderHandle, Instance]] = []
    names: dict[str, None] = {}
    for handle, answered in zip(asked, answers, strict=True):
        if isinstance(answered, NoCredentialsError) and handle in installed:
            _log.info("owned.left_out provider=%s reason=%s", handle.name, answered)
            continue
        names[handle.name] = None
        if isinstance(answered, SkywardError):
            failures[handle.name] = answered
        else:
            found += [(handle, instance) for instance in answered]
    return Owned(found=tuple(found), asked=tuple(names), failures=failures)


async def end(found: Iterable[tuple[ProviderHandle, Instance]]) -> dict[str, SkywardError]:
    """
    End machines, and return when the clouds have confirmed it.

    Args:
        found: The machines, each with the provider that lists it.

    Returns:
        Why providers could not end theirs, by name; what they have may go on costing money.
    """
    by_handle: dict[int, tuple[ProviderHandle, list[Instance]]] = {}
    for handle, instance in found:
        by_handle.setdefault(id(handle), (handle, []))[1].append(instance)
    groups = list(by_handle.values())
    answers = await asyncio.gather(*(_end(handle, machines) for handle, machines in groups))
    return {handle.name: error for (handle, _), error in zip(groups, answers, strict=True) if error is not None}


async def _ask(handle: ProviderHandle) -> Sequence[Instance] | SkywardError:
    try:
        answered: Sequence[Instance] = await handle.call("skyward_owned", timeout=PROVIDER_TIMEOUT)
    except SkywardError as error:
        return error
    return answered


async def _end(handle: ProviderHandle, machines: list[Instance]) -> SkywardError | None:
    try:
        await handle.call("skyward_end", instances=machines, timeout=2 * PROVIDER_TIMEOUT)
    except SkywardError as error:
        return error
    return None


def _handles(
    providers: Any,
) -> tuple[list[ProviderHandle], list[ProviderHandle], dict[str, SkywardError]]:
    """Return the providers that somebody names, those that are just installed, and why some of them can't be made."""
    if providers is not None:
        return given_handles(providers), [], {}
    installed, failures = installed_handles()
    named: list[ProviderHandle] = []
    try:
        named += map(ProviderHandle, providers_of_file(provider_of=provider, plugin_of=plugin))
    except SkywardError as error:
        failures["skyward.toml"] = error
    once = {source_of(handle): handle for handle in named}
    return list(once.values()), [handle for handle in installed if source_of(handle) not in once], failures
