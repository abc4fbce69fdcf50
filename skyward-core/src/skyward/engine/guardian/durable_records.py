"""The records of a pool's machines that outlive this process: the journal on the disk, and the guardian beside us."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from skyward.blocking import in_thread
from skyward.engine.instances.provider_handle import ProviderHandle
from skyward.model.instances.cluster import Cluster
from skyward.model.instances.machine import LaunchRequest
from skyward.plan.instances.guardian_duty import needed

if TYPE_CHECKING:
    from skyward.engine.events.reporting import Reporting
    from skyward.engine.guardian.guardian_client import GuardianClient
    from skyward.engine.guardian.journal import Journal


class Records:
    """
    Let journal and guardian know which machines there are; lives in the engine's loop.

    Args:
        provider: Where the machines come from.
        cluster: The pool, whatever its offer.
        reporting: Where events go.
        lease: Seconds that nodes go on with their calls after this process's death; 0 for no longer than `ttl`.
    """

    def __init__(self, provider: ProviderHandle, cluster: Cluster, reporting: Reporting, *, lease: float = 0.0) -> None:
        self._provider = provider
        self._cluster = cluster
        self._reporting = reporting
        self._lease = lease
        self._journal: Journal | None = None
        self._guardian: GuardianClient | None = None
        # Whether a launch went without an answer, so that machines of it may appear later.
        self._uncertain = False

    @property
    def kept(self) -> bool:
        """Return whether there are any."""
        return self._journal is not None or self._guardian is not None

    @property
    def uncertain(self) -> bool:
        """Return whether it is unknown what came of a request."""
        return self._uncertain

    def guard(self) -> None:
        """Start a guardian where one is needed; it comes up while the provider is asked what it sells."""
        if needed(self._provider.facts, self._cluster.spec.ttl):
            # Late, because it is hardly ever needed.
            from skyward.engine.guardian.guardian_client import GuardianClient

            self._guardian = GuardianClient(self._provider, self._cluster, self._reporting, lease=self._lease)

    def write(self) -> None:
        """Write down from now on what is asked for."""
        # Late, because it wants a database, which a pool at home does not need.
        from skyward.engine.guardian.journal import Journal

        self._journal = Journal.open()

    async def opening(self, cluster: Cluster) -> None:
        """
        Record that something is about to be set up in a region, and return when that is durable.

        Args:
            cluster: The pool, with an offer of that region.

        Raises:
            PluginError: If the provider is nothing that can be handed over.
            ProvisionError: If there has to be a guardian, and none can be had.
        """
        if self._guardian is not None:
            await self._guardian.opening(cluster)

    async def asked(self, request: LaunchRequest, infra: Any) -> None:
        """
        Record that machines are about to be asked for, and return when that is durable.

        Args:
            request: The request.
            infra: What the pool's machines share there.

        Raises:
            PluginError: If provider or `infra` is nothing that can be written down, or be handed over.
            ProvisionError: If there has to be a guardian, and none can be had.
        """
        if self._guardian is not None:
            await self._guardian.opened(request.cluster, infra)
        if self._journal is not None:
            await self._journal.asked(request, self._provider.name, infra)

    def answered(self, token: str, ids: Iterable[str] = ()) -> None:
        """Record what came of a request."""
        ids = tuple(ids)
        if self._journal is not None:
            self._journal.answered(token, ids)
        if self._guardian is not None:
            self._guardian.rented(ids)

    def unanswered(self) -> None:
        """Record that it is unknown what came of a request."""
        self._uncertain = True

    def ended(self, token: str, machine: str) -> None:
        """Record that a machine was terminated."""
        if self._journal is not None:
            self._journal.ended(token, machine)
        if self._guardian is not None:
            self._guardian.ended((machine,))

    def settled(self) -> None:
        """Write down that the cloud lists no machine of the pool any more."""
        if self._journal is not None:
            self._journal.settled(self._cluster.pool_id)

    async def close(self) -> None:
        """Close the journal after all was terminated, and stop the guardian, if nothing can appear any more."""
        if self._journal is not None:
            await in_thread(self._journal.close)
        if self._uncertain:
            await self.hand_over()
        elif self._guardian is not None:
            await self._guardian.dismiss()

    async def hand_over(self) -> int | None:
        """Leave what was not terminated to the guardian, and return which process that is, if there is one."""
        if self._journal is not None:
            await in_thread(self._journal.close)
        return await self._guardian.hand_over() if self._guardian is not None else None
