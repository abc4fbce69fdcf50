"""Leave the machines of a pool waiting for the next pool, instead of terminating them."""

from __future__ import annotations

import asyncio
import logging
import pickle
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

from attrs import evolve

from skyward.blocking import in_thread
from skyward.engine.calls.batches import all_of
from skyward.engine.instances.lingering_key import key_of, made_of, source_of
from skyward.engine.instances.lingering_records import LeftMachine, LeftPool, forget, write
from skyward.engine.nodes.host import LingeringHost
from skyward.errors import ConfigError, PluginError, SkywardError
from skyward.model.instances.machine import SSHAddress
from skyward.plan.instances.instance_events import Lingers
from skyward.plan.instances.lingering import Lingering, granted, linger_cost

if TYPE_CHECKING:
    from skyward.engine.events.reporting import Reporting
    from skyward.engine.instances.launch import Launching
    from skyward.engine.instances.pool_instances import PoolInstances
    from skyward.engine.instances.provider_handle import ProviderHandle
    from skyward.engine.instances.regions import Regions
    from skyward.engine.nodes.node_shell import NodeShell
    from skyward.model.instances.cluster import Cluster
    from skyward.model.spec.options import Options

__all__ = ["Linger"]

_log = logging.getLogger(__name__)


class Linger:
    """
    Leave what one pool has at one cloud waiting; lives in the engine's loop.

    Args:
        provider: Where the machines come from.
        cluster: The pool, whatever its offer.
        options: For how long they linger.
        instances: What is known of the pool's instances.
        regions: What they share, region by region.
        launching: Writes on them until when they are there.
        reporting: Where events go.
        mark: Names a node like no other.
    """

    def __init__(
        self,
        provider: ProviderHandle,
        cluster: Cluster,
        options: Options,
        instances: PoolInstances,
        regions: Regions,
        launching: Launching,
        reporting: Reporting,
        mark: Callable[[NodeShell], str],
    ) -> None:
        self._provider = provider
        self._cluster = cluster
        self._linger = options.linger if provider.facts.rents else 0.0
        self._instances = instances
        self._regions = regions
        self._launching = launching
        self._reporting = reporting
        self.mark = mark
        self._seconds = 0.0
        self._left: list[tuple[NodeShell, LeftMachine]] = []
        self.wanted = False

    @property
    def any(self) -> bool:
        """Return whether a machine lingers."""
        return bool(self._left)

    @property
    def stays(self) -> bool:
        """Return False: a machine that waits may be ended."""
        return False

    async def begin(self) -> None:
        """Decide for how long the ready nodes' machines linger; to be called when the pool is left, before they end."""
        # What a launch without an answer has rented is left to a guardian, which ends all that the pool has.
        if not self.wanted or not self._linger or self._launching.uncertain:
            return
        shells = [shell for shell in self._instances.shells if self._may(shell)]
        seconds = self.granted(shells, self._linger)
        if not shells:
            return
        if seconds < self._linger:
            what = f"linger for {seconds:.0f} s instead of {self._linger:g}" if seconds else "do not linger"
            _log.warning(
                "The machines of pool %r %s, because budget= or timeout= allows no more.", self._cluster.pool_name, what
            )
        self._seconds = seconds
        if seconds:
            await self.write_expiry([shell.instance.id for shell in shells], seconds)

    async def keep(self, shell: NodeShell, patience: float) -> bool:
        """
        Leave a node's machine waiting.

        Args:
            shell: The node; it has ended afterwards.
            patience: Seconds that it has to leave in good order.

        Returns:
            Whether it waits; if not, it is to be terminated.
        """
        host, address = shell.host, shell.instance.address
        if not self._seconds or not self._may(shell):
            return False
        assert isinstance(host, LingeringHost)
        assert isinstance(address, SSHAddress)
        try:
            await shell.end(patience)
            host_key = await host.linger(self._seconds)
            await shell.let_go()
        except Exception as error:
            # Whatever is wrong with it, its machine is terminated.
            _log.warning("%s is terminated, and does not linger: %s: %s", shell.where, type(error).__name__, error)
            return False
        rented = shell.rented
        self._instances.send(Lingers(rented.key))
        reached = evolve(address, host_key=host_key, known_hosts=None, fingerprints=())
        self._left.append(
            (
                shell,
                LeftMachine(
                    instance=evolve(shell.instance, address=reached),
                    candidate=rented.candidate,
                    mark=self.mark(shell),
                    token=rented.token,
                    rented_at=time.time() - self.age(shell),
                    made=made_of(rented.blueprint),
                ),
            )
        )
        shell.lingers = True
        return True

    async def write(self, terminate: Callable[[NodeShell], Awaitable[str]]) -> None:
        """
        Write down how the machines that linger are reached; those that cannot be written down are terminated.

        Args:
            terminate: Ends a node and its machine, and returns what could not be ended.
        """
        seconds, self._seconds = self._seconds, 0.0
        if not self._left:
            return
        try:
            await in_thread(self._write, seconds)
        except (OSError, ConfigError, PluginError, pickle.PicklingError, TypeError, AttributeError) as error:
            self._reporting.error(f"No machine lingers, because none can be written down: {error}", fatal=False)
            shells = [shell for shell, _ in self._left]
            self._left.clear()
            for shell in shells:
                shell.lingers = False
            for failed in await all_of(map(terminate, shells)):
                if failed:
                    self._reporting.error(failed, fatal=True)
            return
        for shell, _ in self._left:
            self._reporting.lingers(shell, seconds, self.rate(shell))

    async def give_up(self) -> None:
        """Withdraw the machines that linger, so that no pool finds them: something else ends them."""
        if self._left:
            self._left.clear()
            await in_thread(forget, (self._cluster.pool_id,))

    def _write(self, seconds: float) -> None:
        _, key = key_of(self._provider, self._cluster.spec)
        self.record(
            [machine for _, machine in self._left], seconds, sum(self.rate(shell) for shell, _ in self._left), key
        )

    def record(self, machines: Sequence[LeftMachine], seconds: float, rate: float, key: str = "") -> None:
        """
        Write down machines without a client: what they share is released by another pool, once they have ended.

        Args:
            machines: The machines.
            seconds: When they end.
            rate: What they cost, in USD an hour.
            key: Digest of what a pool that takes them has to be alike in; empty if none may.

        Raises:
            OSError: If it is not on the disk.
            ConfigError: If the directory for state is not this user's alone.
        """
        cluster, now = self._cluster, time.time()
        about = Lingering(
            pool_id=cluster.pool_id,
            pool_name=cluster.pool_name,
            provider=self._provider.name,
            source=source_of(self._provider),
            key=key,
            machines=tuple(machine.instance.id for machine in machines),
            hourly_rate=rate,
            since=now,
            ends_at=now + seconds,
        )
        shared = self._regions.everything
        write(about, LeftPool(private_key=cluster.key.private, machines=tuple(machines), shared=shared))

    def _may(self, shell: NodeShell) -> bool:
        return (
            isinstance(shell.host, LingeringHost)
            and isinstance(shell.instance.address, SSHAddress)
            and shell.notice is None
            and shell.blueprint.cluster.pool_id == self._cluster.pool_id
            and self._instances.is_ready(shell)
        )

    def age(self, shell: NodeShell) -> float:
        """Return for how many seconds a machine has been there."""
        return asyncio.get_running_loop().time() - shell.rented.at

    async def write_expiry(self, ids: list[str], seconds: float) -> None:
        """Write on machines that they are there for so many seconds; what cannot be written is logged."""
        try:
            await self._launching.renew(ids, seconds)
        except SkywardError as error:
            _log.warning("lingering.expiry_not_written provider=%s: %s", self._provider.name, error)

    # What a pool that is detached has in common with one whose machines linger.

    @property
    def pool_id(self) -> str:
        """Return the id that the machines bear."""
        return self._cluster.pool_id

    @property
    def rents(self) -> bool:
        """Return whether its machines are rented, and share what is to be released."""
        return self._provider.facts.rents

    @property
    def provider_name(self) -> str:
        """Return the provider's name."""
        return self._provider.name

    @property
    def private_key(self) -> str:
        """Return what logs in at the machines."""
        return self._cluster.key.private

    @property
    def shared(self) -> tuple[tuple[str | None, Any], ...]:
        """Return what the machines of each region share."""
        return self._regions.everything

    def left(self, event: Lingers) -> None:
        """Record that a machine is left."""
        self._instances.send(event)

    def report(self, shell: NodeShell, seconds: float) -> None:
        """Report that a machine is left for so many seconds."""
        self._reporting.lingers(shell, seconds, self.rate(shell))

    def granted(self, shells: Sequence[NodeShell], wish: float, spare: float = 0.0) -> float:
        """Return for how many of some seconds machines may wait, by their longest life and what the budget leaves."""
        spec, rate = self._cluster.spec, sum(map(self.rate, shells))
        lives = [] if spec.timeout is None else [spec.timeout - self.age(shell) for shell in shells]
        left = self._reporting.meter.left()
        left = None if left is None else left - linger_cost(rate, spare)
        return granted(linger=wish, rate=rate, left=left, life=min(lives, default=None))

    @staticmethod
    def rate(shell: NodeShell) -> float:
        """Return what a machine costs, in USD an hour."""
        rate = shell.instance.hourly_rate
        return shell.rented.candidate.price if rate is None else rate
