"""Terminate nodes and their machines; one that its cloud does not end shuts itself down, and a warning says so."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from attrs import evolve

from skyward.engine.calls.batches import BatchTurns
from skyward.errors import SkywardError
from skyward.model.instances.machine import InstanceState
from skyward.plan.instances.left_behind import left_behind

if TYPE_CHECKING:
    from skyward.engine.events.reporting import Reporting
    from skyward.engine.instances.launch import Launching
    from skyward.engine.nodes.host import Host
    from skyward.engine.nodes.node_shell import NodeShell
    from skyward.model.instances.cluster import Cluster
    from skyward.model.instances.machine import Instance, ProviderFacts
    from skyward.model.spec.options import Options

_log = logging.getLogger(__name__)

BOOTING = 60.0
"""Seconds that a machine is waited for that does not run yet, so that it can be told to end itself."""

TOGETHER = 64
"""Nodes that are begun to be given back in one turn of the loop, which takes some milliseconds."""

_LOOK = 1.0


class Terminator:
    """
    Terminate what one pool has; lives in the engine's loop.

    Args:
        cluster: The pool, whatever its offer.
        facts: What holds for the provider.
        options: How long things may take.
        launching: Ends machines.
        reporting: Where events go.
        reach: Says how the machine of a node is reached.
    """

    def __init__(
        self,
        cluster: Cluster,
        facts: ProviderFacts,
        options: Options,
        launching: Launching,
        reporting: Reporting,
        reach: Callable[[NodeShell], Host],
    ) -> None:
        self._cluster = cluster
        self._facts = facts
        self._options = options
        self._launching = launching
        self._reporting = reporting
        self._reach = reach
        self._unconfirmed: list[NodeShell] = []
        self._turns = BatchTurns(TOGETHER)

    async def end(self, shell: NodeShell, patience: float) -> str:
        """
        End a node and give its machine back.

        Args:
            shell: The node.
            patience: Seconds that it has to leave in good order.

        Returns:
            What could not be given back, with ids; empty if all was.
        """
        try:
            await self._turns.take()
            await shell.end(min(patience, self._options.shutdown_timeout))
        except Exception:
            # Whatever is wrong with the node, its machine is given back.
            _log.exception("node.end_failed node=%s", shell.index)
        finally:
            trouble = await self._end_machine(shell)
        return trouble

    async def _end_machine(self, shell: NodeShell) -> str:
        try:
            await self._launching.end(shell.rented, partial(self._told_to_end, shell))
        except Exception as error:
            self._unconfirmed.append(shell)
            return f"{shell.where} may still exist: {error}"
        except asyncio.CancelledError:
            self._launching.unended.setdefault(shell.instance.id, "Its end was not waited for.")
            raise
        finally:
            await shell.let_go()
        return ""

    async def close(self) -> str:
        """
        End what is left of the pool's machines, and let the provider take down what all shared.

        Returns:
            What else may be left; empty if nothing is.

        Raises:
            LeftBehindError: If machines are left.
        """
        trouble, guardian = "", None
        try:
            await self._launching.close()
        except Exception as error:
            trouble = str(error)
            guardian = await self._launching.hand_over()
        self.check(guardian)
        if trouble:
            name, provider = self._cluster.pool_name, self._cluster.provider
            return f"Something of pool {name!r} may still exist at {provider}: {trouble}"
        if self._launching.billed:
            # None of them is on the provider's list any more.
            for shell in self._unconfirmed:
                self._reporting.destroyed(shell, "its end was confirmed when the pool was left")
        return ""

    async def abort(self) -> None:
        """
        Leave what is not given back to the guardian, if there is one.

        Raises:
            LeftBehindError: If machines are left.
        """
        self.check(await self._launching.hand_over())

    def check(self, guardian: int | None) -> None:
        """
        Tell which machines are left.

        Args:
            guardian: The process that goes on ending them, if there is one.

        Raises:
            LeftBehindError: If any is.
        """
        if self._launching.unended:
            raise left_behind(self._launching.unended, self._cluster, self._facts, guardian=guardian)

    async def _told_to_end(self, shell: NodeShell) -> bool:
        """Have a machine end itself, because its cloud does not."""
        if not self._facts.end_command:
            return False
        if shell.host is None:
            instance = await self._running(shell.instance)
            if instance is None:
                return False
            shell.instance = instance
            shell.host = self._reach(shell)
        return await shell.host.end_machine()

    async def _running(self, instance: Instance) -> Instance | None:
        """Wait until a machine runs, if it ever will."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + min(BOOTING, self._options.shutdown_timeout)
        while loop.time() < deadline:
            try:
                listed = await self._launching.regions.listed()
            except SkywardError:
                return None
            row = next((one for one in listed if one.id == instance.id), None)
            if row is not None and row.state in (InstanceState.ENDING, InstanceState.ENDED):
                return None
            if row is not None and row.state is InstanceState.RUNNING and row.address is not None:
                return evolve(instance, state=row.state, address=row.address)
            await asyncio.sleep(_LOOK)
        return None
