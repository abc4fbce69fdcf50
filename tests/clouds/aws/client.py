"""A client that asks a provider's hooks as core does, one by one."""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from attrs import evolve

from skyward.errors import SkywardError
from skyward.model.cluster import Cluster
from skyward.model.machine import Instance, LaunchRequest
from skyward.model.spec import Spec

T = TypeVar("T")

_numbers = itertools.count()


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end."""
    return asyncio.run(coroutine)


class Client:
    """
    Hold one use of a provider.

    Args:
        provider: The provider.
        cluster: What is rented.
        infra: What all its machines share.
    """

    def __init__(self, provider: Any, cluster: Cluster, infra: Any) -> None:
        self.provider = provider
        self.cluster = cluster
        self.infra = infra

    async def launch(self, *nodes: int, spot: bool = False, token: str | None = None) -> list[Instance]:
        """Rent machines for nodes."""
        token = token or f"token{os.getpid()}{next(_numbers)}"
        request = LaunchRequest(cluster=self.cluster, nodes=nodes or (0,), token=token, spot=spot)
        return list(await self.provider.skyward_launch(request, self.infra))

    async def listed(self) -> list[Instance]:
        """List the pool's machines."""
        return list(await self.provider.skyward_instances(self.cluster, self.infra))

    async def end(self, *ids: str) -> None:
        """End machines; all there are if none is named."""
        given = ids or tuple(each.id for each in await self.listed())
        await self.provider.skyward_terminate(self.infra, given)

    async def until(self, condition: Callable[[list[Instance]], Any], seconds: float = 30.0) -> list[Instance]:
        """List the pool's machines until something holds of them."""
        async with asyncio.timeout(seconds):
            while True:
                found = await self.listed()
                if condition(found):
                    return found
                await asyncio.sleep(0.05)


@asynccontextmanager
async def client(provider: Any, **wishes: Any) -> AsyncIterator[Client]:
    """Open a use of a provider, and leave nothing of it behind."""
    spec = Spec(provider=provider, **{"machine": "m7i.large", **wishes})
    await provider.skyward_preflight(spec)
    offers = await provider.skyward_offers(spec)
    cluster = Cluster(
        pool_id=f"p{os.getpid()}x{next(_numbers)}",
        pool_name="test",
        spec=spec,
        offer=offers[0],
        provider="aws",
        nodes=1,
    )
    opened = Client(provider, cluster, await provider.skyward_open(cluster))
    try:
        yield opened
    finally:
        await opened.end()
        await provider.skyward_release(opened.infra)


async def refusal(coroutine: Coroutine[Any, Any, Any]) -> SkywardError:
    """Return the error that something ends with."""
    try:
        answer = await coroutine
    except SkywardError as error:
        return error
    raise AssertionError(f"it went well: {answer!r}")


def sold_at(cluster: Cluster, **changes: Any) -> Cluster:
    """Return a cluster whose offer is another."""
    return evolve(cluster, offer=evolve(cluster.offer, **changes))
