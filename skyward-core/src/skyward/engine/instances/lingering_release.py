"""Release what machines shared that lingered and have ended by themselves, and end those that have not."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

from attrs import evolve

from skyward.blocking import in_thread
from skyward.engine.instances.lingering_records import LeftPool, forget, read
from skyward.engine.instances.regions import PROVIDER_TIMEOUT
from skyward.errors import SkywardError
from skyward.model.instances.cluster import Cluster
from skyward.model.instances.key_pair import KeyPair
from skyward.model.instances.machine import InstanceState
from skyward.plan.instances.lingering import Lingering, is_over
from skyward.plan.instances.owned_instances import of_another

if TYPE_CHECKING:
    from skyward.engine.instances.provider_handle import ProviderHandle
    from skyward.model.spec.spec import Spec

__all__ = ["release", "release_overdue"]

_log = logging.getLogger(__name__)

_under_way: set[asyncio.Task[None]] = set()


async def release_overdue(known: Iterable[Lingering], provider: ProviderHandle, spec: Spec, source: str) -> None:
    """
    Begin to release what machines shared that have ended by themselves, beside what else is done.

    Args:
        known: What lingers, or lingered.
        provider: The provider; only what it has rented is looked at.
        spec: A spec of it.
        source: Digest of what the provider says of itself.
    """
    for about in known:
        if about.source == source and is_over(about, now=time.time()):
            if (left := await in_thread(read, about)) is None:
                # Nothing says any more what it was.
                await in_thread(forget, (about.pool_id,))
            else:
                _begin(about, left, provider, spec)


def _begin(about: Lingering, left: LeftPool, provider: ProviderHandle, spec: Spec) -> None:
    task = asyncio.ensure_future(_released(about, left, provider, spec))
    _under_way.add(task)
    task.add_done_callback(_under_way.discard)


async def _released(about: Lingering, left: LeftPool, provider: ProviderHandle, spec: Spec) -> None:
    try:
        await release(about, left, provider, spec)
    except SkywardError as error:
        _log.warning("lingering.not_released pool=%s provider=%s: %s", about.pool_id, about.provider, error)
    else:
        await in_thread(forget, (about.pool_id,))


async def release(about: Lingering, left: LeftPool, provider: ProviderHandle, spec: Spec) -> None:
    """
    Release what the machines that a pool has left shared, and end those whose time is over; harmless where it is done.

    Another client may go on with them, from a copy of what was written down: what has not expired is left alone.

    Args:
        about: Which pool.
        left: Its machines.
        provider: The provider.
        spec: A spec of it.

    Raises:
        SkywardError: If something may still be there.
    """
    now = provider.now()
    for region, infra in left.shared:
        here = [one for one in left.machines if one.candidate.offer.region == region]
        offer = (here or left.machines)[0].candidate.offer
        cluster = Cluster(
            pool_id=about.pool_id,
            pool_name=about.pool_name,
            spec=spec,
            offer=evolve(offer, region=region),
            provider=provider.name,
            nodes=len(left.machines),
            key=KeyPair.of(left.private_key),
        )
        facts = {"cluster": cluster, "infra": infra, "timeout": PROVIDER_TIMEOUT}
        listed = await provider.call("skyward_instances", **facts)
        there = [one for one in listed or () if one.state is not InstanceState.ENDED]
        own = [one for one in there if not of_another(one, about.pool_id)]
        if any(one.tags is None or one.tags.expires_at is None or one.tags.expires_at > now for one in own):
            _log.warning("lingering.in_use pool=%s: what it shares is not released", about.pool_id)
            return
        if own:
            await provider.call("skyward_terminate", ids=tuple(one.id for one in own), **facts)
        await provider.call("skyward_release", **facts)
