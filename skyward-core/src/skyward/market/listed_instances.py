"""
The machines of ours that there are, read from the clouds alone, and how they are ended without their pool.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Iterable
from typing import Any

from skyward.engine.instances.provider_handle import ProviderHandle
from skyward.engine.instances.regions import PROVIDER_TIMEOUT
from skyward.errors import SkywardError
from skyward.market.asking import Answers, ask_all, tell_each
from skyward.market.query_answer import answer
from skyward.model.instances.cluster import Cluster
from skyward.model.instances.machine import Instance
from skyward.model.instances.offer import Offer
from skyward.model.spec.spec import Spec

__all__ = ["call_off", "end", "instances", "look"]

_log = logging.getLogger(__name__)


def instances(providers: Any = None) -> Any:
    """
    List every machine of ours that clouds have now, whichever pool, client or person rented it.

    Nothing that is kept here is looked at. Where an event loop runs, what is returned may be awaited.

    Args:
        providers: A provider or several; without any, those of the nearest `skyward.toml` and all that are installed
            and can be made without arguments.

    Returns:
        The machines, with their `tags`. A provider that cannot be asked is left out with a warning in the log, and one
        that was not named and for which there are no credentials without any.

    Raises:
        ConfigError: If one of them is no provider.
        AllProvidersFailedError: If none of them can be asked.

    >>> import skyward as sky
    >>> sky.instances(sky.Local())
    []
    """

    async def listed() -> list[Instance]:
        return (await look(providers)).with_warnings("instances")

    return answer(listed)


async def look(providers: Any = None, *, only: Collection[str] = ()) -> Answers[Instance]:
    """
    Ask providers, side by side, for the machines of ours that they have.

    Args:
        providers: As for `instances`.
        only: The names of those that are asked; none for all of them.

    Raises:
        ConfigError: If one of them is no provider.
    """
    answers = await ask_all("skyward_owned", providers, only=only)
    for handle in {id(handle): handle for handle, _ in answers.found}.values():
        if wrong := await handle.measure_clock():
            _log.warning("%s", wrong)
    return answers


async def call_off(found: Iterable[tuple[ProviderHandle, Instance]]) -> set[str]:
    """
    Notify the programs of pools, which may run on other computers, that these are being ended.

    Args:
        found: Machines, each with the provider that lists it.

    Returns:
        The ids of those whose clouds have tags that say it.
    """
    groups: dict[tuple[int, str, str | None], tuple[ProviderHandle, list[Instance]]] = {}
    for handle, instance in found:
        if instance.tags is not None and handle.implements("skyward_renew"):
            key = (id(handle), instance.tags.pool_id, instance.region)
            groups.setdefault(key, (handle, []))[1].append(instance)
    answers = await asyncio.gather(*(_called_off(handle, instances) for handle, instances in groups.values()))
    return {name for names in answers for name in names}


async def _called_off(handle: ProviderHandle, instances: list[Instance]) -> list[str]:
    first, ids = instances[0], [instance.id for instance in instances]
    assert first.tags is not None
    offer = Offer(provider=handle.name, instance_type=first.instance_type or "", region=first.region)
    cluster = Cluster(
        pool_id=first.tags.pool_id,
        pool_name=first.tags.pool_name,
        spec=Spec(provider=handle.provider),
        offer=offer,
        provider=handle.name,
        nodes=len(ids),
    )
    try:
        await handle.call(
            "skyward_renew", cluster=cluster, infra=None, ids=ids, expires_at=0.0, timeout=PROVIDER_TIMEOUT
        )
    except SkywardError as error:
        _log.info("call_off.failed provider=%s: %s", handle.name, error)
        return []
    return ids


async def end(found: Iterable[tuple[ProviderHandle, Instance]]) -> dict[str, SkywardError]:
    """
    End machines, and return when the clouds have confirmed it.

    Args:
        found: The machines, each with the provider that lists it.

    Returns:
        Why providers could not end theirs, by name; what they have may go on costing money.
    """
    return await tell_each("skyward_end", "instances", found)
