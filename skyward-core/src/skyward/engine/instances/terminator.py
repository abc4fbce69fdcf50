"""Terminate instances: those of nodes and orphans; one that its cloud does not terminate shuts itself down."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from attrs import evolve

from skyward.engine.calls.batches import BatchTurns
from skyward.errors import SkywardError
from skyward.model.instances.machine import InstanceState
from skyward.plan.instances.instance_events import (
    CloudLeft,
    Released,
    Terminated,
    TerminationFailed,
    TerminationRefused,
)
from skyward.plan.instances.instance_list import runs
from skyward.plan.instances.left_behind import left_behind, reason
from skyward.plan.offers.cloud_disk import disk_folder, disks_of

if TYPE_CHECKING:
    from skyward.engine.events.reporting import Reporting
    from skyward.engine.guardian.durable_records import Records
    from skyward.engine.instances.leaving import Leaving
    from skyward.engine.instances.pool_instances import PoolInstances
    from skyward.engine.instances.regions import Regions
    from skyward.engine.nodes.host import Host
    from skyward.engine.nodes.node_shell import NodeShell
    from skyward.model.instances.cluster import Cluster
    from skyward.model.instances.machine import Instance, ProviderFacts
    from skyward.model.spec.options import Options
    from skyward.plan.instances.instance_record import Key

_log = logging.getLogger(__name__)

BOOTING = 60.0
"""Seconds to wait for an instance that does not run yet, so that it can be asked to shut itself down."""

TOGETHER = 64
"""Nodes that begin to be terminated in one turn of the loop, which takes some milliseconds."""

_LOOK = 1.0
_LAST_LOOKS = 2.0


class Terminator:
    """
    Terminate what one pool has at one cloud; lives in the engine's loop.

    Args:
        cluster: The pool, whatever its offer.
        facts: What holds for the provider.
        options: How long things may take.
        instances: What is known of the pool's instances.
        regions: Ask the cloud.
        records: What journal and guardian know.
        reporting: Where events go.
        reach: Returns the host of a node's instance.
        linger: Leaves instances waiting for the next pool, or its nodes to another client.
    """

    def __init__(
        self,
        cluster: Cluster,
        facts: ProviderFacts,
        options: Options,
        instances: PoolInstances,
        regions: Regions,
        records: Records,
        reporting: Reporting,
        reach: Callable[[NodeShell], Host],
        linger: Leaving,
    ) -> None:
        self._cluster = cluster
        self._facts = facts
        self._options = options
        self._instances = instances
        self._regions = regions
        self._records = records
        self._reporting = reporting
        self._reach = reach
        self.linger = linger
        self._turns = BatchTurns(TOGETHER)

    async def end(self, shell: NodeShell, patience: float) -> str:
        """
        End a node and terminate its instance, unless that is to wait for the next pool.

        Args:
            shell: The node.
            patience: Seconds that it has to leave in good order.

        Returns:
            What could not be terminated, with ids; empty if all was.
        """
        kept = False
        try:
            await self._turns.take()
            kept = await self.linger.keep(shell, min(patience, self._options.shutdown_timeout))
        finally:
            if not kept:
                self._instances.send(Released(shell.rented.key))
        if kept:
            return ""
        try:
            await shell.end(min(patience, self._options.shutdown_timeout))
            await self._unmount(shell, patience)
        except Exception:
            # Whatever is wrong with the node, its instance is terminated.
            _log.exception("node.end_failed node=%s", shell.index)
        finally:
            trouble = await self._terminate(shell)
        return trouble

    async def end_orphans(self, keys: Sequence[Key]) -> None:
        """
        Terminate instances that no node has; harmless if there are none.

        Args:
            keys: The instances, as the table asked for it.

        Raises:
            SkywardError: If one may still exist.
        """
        if not keys:
            return
        ids = [name for _, name in keys]
        _log.warning("machines.orphaned provider=%s ids=%s", self._cluster.provider, ",".join(ids))
        try:
            await self._regions.end_anywhere(ids)
        except BaseException as error:
            self._failed(keys, error)
            raise
        self._instances.send(Terminated(tuple(keys)))

    async def close(self) -> str:
        """
        Terminate everything that the cloud still lists, and let the provider take down what all instances shared.

        Returns:
            What else may be left; empty if nothing is.

        Raises:
            LeftBehindError: If instances are left.
        """
        trouble, guardian = "", None
        self._instances.send(CloudLeft(self._cluster.pool_id))
        try:
            await self._end_all()
        except Exception as error:
            trouble = str(error)
            # A guardian ends whatever the pool has.
            await self.linger.give_up()
            guardian = await self._hand_over()
        else:
            await self._records.close()
        self._check(guardian)
        if trouble:
            name, provider = self._cluster.pool_name, self._cluster.provider
            return f"Something of pool {name!r} may still exist at {provider}: {trouble}"
        return ""

    async def abort(self) -> None:
        """
        Leave what is not terminated to the guardian, if there is one.

        Raises:
            LeftBehindError: If instances are left.
        """
        self._instances.send(CloudLeft(self._cluster.pool_id))
        self._check(await self._hand_over())

    async def _hand_over(self) -> int | None:
        """Leave to a guardian what may be left, and return which process that is; none where it would end too much."""
        if not self.linger.stays:
            return await self._records.hand_over()
        await self._records.close()
        return None

    def _check(self, guardian: int | None) -> None:
        """Raise what names the instances that are left; a guardian is the process that goes on terminating them."""
        if unended := self._instances.unended(self._cluster.pool_id):
            raise left_behind(unended, self._cluster, self._facts, guardian=guardian)

    async def _terminate(self, shell: NodeShell) -> str:
        """Terminate a node's instance, and return what may be left."""
        rented = shell.rented
        key, ids = rented.key, (rented.instance.id,)
        try:
            try:
                await self._regions.end(rented.blueprint.cluster, rented.infra, ids)
            except Exception as error:
                await self._shut_down(shell, error)
        except Exception as error:
            self._failed((key,), error)
            return f"{shell.where} may still exist: {error}"
        except asyncio.CancelledError as error:
            self._failed((key,), error)
            raise
        finally:
            await shell.let_go()
        self._instances.send(Terminated((key,)))
        self._records.ended(rented.token, rented.instance.id)
        return ""

    async def _unmount(self, shell: NodeShell, patience: float) -> None:
        """Flush a node's disks, so that they hold what was written; one that was lost is not asked."""
        folders = [disk_folder(one) for one in disks_of(self._cluster.spec.volumes)]
        if not folders or not patience or shell.host is None or not shell.was_ready:
            return
        if failed := await shell.host.unmount(folders):
            what = f"The disks of {shell.where} may lack what was written last: {failed}"
            self._reporting.error(what, fatal=False)

    def _failed(self, keys: Sequence[Key], error: BaseException) -> None:
        why = reason(error)
        if isinstance(error, asyncio.CancelledError):
            refusals = self._instances.unended(self._cluster.pool_id)
            why = refusals.get(keys[0][1], "Its end was not waited for.")
        self._instances.send(TerminationFailed(tuple(keys), why))

    async def _end_all(self) -> None:
        cloud = self._cluster.pool_id
        try:
            if (self._records.kept or self._instances.unended(cloud)) and self._regions.used:
                await self._end_listed()
                while (left := (self._instances.look_until(cloud) or 0.0) - self._instances.now()) > 0:
                    await asyncio.sleep(min(left, _LAST_LOOKS))
                    await self._end_listed()
            if not self.linger.any:
                self._records.settled()
        finally:
            # What finds and reaches the instances that are left goes with the last of them.
            if not self._instances.unended(cloud) and not self.linger.any:
                await self._regions.release()

    async def _end_listed(self) -> None:
        rows = await self._regions.listed()
        await self.end_orphans(self._instances.listed(self._cluster.pool_id, rows))

    async def _shut_down(self, shell: NodeShell, error: Exception) -> None:
        """Shut an instance down from the inside, as its cloud did not terminate it; raise the error if it stays."""
        rented, name = shell.rented, shell.rented.instance.id
        self._instances.send(TerminationRefused(rented.key, reason(error)))
        if not self._facts.end_command:
            raise error
        if shell.host is None:
            instance = await self._running(shell.instance)
            if instance is None:
                raise error
            shell.instance = instance
            shell.host = self._reach(shell)
        if not await shell.host.end_machine():
            raise error
        await self._regions.ended(rented.blueprint.cluster, rented.infra, (name,))
        self._reporting.error(f"{name} could not be ended, and has ended itself: {reason(error)}", fatal=False)

    async def _running(self, instance: Instance) -> Instance | None:
        """Wait until an instance runs, if it ever will."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + min(BOOTING, self._options.shutdown_timeout)
        while loop.time() < deadline:
            try:
                listed = await self._regions.listed()
            except SkywardError:
                return None
            row = next((one for one in listed if one.id == instance.id), None)
            if row is not None and row.state in (InstanceState.ENDING, InstanceState.ENDED):
                return None
            if row is not None and runs(row):
                return evolve(instance, state=row.state, address=row.address)
            await asyncio.sleep(_LOOK)
        return None
