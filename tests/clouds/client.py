"""A client that asks a provider's hooks one by one, as core does."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from skyward.engine.instances.provider_handle import ProviderHandle
from skyward.model.instances.cluster import Cluster
from skyward.model.instances.machine import Instance, LaunchRequest
from skyward.model.instances.offer import Offer
from skyward.model.instances.tags import Tags
from skyward.model.spec.spec import Spec
from skyward.plan.offers.choice import choose

_numbers = itertools.count()


class Client:
    """
    Hold one use of a provider.

    Args:
        provider: The provider.
        cluster: What is rented.
        infra: What all its machines share.
        offers: What is sold of the kind, the cheapest first.
    """

    def __init__(self, provider: Any, cluster: Cluster, infra: Any, offers: Sequence[Offer] = ()) -> None:
        self.provider = provider
        self.cluster = cluster
        self.infra = infra
        self.offers = offers

    def request(self, *nodes: int, spot: bool = False, token: str | None = None) -> LaunchRequest:
        """Ask for machines for nodes."""
        token = _hex(16, token) if token is None or len(token) != 16 else token
        tags = Tags(
            pool_id=self.cluster.pool_id,
            pool_name=self.cluster.pool_name,
            owner="Me@Here.example",
            client="c0ffee",
            token=token,
            expires_at=1.8e9,
        )
        return LaunchRequest(cluster=self.cluster, nodes=nodes or (0,), token=token, spot=spot, tags=tags)

    async def launch(self, *nodes: int, spot: bool = False, token: str | None = None) -> list[Instance]:
        """Rent machines for nodes."""
        return list(await self._ask("skyward_launch", request=self.request(*nodes, spot=spot, token=token)))

    async def listed(self) -> list[Instance]:
        """List the pool's machines."""
        return list(await self._ask("skyward_instances", cluster=self.cluster))

    async def end(self, *ids: str) -> None:
        """End machines; all there are if none is named."""
        given = ids or tuple(each.id for each in await self.listed())
        await self._ask("skyward_terminate", cluster=self.cluster, ids=given)

    async def until(self, condition: Callable[[list[Instance]], Any], seconds: float = 30.0) -> list[Instance]:
        """List the pool's machines until something holds of them."""
        async with asyncio.timeout(seconds):
            while True:
                found = await self.listed()
                if condition(found):
                    return found
                await asyncio.sleep(0.05)

    async def _ask(self, hook: str, **arguments: Any) -> Any:
        return await ProviderHandle(self.provider).call(hook, infra=self.infra, timeout=120, **arguments)


@asynccontextmanager
async def client(provider: Any, **wishes: Any) -> AsyncIterator[Client]:
    """Open a use of a provider for the cheapest machine that meets the wishes, and leave nothing of it behind."""
    handle, spec = ProviderHandle(provider), Spec(provider=provider, **wishes)
    await handle.call("skyward_preflight", spec=spec, timeout=60)
    offers = [made.offer for made in choose(spec, await handle.call("skyward_offers", spec=spec, timeout=60)).on_demand]
    cluster = Cluster(
        pool_id=_hex(8),
        pool_name="My pool, Größe 1/2",
        spec=spec,
        offer=offers[0],
        provider=handle.name,
        nodes=1,
    )
    opened = Client(provider, cluster, await handle.call("skyward_open", cluster=cluster, timeout=60), offers)
    try:
        yield opened
    finally:
        await opened.end()
        await handle.call("skyward_release", cluster=cluster, infra=opened.infra, timeout=60)


def _hex(digits: int, name: str | None = None) -> str:
    """Make an id as core makes them, the same one for the same name."""
    return hashlib.sha256((name or f"{os.getpid()} {next(_numbers)}").encode()).hexdigest()[:digits]
