"""A pool's machines region by region: what they share, which there are, how they end."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from skyward.engine.provider_handle import ProviderHandle
from skyward.model import event as events
from skyward.model.cluster import Cluster
from skyward.model.machine import Instance

if TYPE_CHECKING:
    from skyward.engine.reporting import Reporting
    from skyward.model.options import Options

PROVIDER_TIMEOUT = 120.0
"""Seconds that a provider's hook may take where no option says otherwise."""

RETRIES = 4
"""How often a provider that fails to end machines is asked again."""


class Regions:
    """
    Keep what the machines of one pool share.

    Args:
        provider: Where they come from.
        options: How long things may take.
        reporting: Where events go.
    """

    def __init__(self, provider: ProviderHandle, options: Options, reporting: Reporting) -> None:
        self._provider = provider
        self._options = options
        self._reporting = reporting
        self._making: dict[str | None, asyncio.Task[Any]] = {}
        self._open: dict[str | None, tuple[Cluster, Any]] = {}

    @property
    def used(self) -> bool:
        """Tell whether anything was set up."""
        return bool(self._open)

    async def shared(self, cluster: Cluster) -> Any:
        """
        Give what the machines of a region share, made with the first of them.

        Args:
            cluster: The pool, with an offer of that region.

        Raises:
            SkywardError: If it cannot be made.
        """
        region = cluster.offer.region
        if region not in self._making:
            self._making[region] = asyncio.ensure_future(self._set_up(cluster))
        try:
            return await asyncio.shield(self._making[region])
        except Exception:
            self._making.pop(region, None)
            raise

    async def listed(self) -> list[Instance]:
        """
        List the pool's machines in all regions.

        Raises:
            SkywardError: If the provider does not answer.
        """
        answers = await self._each("skyward_instances", timeout=PROVIDER_TIMEOUT)
        # A provider that lists all regions at once lists a machine for each.
        return list({instance.id: instance for answer in answers for instance in answer or ()}.values())

    async def renew(self, ids: Iterable[str], expires_at: float) -> None:
        """
        Write a later expiry on machines.

        Raises:
            SkywardError: If the provider does not answer.
        """
        await self._each("skyward_renew", ids=tuple(ids), expires_at=expires_at, timeout=PROVIDER_TIMEOUT)

    async def end(self, cluster: Cluster, infra: Any, ids: Sequence[str]) -> None:
        """
        End machines of one region; a provider that fails is asked again.

        Raises:
            SkywardError: If one may still exist.
        """
        deadline = time.monotonic() + self._options.shutdown_timeout
        for attempt in range(RETRIES + 1):
            left = max(1.0, deadline - time.monotonic())
            try:
                await self._provider.call("skyward_terminate", cluster=cluster, infra=infra, ids=ids, timeout=left)
            except Exception:
                pause = 0.5 * 2**attempt * random.uniform(0.8, 1.2)
                if attempt == RETRIES or time.monotonic() + pause > deadline:
                    raise
                await asyncio.sleep(pause)
            else:
                return

    async def end_anywhere(self, ids: Sequence[str]) -> None:
        """
        End machines, in whichever region they are.

        Raises:
            SkywardError: If one may still exist.
        """
        for cluster, infra in list(self._open.values()):
            await self.end(cluster, infra, ids)

    async def release(self) -> None:
        """
        Take away what was set up.

        Raises:
            SkywardError: If something may still be there.
        """
        await self._each("skyward_release", timeout=self._options.shutdown_timeout)
        self._open.clear()

    async def _set_up(self, cluster: Cluster) -> Any:
        name, region = self._provider.name, cluster.offer.region
        self._reporting.publish(events.InfraCreating(provider=name, region=region))
        infra = await self._provider.call("skyward_open", cluster=cluster, timeout=PROVIDER_TIMEOUT)
        self._open[region] = (cluster, infra)
        self._reporting.publish(events.InfraCreated(provider=name, region=region))
        return infra

    async def _each(self, hook: str, *, timeout: float, **arguments: Any) -> list[Any]:
        """Call a hook for every region, side by side."""
        calls = [
            self._provider.call(hook, cluster=cluster, infra=infra, timeout=timeout, **arguments)
            for cluster, infra in list(self._open.values())
        ]
        return await asyncio.gather(*calls)
