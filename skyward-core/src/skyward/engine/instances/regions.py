"""A pool's machines region by region: what they share, which there are, how they end."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from attrs import evolve

from skyward.engine.instances.provider_handle import ProviderHandle
from skyward.errors import CredentialsError, SkywardError
from skyward.model.events import event as events
from skyward.model.instances.cluster import Cluster
from skyward.model.instances.machine import Instance
from skyward.plan.instances.owned_instances import of_another

if TYPE_CHECKING:
    from skyward.engine.events.reporting import Reporting
    from skyward.model.spec.options import Options

_log = logging.getLogger(__name__)

PROVIDER_TIMEOUT = 120.0
"""Seconds that a provider's hook may take where no option says otherwise."""

RETRIES = 4
"""How often a provider that fails to end machines is asked again."""

CHECKING = 10.0
"""Seconds that a machine which runs waits for the answer whether it can be ended."""

SELF_TERMINATION = 90.0
"""Seconds that a machine has to terminate, and its cloud to confirm that, at most."""


class Regions:
    """
    Keep what the machines of one pool share.

    Args:
        provider: Where they come from.
        pool_id: The pool; what bears the id of another one is left alone.
        options: How long things may take.
        reporting: Where events go.
    """

    def __init__(self, provider: ProviderHandle, pool_id: str, options: Options, reporting: Reporting) -> None:
        self._provider = provider
        self._pool_id = pool_id
        self._options = options
        self._reporting = reporting
        self._reported: set[str] = set()
        self._making: dict[str | None, asyncio.Future[Any]] = {}
        self._open: dict[str | None, tuple[Cluster, Any]] = {}
        self._checks: dict[str | None, asyncio.Task[CredentialsError | None]] = {}

    @property
    def used(self) -> bool:
        """Return whether anything was set up."""
        return bool(self._open)

    @property
    def checks(self) -> tuple[asyncio.Task[CredentialsError | None], ...]:
        """List the questions whether machines can be ended, answered or not."""
        return tuple(self._checks.values())

    async def shared(self, cluster: Cluster) -> Any:
        """
        Return what the machines of a region share, made with the first of them.

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

    @property
    def everything(self) -> tuple[tuple[str | None, Any], ...]:
        """Return what machines share, region by region."""
        return tuple((region, infra) for region, (_, infra) in self._open.items())

    def adopt(self, cluster: Cluster, infra: Any) -> None:
        """
        Continue with what an earlier pool's machines share in a region.

        Args:
            cluster: The pool, with an offer of that region.
            infra: What they share.
        """
        made: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        made.set_result(infra)
        self._open[cluster.offer.region] = (cluster, infra)
        self._making[cluster.offer.region] = made

    async def listed(self) -> list[Instance]:
        """
        List the pool's machines in all regions; machines listed of another pool are left out, and logged once.

        Raises:
            SkywardError: If the provider does not answer.
        """
        answers = await self._each("skyward_instances", timeout=PROVIDER_TIMEOUT)
        # A provider that lists all regions at once lists a machine for each.
        every = {instance.id: instance for answer in answers for instance in answer or ()}
        own = {instance.id: instance for instance in self.own(every.values())}
        if new := every.keys() - own.keys() - self._reported:
            self._reported |= new
            _log.warning(
                "Provider %r lists machines of another pool for pool %s, and they are left alone: %s. This is a flaw "
                "of the provider: skyward_instances has to look for the pool's own tag.",
                self._provider.name,
                self._pool_id,
                ", ".join(sorted(new)),
            )
        return list(own.values())

    def own(self, instances: Iterable[Instance]) -> list[Instance]:
        """Return those of some instances that are of this pool, each under the one name of its provider."""
        name = self._provider.name
        return [
            instance if instance.provider == name else evolve(instance, provider=name)
            for instance in instances
            if not of_another(instance, self._pool_id)
        ]

    async def renew(self, ids: Iterable[str], expires_at: float) -> None:
        """
        Write a later expiry on machines.

        Raises:
            SkywardError: If the provider does not answer.
        """
        await self._each("skyward_renew", ids=tuple(ids), expires_at=expires_at, timeout=PROVIDER_TIMEOUT)

    async def end(self, cluster: Cluster, infra: Any, ids: Sequence[str]) -> None:
        """
        Terminate instances of one region; retried where the provider fails, and not where it refuses.

        Raises:
            SkywardError: If one may still exist.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._options.shutdown_timeout
        for attempt in range(RETRIES + 1):
            left = max(1.0, deadline - loop.time())
            try:
                await self._provider.call("skyward_terminate", cluster=cluster, infra=infra, ids=ids, timeout=left)
            except Exception as error:
                pause = 0.5 * 2**attempt * random.uniform(0.8, 1.2)
                if attempt == RETRIES or loop.time() + pause > deadline or _refused(error):
                    raise
                await asyncio.sleep(pause)
            else:
                return

    def check_end(self, cluster: Cluster, infra: Any, ids: Sequence[str], expires_at: float | None) -> None:
        """
        Begin to check whether instances of a region can be terminated, and their expiry renewed; once a region.

        Args:
            cluster: The pool, with an offer of that region.
            infra: What the machines share.
            ids: Machines that were just rented there.
            expires_at: The expiry that is written on them; None if there is none.
        """
        if cluster.offer.region not in self._checks:
            check = self._refusal(cluster, infra, ids, expires_at)
            self._checks[cluster.offer.region] = asyncio.ensure_future(check)

    async def may_end(self, cluster: Cluster) -> None:
        """
        Wait for the check whether instances of a region can be terminated, and their expiry renewed.

        Raises:
            CredentialsError: If one of both cannot be.
        """
        check = self._checks[cluster.offer.region]
        await asyncio.wait({check}, timeout=CHECKING)
        if check.done() and (refusal := check.result()) is not None:
            raise refusal

    async def ended(self, cluster: Cluster, infra: Any, ids: Sequence[str]) -> None:
        """
        Wait until the provider confirms the end of instances that shut themselves down.

        Raises:
            SkywardError: If one may still exist.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + min(SELF_TERMINATION, self._options.shutdown_timeout)
        pause = 0.2
        while True:
            left = max(1.0, deadline - loop.time())
            try:
                # An account that may not end them still looks at what is billed.
                await self._provider.call("skyward_terminate", cluster=cluster, infra=infra, ids=ids, timeout=left)
            except Exception:
                if loop.time() + pause > deadline:
                    raise
                await asyncio.sleep(pause * random.uniform(0.8, 1.2))
                pause = min(5.0, 2 * pause)
            else:
                return

    async def end_anywhere(self, ids: Sequence[str]) -> None:
        """
        Terminate instances in any region; one region's failure does not keep the others from terminating theirs.

        Raises:
            SkywardError: If one may still exist.
        """
        calls = [self.end(cluster, infra, ids) for cluster, infra in list(self._open.values())]
        for answer in await asyncio.gather(*calls, return_exceptions=True):
            if answer is not None:
                raise answer

    async def release(self) -> None:
        """
        Release the shared infrastructure.

        Raises:
            SkywardError: If something may still be there.
        """
        await self._each("skyward_release", timeout=self._options.shutdown_timeout)
        self._open.clear()

    async def _refusal(
        self, cluster: Cluster, infra: Any, ids: Sequence[str], expires_at: float | None
    ) -> CredentialsError | None:
        asked: dict[str, Any] = {"cluster": cluster, "infra": infra, "ids": ids, "timeout": PROVIDER_TIMEOUT}
        try:
            await self._provider.call("skyward_check_end", **asked)
        except CredentialsError as error:
            return error
        except SkywardError as error:
            _log.info("end.not_checked provider=%s: %s", self._provider.name, error)
        if expires_at is None:
            return None
        try:
            await self._provider.call("skyward_renew", expires_at=expires_at, **asked)
        except CredentialsError as error:
            return CredentialsError(
                "This account may rent machines and not write a later expiry on them: a pool that lives would be "
                f"listed as forgotten, and ended by: sky down --expired. So none is used. {error.message}",
                provider=error.provider,
                hint=error.hint,
            )
        except SkywardError as error:
            _log.info("renew.not_checked provider=%s: %s", self._provider.name, error)
        return None

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


def _refused(error: BaseException | None) -> bool:
    """Return whether the account may not do something, so that asking again changes nothing."""
    return error is not None and (isinstance(error, CredentialsError) or _refused(error.__cause__))
