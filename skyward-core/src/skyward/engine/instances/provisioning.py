"""From a spec to nodes that take calls, and back: launch, environment, agent, terminate."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from attrs import evolve

from skyward.engine.calls.batches import BatchTurns
from skyward.engine.events.reporting import Reporting
from skyward.engine.guardian.durable_records import Records
from skyward.engine.instances.agent_config import AgentConfig
from skyward.engine.instances.launch import Launching
from skyward.engine.instances.linger import Linger
from skyward.engine.instances.machine_hosts import MachineHosts
from skyward.engine.instances.machine_image_choice import MachineImages
from skyward.engine.instances.provider_handle import ProviderHandle
from skyward.engine.instances.regions import Regions
from skyward.engine.instances.rented import Rented
from skyward.engine.instances.terminator import Terminator
from skyward.engine.nodes.buffer_sharing import Sharing
from skyward.engine.nodes.coming_back import come_back
from skyward.engine.nodes.node_shell import NodeShell
from skyward.engine.nodes.reachability import Reaching
from skyward.engine.pool.event_loop import EngineLoop
from skyward.engine.volumes.pool_volumes import PoolVolumes
from skyward.errors import SkywardError
from skyward.model.events import event as events
from skyward.model.instances.cluster import Cluster, KeyPair
from skyward.model.instances.machine import Instance, LocalAddress, ProviderFacts
from skyward.model.instances.offer import Offer
from skyward.model.spec.image import check_python
from skyward.model.spec.trust_setting import opened_as
from skyward.plan.instances.instance_events import BecameReady
from skyward.plan.instances.lingering import check_linger
from skyward.plan.pool.retry_policy import worth_another_start

if TYPE_CHECKING:
    from skyward.engine.instances.adopted import Adopted
    from skyward.engine.instances.leaving import Leaving
    from skyward.engine.instances.pool_instances import PoolInstances
    from skyward.engine.nodes.host import Host
    from skyward.link.payload import Payload
    from skyward.model.spec.spec import Spec
    from skyward.plan.config.request import Request

_log = logging.getLogger(__name__)

TOGETHER = 32
"""Machines that are begun to be made into nodes in one turn of the loop, which takes some milliseconds."""

START_TIMEOUT = 60.0
"""Seconds that agent and workers have to come up, once the environment is made."""


class Provisioning:
    """
    Make nodes for one pool.

    Args:
        engine: The loop.
        request: What the user asked for.
        spec: The spec that is tried.
        pool_id: The pool's id.
        reporting: Where events go.
        instances: What is known of the pool's instances.
        like: The pool as it was opened, where its other nodes are of another cloud.
    """

    def __init__(
        self,
        engine: EngineLoop,
        request: Request,
        spec: Spec,
        pool_id: str,
        reporting: Reporting,
        instances: PoolInstances,
        *,
        like: Cluster | None = None,
    ) -> None:
        self._engine = engine
        self._options = request.options
        self._name = request.name
        self.spec = spec
        self.pool_id = pool_id
        self._like = like
        self._adopted: Adopted | None = request.adopted if like is None else None
        self._reporting = reporting
        self._worker = request.options.workers
        self._provider = ProviderHandle(spec.provider)
        self._agents = AgentConfig(spec, request.options, self._provider)
        self._turns = BatchTurns(TOGETHER)
        self._reaching = Reaching(report=reporting.unreached)
        # One for each region, whose machines have a network of their own.
        self.sharing: defaultdict[str | None, Sharing] = defaultdict(partial(Sharing, engine))
        self.machine_images = MachineImages(self._provider, wanted=request.options.warm_image)
        anything = self._any_offer()
        self._instances = instances
        self.regions = Regions(self._provider, pool_id, request.options, reporting)
        records = Records(self._provider, anything, reporting, lease=request.options.lease or 0.0)
        self._launching = Launching(
            self._provider,
            anything,
            request.options,
            reporting,
            self.machine_images,
            instances,
            self.regions,
            records,
            ranks=like.ranks_per_node if like is not None else None,
            adopted=self._adopted,
        )
        self._hosts = MachineHosts(
            engine, self._provider, spec, request.options, pool_id, reporting, self._launching.kept
        )
        self.volumes = PoolVolumes(engine, self._provider, spec, request.name, self._hosts.timeout(spec.image))
        self.linger: Leaving = Linger(
            self._provider,
            anything,
            request.options,
            instances,
            self.regions,
            self._launching,
            reporting,
            self._hosts.mark,
        )
        self.terminator = Terminator(
            anything,
            self._provider.facts,
            request.options,
            instances,
            self.regions,
            records,
            reporting,
            self._hosts.host,
            self.linger,
        )

    @property
    def cluster(self) -> Cluster:
        """Describe the pool with the offer that is tried first."""
        return self._launching.first.cluster

    @property
    def ranks_per_node(self) -> int:
        """Count the ranks of each node."""
        return (self._like or self.cluster).ranks_per_node

    @property
    def launching(self) -> Launching:
        """Return what launches instances."""
        return self._launching

    async def close(self) -> str:
        """
        Terminate what is left of the pool's instances at the cloud and does not linger, as `Terminator.close` does.

        Raises:
            LeftBehindError: If instances are left.
        """
        await self.volumes.close()
        self._reaching.close()
        try:
            await self.linger.write(lambda shell: self.terminator.end(shell, 0.0))
            failed = await self.terminator.close()
        finally:
            await self._launching.close()
        if not failed:
            await self._launching.settle()
        return failed

    @property
    def provider_name(self) -> str:
        """Return the provider's name."""
        return self._provider.name

    @property
    def facts(self) -> ProviderFacts:
        """Return what holds for the provider."""
        return self._provider.facts

    @property
    def slots_per_node(self) -> int:
        """Count the calls that a node runs at once."""
        return self.ranks_per_node * self._worker.concurrency

    @property
    def hourly_rate(self) -> float:
        """Return what a node costs by the offer that is tried first, in USD an hour; 0 where nothing is billed."""
        return self.cluster.offer.least_price or 0.0

    @property
    def collective(self) -> bool:
        """Return whether the ranks of a broadcast form one job."""
        return self._launching.first.collective or bool(self._options.cluster)

    @property
    def lanes(self) -> tuple[tuple[int, int, int], ...]:
        """List a node's lanes: number, rank, slots."""
        return self._agents.lanes(self.ranks_per_node)

    async def open(self) -> None:
        """
        Check and decide all that needs no machine, then let the provider set up what all machines share.

        Raises:
            ConfigError: If the spec asks for what cannot be.
            PluginError: If a hook raises.
        """
        check_python(self.spec.image)
        linger = self._options.linger if self._like is None else 0.0
        if nothing := check_linger(self.facts, linger=linger, ttl=self.spec.ttl, volumes=self.spec.volumes):
            _log.warning("%s", nothing)
        await self._launching.open()
        await self.volumes.check(self.cluster.offer.region)
        self._agents.open()

    async def launch(
        self, nodes: tuple[int, ...], staying: Sequence[Instance], take: Callable[[NodeShell], None]
    ) -> dict[int, SkywardError]:
        """
        Rent machines.

        Args:
            nodes: The nodes that need one.
            staying: The machines that the pool has already.
            take: Called with each node that got one, as soon as it is there.

        Returns:
            The nodes that got none, and why.
        """
        for node in nodes:
            self._reporting.publish(events.InstanceRequested(node=node))

        def took(node: int, rented: Rented) -> None:
            info = evolve(rented.blueprint.info(node, rented.instance), job_id=(self._like or self.cluster).pool_id)
            shell = NodeShell(self._engine, node, rented, info)
            shell.on_busy = self._reporting.busy
            shell.trust = opened_as(self.spec.trust, strangers=self.facts.strangers)
            self._instances.add(shell)
            self._reporting.launched(shell)
            take(shell)

        return await self._launching.launch(nodes, staying, took)

    async def start(self, shell: NodeShell, files: Sequence[Payload]) -> None:
        """
        Make a machine into a node.

        Args:
            shell: The node.
            files: The user's modules.

        Raises:
            CredentialsError: If machines like this one can be rented, and not ended.
            ProvisionError: If it can't be made ready.
        """
        await shell.running()
        # A list may tell of all of them at once.
        await self._turns.take()
        shell.host = self._hosts.host(shell)
        await self.regions.may_end(shell.blueprint.cluster)
        self._reporting.runs(shell)
        if shell.rented.resumed is not None:
            await shell.while_there(come_back(shell, files))
            return
        with self._reporting.bootstrap(shell):
            prepared = await shell.while_there(shell.host.prepare())
        shell.info = evolve(shell.info, ssh_port=prepared.ssh_port or shell.info.ssh_port)
        await shell.connect()
        if self.spec.volumes:
            await shell.while_there(self.volumes.attach(shell))
        config = self._agents.of(shell, prepared, mark=self._hosts.mark(shell), ranks=self.ranks_per_node)
        shell.start(config, self._agents.plugins_pickle, files)
        await shell.ready(max(self._hosts.timeout(shell.blueprint.image), START_TIMEOUT))
        joined = shell.blueprint.collective or self._options.cluster
        if isinstance(shell.instance.address, LocalAddress):
            return
        if joined:
            await self._reaching.meet(shell)
        if self._options.cluster is not False and self._provider.facts.nodes_reach_each_other:
            self.sharing[shell.instance.region].join(shell)

    def ready(self, shell: NodeShell) -> None:
        """Record that a node takes calls."""
        self._instances.send(BecameReady(shell.rented.key))
        self._reporting.node_ready(shell)
        self.machine_images.begin(shell)

    def reach(self, shell: NodeShell) -> Host:
        """Return how a machine is reached."""
        return self._hosts.host(shell)

    def start_failed(self, shell: NodeShell, error: Exception, *, again: bool) -> bool:
        """
        Record that a machine could not be made ready.

        Args:
            shell: The node.
            error: Why not.
            again: Whether it is not the first one in its place.

        Returns:
            Whether it was a fair attempt: one from a machine image is made again without.
        """
        if shell.rented.machine_image is not None and worth_another_start(error, again=True):
            self.machine_images.drop(shell.rented.machine_image, error)
            return False
        if again:
            self._launching.offers.refuse(shell.rented.candidate, "failed", str(error))
        return True

    def shun(self, machine: str) -> None:
        """Take a machine no more, by the name of `machine_of`."""
        self._launching.offers.shunned |= {machine}

    def _any_offer(self) -> Cluster:
        """Describe the pool before anything is chosen."""
        return Cluster(
            pool_id=self.pool_id,
            pool_name=self._name,
            spec=self.spec,
            offer=Offer(provider=self._provider.name, instance_type=""),
            provider=self._provider.name,
            nodes=self.spec.nodes.desired,
            worker=self._worker,
            nodes_reach_each_other=self._provider.facts.nodes_reach_each_other and self._like is None,
            joined=self._options.cluster,
            key=KeyPair() if self._adopted is None else self._adopted.key,
        )
