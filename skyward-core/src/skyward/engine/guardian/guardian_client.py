"""The client's side of its guardian: start it before anything is rented, report what there is, stop it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from skyward.blocking import in_thread
from skyward.engine.events.reporting import Reporting
from skyward.engine.guardian.guardian_link import GuardianLink
from skyward.engine.guardian.guardian_messages import charge, packed
from skyward.engine.instances.provider_handle import ProviderHandle
from skyward.errors import PluginError, ProvisionError
from skyward.model.instances.cluster import Cluster
from skyward.plan.instances.guardian_duty import (
    Dismissed,
    Duty,
    InstanceEnded,
    InstanceRented,
    Message,
    Opening,
    RegionOpened,
    TakeOver,
    pause,
    promise,
    take,
)
from skyward.plan.instances.instance_list import APPEARING

_log = logging.getLogger(__name__)

STARTS = 5
"""Guardians that may die in a row, each soon after its start, until no more machines are rented."""

SOON = 60.0
"""Seconds of life after which a guardian's death counts as the first one."""

HOME = 5.0
"""Seconds that a guardian has to exit when it is stopped."""


class GuardianClient:
    """
    Keep a guardian for one pool; lives in the engine's loop.

    Args:
        provider: Where the machines come from.
        cluster: The pool, whatever its offer.
        reporting: Where events go.
        lease: Seconds that nodes go on with their calls after this process's death; 0 for no longer than `ttl`.
        start: Starts a guardian, with the pool's id and what it has to know.
    """

    def __init__(
        self,
        provider: ProviderHandle,
        cluster: Cluster,
        reporting: Reporting,
        *,
        lease: float = 0.0,
        start: Callable[[str, bytes], Awaitable[GuardianLink]] = GuardianLink.start,
    ) -> None:
        self._start = start
        self._provider = provider
        self._reporting = reporting
        ttl = cluster.spec.ttl or 0.0
        self._duty = Duty(pool_id=cluster.pool_id, pool_name=cluster.pool_name, ttl=ttl, lease=lease, lag=APPEARING)
        self._link: GuardianLink | None = None
        self._failure = ""
        self._refused: PluginError | None = None
        self._promised = False
        self._changed = asyncio.Event()
        self._parting = asyncio.Event()
        self._task = asyncio.ensure_future(self._keep())

    async def opening(self, cluster: Cluster) -> None:
        """
        Guard a region that is to be released if we die; to be called before anything is set up there.

        Args:
            cluster: The pool, with an offer of that region.

        Raises:
            PluginError: If the provider cannot be handed to a guardian.
            ProvisionError: If there is no guardian, and none can be had.
        """
        await self._ready()
        if not self._duty.prepared(cluster):
            message = Opening(cluster)
            await self._taken(message, await in_thread(packed, message))

    async def opened(self, cluster: Cluster, infra: Any) -> None:
        """
        Guard a region; to be called before each request for machines there.

        Args:
            cluster: The pool, with an offer of that region.
            infra: What the pool's machines share there.

        Raises:
            PluginError: If provider or `infra` cannot be handed to a guardian.
            ProvisionError: If there is no guardian, and none can be had.
        """
        link = await self._ready()
        if not self._duty.knows(cluster):
            message = RegionOpened(cluster, infra)
            try:
                data = await in_thread(packed, message)
            except Exception as error:
                raise self._refusal(f"what skyward_open returned cannot be pickled: {error}") from error
            link = await self._taken(message, data)
        if not self._promised:
            self._promised = True
            expire = self._provider.implements("skyward_renew")
            _log.warning("%s", promise(self._machines, link.pid, self._duty, self._provider.facts, expire=expire))

    def rented(self, ids: Iterable[str]) -> None:
        """Report machines that exist."""
        self._send(InstanceRented(tuple(ids)))

    def ended(self, ids: Iterable[str]) -> None:
        """Report machines that are terminated."""
        self._send(InstanceEnded(tuple(ids)))

    async def dismiss(self) -> None:
        """Stop the guardian, because all was terminated, and wait until it has exited."""
        await self._part(Dismissed())

    async def hand_over(self) -> int | None:
        """
        Leave what the pool could not terminate to the guardian, also when this process has ended.

        Returns:
            The guardian's process; None if there is no guardian any more.
        """
        link = self._link
        await self._part(TakeOver())
        return link.pid if link is not None else None

    async def _taken(self, message: Message, data: bytes) -> GuardianLink:
        """Send a guardian something, wait for its confirmation, and return the link to it."""
        link = await self._ready()
        self._duty = take(self._duty, message)
        try:
            trouble = await link.ask(data)
        except OSError:
            # The next one gets it at its start.
            trouble = ""
        if trouble:
            raise self._refusal(trouble)
        return await self._ready()

    @property
    def _machines(self) -> str:
        return f"Machines of pool {self._duty.pool_name!r} at {self._provider.name}"

    async def _part(self, message: Message) -> None:
        self._send(message)
        self._parting.set()
        await asyncio.shield(self._task)

    def _send(self, message: Message) -> None:
        """Record something, and send it to the guardian; one that is not there yet gets it when it is."""
        self._duty = take(self._duty, message)
        if self._link is not None:
            self._link.send(message)

    async def _ready(self) -> GuardianLink:
        """Wait until there is a guardian."""
        while self._link is None or self._link.lost.done():
            if self._refused is not None:
                raise self._refused
            if self._failure:
                raise ProvisionError(self._failure, provider=self._provider.name)
            self._changed.clear()
            await self._changed.wait()
        return self._link

    async def _keep(self) -> None:
        """Keep a guardian running as long as the pool is open."""
        early = 0
        try:
            while not self._failure:
                began = time.monotonic()
                try:
                    why = await self._with_one()
                except PluginError as error:
                    self._refused = error
                    break
                except OSError as error:
                    why = str(error)
                if self._parting.is_set() and (not why or self._duty.idle):
                    break
                early = early + 1 if time.monotonic() - began < SOON else 1
                await self._again(why, early)
        finally:
            self._failure = self._failure or "The pool is closed."
            self._changed.set()

    async def _again(self, why: str, early: int) -> None:
        """Wait until another guardian is started, or start none any more."""
        if early >= STARTS:
            self._failure = (
                f"{self._machines} have no guardian any more, and so no more are rented: {why}, as did "
                f"{early - 1} before it. If this process dies, type: sky down {self._duty.pool_id}"
            )
            self._reporting.error(self._failure, fatal=False)
            return
        self._reporting.error(f"{why}; {self._machines[0].lower()}{self._machines[1:]} get another.", fatal=False)
        if early > 1:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._parting.wait(), pause(early - 2, random.random()))

    async def _with_one(self) -> str:
        """
        Start a guardian, and be with it to its end or ours.

        Returns:
            How it died; nothing if the pool was left.
        """
        duty = self._duty
        link = await self._started(duty)
        if self._duty is not duty:
            link.send(self._duty)
        self._link = link
        self._changed.set()
        parting = asyncio.ensure_future(self._parting.wait())
        await asyncio.wait({parting, link.lost}, return_when=asyncio.FIRST_COMPLETED)
        parting.cancel()
        self._link = None
        if link.lost.done():
            await link.end(0.0)
            return link.lost.result()
        if not self._duty.idle:
            _log.warning("%s may still exist: guardian (process %d) goes on terminating them", self._machines, link.pid)
            link.leave()
        else:
            await link.end(HOME if self._duty.dismissed else 0.0)
        return ""

    async def _started(self, duty: Duty) -> GuardianLink:
        try:
            data = await in_thread(charge, self._provider.provider, duty)
        except Exception as error:
            raise self._refusal(str(error)) from error
        try:
            return await self._start(duty.pool_id, data)
        except PluginError as error:
            raise self._refusal(str(error)) from error

    def _refusal(self, why: str) -> PluginError:
        """Return the error that blames the provider for what cannot be handed over."""
        name = self._provider.name
        return PluginError(
            f"Provider {name!r} cannot be handed to the guardian that ends its machines if this process dies: {why}",
            plugin=name,
            hint="What it is made of, and what skyward_open returns, has to be picklable. "
            "With ttl=0 a pool is opened without a guardian.",
        )
