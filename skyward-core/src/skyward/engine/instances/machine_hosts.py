"""How the machines of a pool are reached and made ready, by their addresses."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import evolve

from skyward.engine.nodes.host import Host, HostAddress
from skyward.engine.nodes.local_environments import LocalEnvironments
from skyward.engine.nodes.local_host import LocalHost
from skyward.engine.nodes.upload_rates import Uploads
from skyward.errors import ProvisionError
from skyward.model.instances.machine import LocalAddress, SSHAddress

if TYPE_CHECKING:
    from skyward.engine.events.reporting import Reporting
    from skyward.engine.instances.provider_handle import ProviderHandle
    from skyward.engine.instances.recipe import Recipe
    from skyward.engine.nodes.node_shell import NodeShell
    from skyward.engine.pool.event_loop import EngineLoop
    from skyward.model.spec.image import Image
    from skyward.model.spec.options import Options
    from skyward.model.spec.spec import Spec
    from skyward.ssh.visits import KeptVisit


class MachineHosts:
    """
    Choose how the machines of one pool are reached.

    Args:
        engine: The loop.
        provider: Where they come from.
        spec: What the pool is to be.
        options: How long things may take.
        pool_id: The pool's id.
        reporting: Where events go.
        kept: The connection that was kept for the first node.
    """

    def __init__(
        self,
        engine: EngineLoop,
        provider: ProviderHandle,
        spec: Spec,
        options: Options,
        pool_id: str,
        reporting: Reporting,
        kept: KeptVisit,
    ) -> None:
        self._engine = engine
        self._provider = provider
        self._spec = spec
        self._options = options
        self._pool_id = pool_id
        self._reporting = reporting
        self._kept = kept
        self._local = LocalEnvironments(reporting, options.bootstrap_timeout)
        self._uploads = Uploads()

    def host(self, shell: NodeShell) -> Host:
        """Return how a machine is reached, by its address."""
        address: object = shell.instance.address
        if isinstance(address, LocalAddress):
            return LocalHost(
                self._engine,
                Path(address.directory),
                self.mark(shell),
                env={**os.environ, **shell.blueprint.image.env},
                prepare=partial(self._local.prepare, shell),
            )
        if isinstance(address, SSHAddress):
            # Late, so that a pool at home does not load what SSH needs.
            from skyward.engine.nodes.ssh_host import SSHHost

            return SSHHost(self._engine, address, self.mark(shell), self._recipe(shell))
        if isinstance(address, HostAddress):
            return address.make_host(self.mark(shell), self._recipe(shell))
        raise ProvisionError(f"{self._provider.name} gave an address that is not known: {address!r}.")

    def mark(self, shell: NodeShell) -> str:
        """Return a name of a node that is unique on any machine."""
        return shell.rented.mark(self._pool_id, shell.index)

    def timeout(self, image: Image) -> float:
        """Return how many seconds a machine has to be made ready."""
        return self._options.bootstrap_timeout or image.bootstrap_timeout

    def _recipe(self, shell: NodeShell) -> Recipe:
        """Return what becomes of a machine that is not this one."""
        from skyward.engine.instances.recipe import Recipe
        from skyward.ssh.acceptance import faults

        recipe = Recipe(
            image=shell.blueprint.image,
            ops=shell.blueprint.ops,
            ttl=self._spec.ttl or 0.0,
            life=shell.rented.life(self._spec.timeout, self._engine.loop.time()),
            before=shell.rented.before,
            resumed=shell.rented.resumed,
            end=self._provider.facts.end_command,
            timeout=self.timeout(shell.blueprint.image),
            tell=partial(self._reporting.preparing, shell),
            behind=lambda: self._reporting.pressed,
            unreachable=shell.on_unreachable,
            waiting=partial(self._reporting.waiting, shell),
            ssh_timeout=self._options.ssh_timeout,
            ssh_retry_interval=self._options.ssh_retry_interval,
            kept=self._kept,
        )
        if not self._provider.facts.rents:
            return recipe
        offer = shell.blueprint.cluster.offer
        return evolve(
            recipe,
            faults=partial(faults, spec=self._spec, offer=offer, image=shell.blueprint.image),
            uploads=self._uploads,
        )
