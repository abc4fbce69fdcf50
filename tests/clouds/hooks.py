"""What the tests of every cloud use to ask a provider's hooks, one by one, as core does."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from attrs import evolve

from skyward.errors import SkywardError
from skyward.model.cluster import Cluster

T = TypeVar("T")


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end."""
    return asyncio.run(coroutine)


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
