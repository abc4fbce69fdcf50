"""From a spec to nodes that take calls, and back: launch, environment, agent, terminate."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import evolve

from skyward import plugin as hooks
from skyward.engine.environment import image_steps, prepare, runtime_directory
from skyward.engine.host import Host, Prepared
from skyward.engine.launching import Launching, Rented
from skyward.engine.local_host import LocalHost
from skyward.engine.loop import EngineLoop, in_thread
from skyward.engine.node_shell import NodeShell, facts_of
from skyward.engine.provider_handle import ProviderHandle
from skyward.engine.reporting import Reporting
from skyward.errors import PluginError, ProvisionError, SkywardError
from skyward.model import event as events
from skyward.model.cluster import Cluster, LaunchCommand, LaunchContext
from skyward.model.image import Image, check_python
from skyward.model.machine import Instance, LocalAddress, ProviderFacts, SSHAddress
from skyward.model.offer import Offer
from skyward.plan.bootstrap import Step, op_step

if TYPE_CHECKING:
    from skyward.link.payload import Payload
    from skyward.model.spec import Spec
    from skyward.plan.request import Request

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
        self._preparing: dict[str, asyncio.Task[Path]] = {}
        self._plugins_pickle = b""
        self._unconfirmed: list[NodeShell] = []
        self._launching = Launching(self._provider, self._any_offer(), request.options, reporting)

    @property
    def cluster(self) -> Cluster:
        """Describe the pool with the offer that is tried first."""
        return self._launching.first.cluster

    @property
    def ranks_per_node(self) -> int:
        """Count the ranks of each node."""
        return self.cluster.ranks_per_node

    @property
    def launching(self) -> Launching:
        """Rent and give back."""
        return self._launching

    @property
    def provider_name(self) -> str:
        """Name the provider."""
        return self._provider.name

    @property
    def facts(self) -> ProviderFacts:
        """Tell what holds for the provider."""
        return self._provider.facts

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
        await self._launching.open()
        self._plugins_pickle = _pickled(self._spec.plugins)

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
            shell = NodeShell(self._engine, node, rented, rented.blueprint.info(node, rented.instance))
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
            ProvisionError: If it can't be made ready.
        """
        await shell.running()
        shell.host = self._host(shell)
        self._reporting.runs(shell)
        with self._reporting.bootstrap(shell):
            prepared = await shell.while_there(shell.host.prepare())
        await shell.connect(self._config(shell, prepared), self._plugins_pickle, files)
        await shell.ready(max(self._bootstrap_timeout(shell.blueprint.image), START_TIMEOUT))

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
                await self._launching.end(shell.rented)
            except Exception as error:
                self._unconfirmed.append(shell)
                return f"{shell.where} may still exist: {error}"
        return ""

    async def close(self) -> str:
        """
        End what is left of the pool's machines, and let the provider take down what all shared.

        Returns:
            What could not be given back; empty if all was.
        """
        try:
            await self._launching.close()
        except Exception as error:
            return f"Something of pool {self._name!r} may still exist at {self._provider.name}: {error}"
        if self._launching.billed:
            # None of them is on the provider's list any more.
            for shell in self._unconfirmed:
                self._reporting.destroyed(shell, "its end was confirmed when the pool was left")
        return ""

    def _any_offer(self) -> Cluster:
        """Describe the pool before anything is chosen."""
        return Cluster(
            pool_id=self._pool_id,
            pool_name=self._name,
            spec=self._spec,
            offer=Offer(provider=self._provider.name, instance_type=""),
            provider=self._provider.name,
            nodes=self._spec.nodes.desired,
            worker=self._worker,
        )

    def _bootstrap_timeout(self, image: Image) -> float:
        return self._options.bootstrap_timeout or image.bootstrap_timeout

    def _host(self, shell: NodeShell) -> Host:
        """Choose how a machine is reached, by its address."""
        address = shell.instance.address
        if isinstance(address, LocalAddress):
            return LocalHost(
                self._engine,
                Path(address.directory),
                self._mark(shell),
                env={**os.environ, **shell.blueprint.image.env},
                prepare=partial(self._local_environment, shell),
            )
        if isinstance(address, SSHAddress):
            # Late, so that nobody who stays at home loads what SSH needs.
            from skyward.engine.ssh_host import Recipe, SSHHost
            from skyward.ssh.acceptance import faults

            recipe = Recipe(
                image=shell.blueprint.image,
                ops=shell.blueprint.ops,
                ttl=self._spec.ttl or 0.0,
                life=self._spec.timeout,
                end=self._provider.facts.end_command,
                timeout=self._bootstrap_timeout(shell.blueprint.image),
                tell=lambda event: self._reporting.publish(evolve(event, instance=shell.info)),
            )
            if self._provider.facts.rents:
                offer = shell.blueprint.cluster.offer
                recipe = evolve(recipe, faults=partial(faults, spec=self._spec, offer=offer))
            return SSHHost(self._engine, address, self._mark(shell), recipe)
        raise ProvisionError(f"{self._provider.name} gave an address that is not known: {address!r}.")

    def _mark(self, shell: NodeShell) -> str:
        """Name a node like no other, on whatever machine it is."""
        return f"{self._pool_id}-{shell.index}-{shell.rented.token[-6:]}"

    async def _local_environment(self, shell: NodeShell) -> Prepared:
        """Give the interpreter of the image's environment; made once, however many nodes wait for it."""
        blueprint = shell.blueprint
        ops = [op for op in blueprint.ops if op.scope == "environment"]
        for op in blueprint.ops:
            if op.scope != "environment":
                self._reporting.publish(
                    events.BootstrapConsole(line=f"not run on this machine: {op}", instance=shell.info)
                )
        if not blueprint.image.needs_environment and not ops:
            return Prepared(python=sys.executable, env={})
        steps = (*image_steps(blueprint.image), *map(op_step, ops))
        key = _environment_key(blueprint.image, steps if ops else ())
        if key not in self._preparing:
            timeout = self._bootstrap_timeout(blueprint.image)
            self._preparing[key] = asyncio.ensure_future(
                in_thread(partial(prepare, key, steps, timeout=timeout, tell=self._tell_phase(shell)))
            )
        python = await asyncio.shield(self._preparing[key])
        return Prepared(python=str(python), env={"PYTHONPATH": str(runtime_directory())})

    def _tell_phase(self, shell: NodeShell) -> Any:
        def tell(phase: str, event: Any) -> None:
            self._reporting.publish(events.BootstrapPhase(phase=phase, event=event, instance=shell.info))

        return tell

    def _config(self, shell: NodeShell, prepared: Prepared) -> dict[str, Any]:
        python = prepared.python
        env = {**shell.blueprint.image.env, **prepared.env}
        lanes = []
        for lane, rank, _ in self.lanes:
            command = LaunchCommand(
                argv=(python, "-P", "-m", "skyward.node.worker"), env={**env, **self._devices(rank)}
            )
            context = LaunchContext(cluster=shell.blueprint.cluster, node=shell.index, rank=rank, lane=lane)
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
            "metrics": self._metrics(shell.blueprint.image),
            # Elsewhere the watchdog ends a node, whatever becomes of its agent.
            "life": self._spec.timeout if isinstance(shell.instance.address, LocalAddress) else None,
            "notice": list(self._provider.facts.notice_command) if shell.instance.spot else [],
        }

    def _metrics(self, image: Image) -> list[dict[str, Any]]:
        """List what the agent is to measure."""
        return [one.to_dict() for one in image.metrics] if self._options.collect_metrics else []

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
