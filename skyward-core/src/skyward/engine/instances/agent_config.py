"""What the agents of a pool's nodes are started with: lanes, plugins, metrics, health checks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from attrs import evolve

from skyward import plugin as hooks
from skyward.engine.instances.health_setting import CHECK_PROCESS, health_setting
from skyward.engine.nodes.node_facts import facts_of
from skyward.errors import PluginError
from skyward.model.instances.cluster import LaunchCommand, LaunchContext
from skyward.model.instances.machine import LocalAddress
from skyward.plan.pool.default_checkpoints import checkpoint_folder
from skyward.plan.pool.suspicion import BEATS

if TYPE_CHECKING:
    from skyward.engine.instances.provider_handle import ProviderHandle
    from skyward.engine.nodes.host import Prepared
    from skyward.engine.nodes.node_shell import NodeShell
    from skyward.model.spec.image import Image
    from skyward.model.spec.options import Options
    from skyward.model.spec.spec import Spec


class AgentConfig:
    """
    Say what the agents of one pool are started with.

    Args:
        spec: What the pool is to be.
        options: What the user asked for besides.
        provider: Where its machines come from.
    """

    def __init__(self, spec: Spec, options: Options, provider: ProviderHandle) -> None:
        self._spec = spec
        self._options = options
        self._worker = options.workers
        self._provider = provider
        self._health: dict[str, Any] = {}
        self.plugins_pickle = b""

    def open(self) -> None:
        """
        Pickle what travels to every node alike.

        Raises:
            PluginError: If a plugin cannot be pickled.
            ConfigError: If the health check cannot be.
        """
        self.plugins_pickle = _pickled(self._spec.plugins)
        self._health = health_setting(self._options.health_checker)

    def lanes(self, ranks: int) -> tuple[tuple[int, int, int], ...]:
        """List the lanes of a node that has so many ranks: number, rank, slots."""
        processes = self._worker.processes_per_rank
        return tuple((lane, lane // processes, self._worker.threads_per_process) for lane in range(ranks * processes))

    def of(self, shell: NodeShell, prepared: Prepared, *, mark: str, ranks: int) -> dict[str, Any]:
        """
        Return what the agent of a node is started with.

        Args:
            shell: The node.
            prepared: What was made of its machine.
            mark: Its name, unique on any machine.
            ranks: How many ranks it has.
        """
        python = prepared.python
        env = {**shell.blueprint.image.env, **prepared.env}
        lanes = []
        for lane, rank, _ in self.lanes(ranks):
            command = LaunchCommand(
                argv=(python, "-P", "-m", "skyward.node.worker.worker"), env={**env, **self._devices(rank)}
            )
            context = LaunchContext(cluster=shell.blueprint.cluster, node=shell.index, rank=rank, lane=lane)
            command = hooks.launch_command(self._spec.plugins, command, context)
            lanes.append(
                {
                    "argv": list(command.argv),
                    "env": dict(command.env),
                    "facts": facts_of(
                        evolve(shell.info, worker=rank), checkpoints=checkpoint_folder(self._spec.volumes)
                    ),
                }
            )
        app_host = None
        if hooks.implements(self._spec.plugins, "around_app"):
            app_host = {"argv": [python, "-P", "-m", "skyward.node.agent.app_host"], "env": env}
        return {
            "mark": mark,
            "slots": self._worker.threads_per_process,
            "reuse_processes": self._worker.reuse_processes,
            "lanes": lanes,
            "app_host": app_host,
            "metrics": self._metrics(shell.blueprint.image),
            # Elsewhere the watchdog ends a node, whatever becomes of its agent.
            "life": self._spec.timeout if isinstance(shell.instance.address, LocalAddress) else None,
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
