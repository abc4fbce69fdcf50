"""From a spec to nodes that take calls, and back: launch, environment, agent, terminate."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import secrets
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import evolve

from skyward import plugin as hooks
from skyward.engine.environment import image_steps, prepare, runtime_directory
from skyward.engine.host import Host, Prepared
from skyward.engine.local_host import LocalHost
from skyward.engine.loop import EngineLoop, in_thread
from skyward.engine.node_shell import NodeShell, facts_of
from skyward.engine.provider_handle import ProviderHandle
from skyward.engine.reporting import Reporting
from skyward.errors import ConfigError, PluginError, ProvisionError
from skyward.model import event as events
from skyward.model.cluster import Cluster, LaunchCommand, LaunchContext
from skyward.model.image import Image, check_python
from skyward.model.instance import AcceleratorInfo, InstanceInfo
from skyward.model.key_pair import KeyPair
from skyward.model.machine import Instance, LaunchRequest, LocalAddress, SSHAddress
from skyward.plan.bootstrap import Step, op_step

if TYPE_CHECKING:
    from skyward.link.payload import Payload
    from skyward.model.spec import Spec
    from skyward.plan.request import Request

START_TIMEOUT = 60.0
"""Seconds that agent and workers have to come up, once the environment is made."""

PROVIDER_TIMEOUT = 120.0
"""Seconds that a provider's hook may take where no option says otherwise."""


class Provisioning:
    """
    Make nodes for one pool.

    Args:
        engine: The loop.
        request: What the user asked for.
        spec: The spec that is tried.
        pool_id: The pool's id.
        reporting: Where events go.
    """

    def __init__(self, engine: EngineLoop, request: Request, spec: Spec, pool_id: str, reporting: Reporting) -> None:
        self._engine = engine
        self._options = request.options
        self._name = request.name
        self._spec = spec
        self._pool_id = pool_id
        self._reporting = reporting
        self._worker = request.options.workers
        self._provider = ProviderHandle(spec.provider)
        self._image = spec.image
        self._preparing: asyncio.Task[Path] | None = None
        self._plugins_pickle = b""
        self._key = KeyPair()
        self.cluster: Cluster = self._make_cluster(offer=None, ranks=1)
        self.ranks_per_node = 1

    @property
    def provider_name(self) -> str:
        """Name the provider."""
        return self._provider.name

    @property
    def slots_per_node(self) -> int:
        """Count the calls that a node runs at once."""
        return self.ranks_per_node * self._worker.concurrency

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
        check_python(self._spec.image)
        await self._provider.call("skyward_preflight", spec=self._spec, timeout=PROVIDER_TIMEOUT)
        offers = await self._provider.call("skyward_offers", spec=self._spec, timeout=PROVIDER_TIMEOUT)
        offer = offers[0] if offers else None
        if offer is None:
            raise ProvisionError(
                f"{self._provider.name} has nothing that meets the requirements of pool {self._name!r}.",
                provider=self._provider.name,
            )
        plugins = self._spec.plugins
        self.cluster = self._make_cluster(offer=offer, ranks=1)
        topology = hooks.topology(plugins, self.cluster)
        self.ranks_per_node = topology.ranks_per_node or self._ranks(offer)
        self.cluster = self._make_cluster(offer=offer, ranks=self.ranks_per_node)
        hooks.validated(plugins, self.cluster)
        self._image = hooks.transform_image(plugins, self._spec.image, self.cluster)
        self._ops = hooks.bootstrap_ops(plugins, self.cluster)
        self._plugins_pickle = _pickled(plugins)
        self._reporting.publish(events.InfraCreating(provider=self._provider.name, region=self._spec.region))
        self.infrastructure = await self._provider.call("skyward_open", cluster=self.cluster, timeout=PROVIDER_TIMEOUT)
        self._reporting.publish(events.InfraCreated(provider=self._provider.name, region=self._spec.region))

    infrastructure: Any = None
    _ops: tuple[Any, ...] = ()

    async def launch(self, nodes: tuple[int, ...]) -> list[NodeShell]:
        """
        Ask the provider for machines.

        Raises:
            Exception: What the provider's hook raises.
        """
        request = LaunchRequest(
            cluster=self.cluster,
            nodes=nodes,
            token=secrets.token_hex(8),
        )
        for node in nodes:
            self._reporting.publish(events.InstanceRequested(node=node))
        self._reporting.publish(
            events.InstanceLaunching(
                count=len(nodes), instance_type=self.cluster.offer.instance_type, provider=self._provider.name
            )
        )
        timeout = self._options.provision_timeout or PROVIDER_TIMEOUT
        instances = await self._provider.call(
            "skyward_launch", request=request, infra=self.infrastructure, timeout=timeout
        )
        shells = []
        for node, instance in zip(nodes, instances, strict=True):
            shell = NodeShell(self._engine, node, instance, self._info(node, instance))
            shell.host = self._host(shell)
            self._reporting.launched(shell)
            shells.append(shell)
        return shells

    async def start(self, shell: NodeShell, files: Sequence[Payload]) -> None:
        """
        Make a machine into a node.

        Args:
            shell: The node.
            files: The user's modules.

        Raises:
            ProvisionError: If it can't be made ready.
        """
        with self._reporting.bootstrap(shell):
            prepared = await shell.host.prepare()
        await shell.connect(self._config(shell, prepared), self._plugins_pickle, files)
        await shell.ready(max(self._bootstrap_timeout, START_TIMEOUT))

    async def terminate(self, shell: NodeShell, patience: float) -> str:
        """
        End a node and give its machine back.

        Returns:
            What could not be given back, with ids; empty if all was.
        """
        try:
            await shell.end(min(patience, self._options.shutdown_timeout))
        finally:
            try:
                await self._provider.call(
                    "skyward_terminate",
                    cluster=self.cluster,
                    infra=self.infrastructure,
                    ids=(shell.instance.id,),
                    timeout=self._options.shutdown_timeout,
                )
            except Exception as error:
                return f"{shell.where} may still exist: {error}"
        return ""

    async def close(self) -> None:
        """Let the provider take down what all machines shared."""
        if self.infrastructure is not None:
            await self._provider.call(
                "skyward_release",
                cluster=self.cluster,
                infra=self.infrastructure,
                timeout=self._options.shutdown_timeout,
            )

    def _make_cluster(self, *, offer: Any, ranks: int) -> Cluster:
        return Cluster(
            pool_id=self._pool_id,
            pool_name=self._name,
            spec=self._spec,
            offer=offer,
            provider=self._provider.name,
            nodes=self._spec.nodes.desired,
            ranks_per_node=ranks,
            worker=self._worker,
            key=self._key,
        )

    def _ranks(self, offer: Any) -> int:
        if self._worker.per_node != "accelerator":
            return self._worker.per_node
        if not offer.accelerator_count:
            raise ConfigError(
                'per_node="accelerator" wants one rank for each accelerator, and the nodes have none. '
                "Give a number, or ask for an accelerator."
            )
        return int(offer.accelerator_count)

    def _info(self, node: int, instance: Instance) -> InstanceInfo:
        offer = self.cluster.offer
        accelerator = None
        if offer.accelerator_name:
            accelerator = AcceleratorInfo(
                type=offer.accelerator_name, count=offer.accelerator_count, memory_gb=offer.accelerator_memory_gb
            )
        return InstanceInfo(
            node=node,
            workers_per_node=self.ranks_per_node,
            job_id=self._pool_id,
            accelerators=offer.accelerator_count or 0,
            accelerator=accelerator,
            id=instance.id,
            provider=instance.provider,
            ip=instance.ip,
            private_ip=instance.private_ip,
            spot=instance.spot,
            hourly_rate=instance.hourly_rate,
            on_demand_rate=offer.on_demand_price,
            instance_type=instance.instance_type,
            region=instance.region,
            vcpus=offer.vcpus,
            memory_gb=offer.memory_gb,
            gpu_count=int(offer.accelerator_count or 0),
            gpu_model=offer.accelerator_name,
            gpu_vram_gb=offer.accelerator_memory_gb,
        )

    @property
    def _bootstrap_timeout(self) -> float:
        return self._options.bootstrap_timeout or self._image.bootstrap_timeout

    def _host(self, shell: NodeShell) -> Host:
        """Choose how a machine is reached, by its address."""
        address = shell.instance.address
        if isinstance(address, LocalAddress):
            return LocalHost(
                self._engine,
                Path(address.directory),
                self._mark(shell),
                env={**os.environ, **self._image.env},
                prepare=partial(self._local_environment, shell),
            )
        if isinstance(address, SSHAddress):
            # Late, so that nobody who stays at home loads what SSH needs.
            from skyward.engine.ssh_host import Recipe, SSHHost

            recipe = Recipe(
                image=self._image,
                ops=self._ops,
                ttl=self._spec.ttl or 0.0,
                life=self._spec.timeout,
                end=self._provider.facts.end_command,
                timeout=self._bootstrap_timeout,
                tell=lambda event: self._reporting.publish(evolve(event, instance=shell.info)),
            )
            return SSHHost(self._engine, address, self._mark(shell), recipe)
        raise ProvisionError(f"{self._provider.name} gave an address that is not known: {address!r}.")

    def _mark(self, shell: NodeShell) -> str:
        """Name a node like no other, on whatever machine it is."""
        return f"{self._pool_id}-{shell.index}-{self._generation(shell)}"

    def _generation(self, shell: NodeShell) -> str:
        return hashlib.sha256(shell.instance.id.encode()).hexdigest()[:6]

    async def _local_environment(self, shell: NodeShell) -> Prepared:
        """Give the interpreter of the image's environment; made once, however many nodes wait for it."""
        ops = [op for op in self._ops if op.scope == "environment"]
        for op in self._ops:
            if op.scope != "environment":
                self._reporting.publish(
                    events.BootstrapConsole(line=f"not run on this machine: {op}", instance=shell.info)
                )
        if not self._image.needs_environment and not ops:
            return Prepared(python=sys.executable, env={})
        if self._preparing is None:
            steps = (*image_steps(self._image), *map(op_step, ops))
            key = _environment_key(self._image, steps if ops else ())
            self._preparing = asyncio.ensure_future(
                in_thread(partial(prepare, key, steps, timeout=self._bootstrap_timeout, tell=self._tell_phase(shell)))
            )
        python = await asyncio.shield(self._preparing)
        return Prepared(python=str(python), env={"PYTHONPATH": str(runtime_directory())})

    def _tell_phase(self, shell: NodeShell) -> Any:
        def tell(phase: str, event: Any) -> None:
            self._reporting.publish(events.BootstrapPhase(phase=phase, event=event, instance=shell.info))

        return tell

    def _config(self, shell: NodeShell, prepared: Prepared) -> dict[str, Any]:
        python = prepared.python
        env = {**self._image.env, **prepared.env}
        lanes = []
        for lane, rank, _ in self.lanes:
            command = LaunchCommand(
                argv=(python, "-P", "-m", "skyward.node.worker"), env={**env, **self._devices(rank)}
            )
            context = LaunchContext(cluster=self.cluster, node=shell.index, rank=rank, lane=lane)
            command = hooks.launch_command(self._spec.plugins, command, context)
            lanes.append(
                {
                    "argv": list(command.argv),
                    "env": dict(command.env),
                    "facts": facts_of(evolve(shell.info, worker=rank)),
                }
            )
        app_host = None
        if hooks.implements(self._spec.plugins, "around_app"):
            app_host = {"argv": [python, "-P", "-m", "skyward.node.app_host"], "env": env}
        return {
            "mark": self._mark(shell),
            "slots": self._worker.threads_per_process,
            "reuse_processes": self._worker.reuse_processes,
            "lanes": lanes,
            "app_host": app_host,
        }

    def _devices(self, rank: int) -> Mapping[str, str]:
        """Show a rank the accelerators that are its own."""
        if self._worker.per_node != "accelerator":
            return {}
        return {"CUDA_VISIBLE_DEVICES": str(rank), "SKYWARD_DEVICE": str(rank)}


def _environment_key(image: Image, steps: tuple[Step, ...]) -> str:
    """Name an environment by what is in it: the image, and what plugins add to it."""
    tag = f"py{sys.version_info.major}.{sys.version_info.minor}-{image.content_hash()}"
    if not steps:
        return tag
    return f"{tag}-{hashlib.sha256(json.dumps([step.argv for step in steps]).encode()).hexdigest()[:8]}"


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
