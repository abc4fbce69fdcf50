"""End what lingered for longer than it should, or was not claimed, and release what its machines shared."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

from attrs import evolve

from skyward.engine.instances.lingering_records import LeftPool, forget, read
from skyward.engine.instances.regions import PROVIDER_TIMEOUT
from skyward.engine.pool.event_loop import in_thread
from skyward.errors import SkywardError
from skyward.model.instances.cluster import Cluster
from skyward.model.instances.key_pair import KeyPair
from skyward.plan.instances.lingering import Lingering, is_over

if TYPE_CHECKING:
    from skyward.engine.instances.provider_handle import ProviderHandle
    from skyward.model.spec.spec import Spec

__all__ = ["release", "release_later", "release_overdue"]

_log = logging.getLogger(__name__)

_under_way: set[asyncio.Task[None]] = set()


def release_later(about: Lingering, left: LeftPool, provider: ProviderHandle, spec: Spec) -> None:
    """Begin to release what a pool has left, beside what else is done."""
    _begin(about, left, provider, spec)


async def release_overdue(known: Iterable[Lingering], provider: ProviderHandle, spec: Spec, source: str) -> None:
    """
    Begin to release what machines shared that have ended by themselves.

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
    Terminate the machines that a pool has left, and release what they shared; harmless where that is done.

    Args:
        about: Which pool.
        left: Its machines.
        provider: The provider.
        spec: A spec of it.

    Raises:
        SkywardError: If something may still be there.
    """
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
        if here:
            await provider.call("skyward_terminate", ids=tuple(one.instance.id for one in here), **facts)
        await provider.call("skyward_release", **facts)
