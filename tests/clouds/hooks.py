"""What the tests of every cloud use to ask a provider's hooks, one by one, as core does."""

from __future__ import annotations

import asyncio
from asyncio import futures
from collections.abc import Coroutine
from typing import Any, TypeVar

from attrs import evolve

from skyward.errors import SkywardError
from skyward.model.instances.cluster import Cluster

T = TypeVar("T")

HURRY = 50
"""How much shorter a sleep is in the tests of hooks."""


class _Hurried(asyncio.SelectorEventLoop):
    """Cut what is slept; the clock is right, and limits of time are as long as ever."""

    def call_later(self, delay: float, callback: Any, *args: Any, context: Any = None) -> asyncio.TimerHandle:
        """Call back; `asyncio.sleep`, which wakes up with this function, after a part of the time."""
        asleep = callback is futures._set_result_unless_cancelled  # type: ignore[attr-defined]
        return super().call_later(delay / HURRY if asleep else delay, callback, *args, context=context)


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end; who backs off in it, or keeps a distance, sleeps a fiftieth of the time."""
    with asyncio.Runner(loop_factory=_Hurried) as runner:
        return runner.run(coroutine)


def in_real_time(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end, and have it sleep as long as it does outside of tests."""
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
