"""From a spec to nodes that take calls, and back: launch, environment, agent, terminate."""

from __future__ import annotations

import logging
import os
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import evolve

from skyward import plugin as hooks
from skyward.engine.calls.batches import BatchTurns
from skyward.engine.events.reporting import Reporting
from skyward.engine.guardian.durable_records import Records
from skyward.engine.instances.health_setting import CHECK_PROCESS, health_setting
from skyward.engine.instances.launch import Launching
from skyward.engine.instances.linger import Linger
from skyward.engine.instances.machine_image_choice import MachineImages
from skyward.engine.instances.provider_handle import ProviderHandle
from skyward.engine.instances.regions import Regions
from skyward.engine.instances.rented import Rented
from skyward.engine.instances.terminator import Terminator
from skyward.engine.nodes.buffer_sharing import Sharing
from skyward.engine.nodes.coming_back import come_back
from skyward.engine.nodes.host import Host, HostAddress, Prepared
from skyward.engine.nodes.local_environments import LocalEnvironments
from skyward.engine.nodes.local_host import LocalHost
from skyward.engine.nodes.node_facts import facts_of
from skyward.engine.nodes.node_shell import NodeShell
from skyward.engine.nodes.reachability import Reaching
from skyward.engine.nodes.upload_rates import Uploads
from skyward.engine.pool.event_loop import EngineLoop
from skyward.engine.volumes.pool_volumes import PoolVolumes
from skyward.errors import PluginError, ProvisionError, SkywardError
from skyward.model.events import event as events
from skyward.model.instances.cluster import Cluster, KeyPair, LaunchCommand, LaunchContext
from skyward.model.instances.machine import Instance, LocalAddress, ProviderFacts, SSHAddress
from skyward.model.instances.offer import Offer
from skyward.model.spec.image import Image, check_python
from skyward.model.spec.trust_setting import opened_as
from skyward.plan.instances.instance_events import BecameReady
from skyward.plan.instances.lingering import check_linger
from skyward.plan.pool.default_checkpoints import checkpoint_folder
from skyward.plan.pool.retry_policy import worth_another_start
from skyward.plan.pool.suspicion import BEATS

if TYPE_CHECKING:
    from skyward.engine.instances.adoption import Adopted
    from skyward.engine.instances.leaving import Leaving
    from skyward.engine.instances.pool_instances import PoolInstances
    from skyward.engine.instances.recipe import Recipe
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
        self._local = LocalEnvironments(reporting, request.options.bootstrap_timeout)
        self._plugins_pickle = b""
        self._health: dict[str, Any] = {}
        self._uploads, self._turns = Uploads(), BatchTurns(TOGETHER)
        self._reaching = Reaching(report=reporting.unreached)
        self.volumes = PoolVolumes(engine, self._provider, spec, request.name, self._bootstrap_timeout(spec.image))
        # One for each region, whose machines have a network of their own.
        self.sharing: defaultdict[str | None, Sharing] = defaultdict(partial(Sharing, engine))
        self.machine_images = MachineImages(self._provider, wanted=request.options.warm_image)
        anything = self._any_offer()
        self._instances = instances
        self.regions = Regions(self._provider, pool_id, request.options, reporting)
        records = Records(self._provider, anything, reporting)
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
        self.linger: Leaving = Linger(
            self._provider, anything, request.options, instances, self.regions, self._launching, reporting, self._mark
        )
        self.terminator = Terminator(
            anything,
            self._provider.facts,
            request.options,
            instances,
            self.regions,
            records,
            reporting,
            self._host,
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
        processes = self._worker.processes_per_rank
        return tuple(
            (lane, lane // processes, self._worker.threads_per_process)
            for lane in range(self.ranks_per_node * processes)
        )

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
        self._plugins_pickle = _pickled(self.spec.plugins)
        self._health = health_setting(self._options.health_checker)

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
        shell.host = self._host(shell)
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
        shell.start(self._config(shell, prepared), self._plugins_pickle, files)
        await shell.ready(max(self._bootstrap_timeout(shell.blueprint.image), START_TIMEOUT))
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

    def _bootstrap_timeout(self, image: Image) -> float:
        return self._options.bootstrap_timeout or image.bootstrap_timeout

    def _host(self, shell: NodeShell) -> Host:
        """Choose how a machine is reached, by its address."""
        address: object = shell.instance.address
        if isinstance(address, LocalAddress):
            return LocalHost(
                self._engine,
                Path(address.directory),
                self._mark(shell),
                env={**os.environ, **shell.blueprint.image.env},
                prepare=partial(self._local.prepare, shell),
            )
        if isinstance(address, SSHAddress):
            # Late, so that a pool at home does not load what SSH needs.
            from skyward.engine.nodes.ssh_host import SSHHost

            return SSHHost(self._engine, address, self._mark(shell), self._recipe(shell))
        if isinstance(address, HostAddress):
            return address.make_host(self._mark(shell), self._recipe(shell))
        raise ProvisionError(f"{self._provider.name} gave an address that is not known: {address!r}.")

    def _recipe(self, shell: NodeShell) -> Recipe:
        """Return what becomes of a machine that is not this one."""
        from skyward.engine.instances.recipe import Recipe
        from skyward.ssh.acceptance import faults

        recipe = Recipe(
            image=shell.blueprint.image,
            ops=shell.blueprint.ops,
            ttl=self.spec.ttl or 0.0,
            life=shell.rented.life(self.spec.timeout, self._engine.loop.time()),
            before=shell.rented.before,
            resumed=shell.rented.resumed,
            end=self._provider.facts.end_command,
            timeout=self._bootstrap_timeout(shell.blueprint.image),
            tell=partial(self._reporting.preparing, shell),
            behind=lambda: self._reporting.pressed,
            unreachable=shell.on_unreachable,
            waiting=partial(self._reporting.waiting, shell),
            ssh_timeout=self._options.ssh_timeout,
            ssh_retry_interval=self._options.ssh_retry_interval,
            kept=self._launching.kept,
        )
        if not self._provider.facts.rents:
            return recipe
        offer = shell.blueprint.cluster.offer
        return evolve(
            recipe,
            faults=partial(faults, spec=self.spec, offer=offer, image=shell.blueprint.image),
            uploads=self._uploads,
        )

    def _mark(self, shell: NodeShell) -> str:
        """Return a name of a node that is unique on any machine."""
        return shell.rented.mark(self.pool_id, shell.index)

    def _config(self, shell: NodeShell, prepared: Prepared) -> dict[str, Any]:
        python = prepared.python
        env = {**shell.blueprint.image.env, **prepared.env}
        lanes = []
        for lane, rank, _ in self.lanes:
            command = LaunchCommand(
                argv=(python, "-P", "-m", "skyward.node.worker.worker"), env={**env, **self._devices(rank)}
            )
            context = LaunchContext(cluster=shell.blueprint.cluster, node=shell.index, rank=rank, lane=lane)
            command = hooks.launch_command(self.spec.plugins, command, context)
            lanes.append(
                {
                    "argv": list(command.argv),
                    "env": dict(command.env),
                    "facts": facts_of(
                        evolve(shell.info, worker=rank), checkpoints=checkpoint_folder(self.spec.volumes)
                    ),
                }
            )
        app_host = None
        if hooks.implements(self.spec.plugins, "around_app"):
            app_host = {"argv": [python, "-P", "-m", "skyward.node.agent.app_host"], "env": env}
        return {
            "mark": self._mark(shell),
            "slots": self._worker.threads_per_process,
            "reuse_processes": self._worker.reuse_processes,
            "lanes": lanes,
            "app_host": app_host,
            "metrics": self._metrics(shell.blueprint.image),
            # Elsewhere the watchdog ends a node, whatever becomes of its agent.
            "life": self.spec.timeout if isinstance(shell.instance.address, LocalAddress) else None,
            "notice": list(self._provider.facts.notice_command) if shell.instance.spot else [],
            "beat": self._options.suspect_timeout and self._options.suspect_timeout / BEATS,
            "checks": self._options.collect_metrics,
            "health": self._health and {**self._health, "argv": [python, *CHECK_PROCESS], "env": env},
        }

    def _metrics(self, image: Image) -> list[dict[str, Any]]:
        """List what the agent is to measure."""
        return [one.to_dict() for one in image.metrics] if self._options.collect_metrics else []

    def _devices(self, rank: int) -> Mapping[str, str]:
        """Show a rank the accelerators that are its own."""
        if self._worker.per_node != "accelerator":
            return {}
        return {"CUDA_VISIBLE_DEVICES": str(rank), "SKYWARD_DEVICE": str(rank)}


def _pickled(plugins: tuple[Any, ...]) -> bytes:
    """Pickle the plugins for the workers; nothing if none of them does anything there."""
    if not any(hooks.implements(plugins, hook) for hook in ("around_app", "around_process", "decorate")):
        return b""
    import cloudpickle

    try:
        pickled: bytes = cloudpickle.dumps(plugins)
    except Exception as error:
        raise PluginError(
            f"The plugins {', '.join(str(getattr(plugin, 'name', plugin)) for plugin in plugins)} cannot be sent to "
            f"nodes: {error}. Let their hooks open what cannot be pickled inside themselves."
        ) from error
    return pickled
