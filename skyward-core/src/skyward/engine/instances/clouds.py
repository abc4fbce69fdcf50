"""The clouds that a pool's machines are of: the one that it was opened on, and others where that one has none."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from skyward import plugin as hooks
from skyward.engine.instances.choosing import choose
from skyward.engine.instances.instance_watch import InstanceWatch
from skyward.engine.instances.provider_handle import ProviderHandle
from skyward.engine.instances.provisioning import Provisioning
from skyward.errors import AllProvidersFailedError, ProvisionError, SkywardError
from skyward.plan.instances.left_behind import together
from skyward.plan.offers.elsewhere import keeps
from skyward.plan.offers.tried import each
from skyward.plan.pool.retry_policy import start_failure, worth_another_start

if TYPE_CHECKING:
    from skyward.engine.events.reporting import Reporting
    from skyward.engine.instances.pool_instances import PoolInstances
    from skyward.engine.nodes.node_shell import NodeShell
    from skyward.engine.pool.event_loop import EngineLoop
    from skyward.errors import PoolEndedError
    from skyward.model.instances.machine import Instance
    from skyward.model.spec.spec import Spec
    from skyward.plan.config.request import Request

_log = logging.getLogger(__name__)

T = TypeVar("T")


class Clouds:
    """
    Launch, watch and terminate each instance of one pool at its own cloud; lives in the engine's loop.

    Args:
        engine: The loop.
        request: What the user asked for.
        home: Makes nodes at the cloud that the pool is opened on.
        ids: Gives an id for each further cloud, so that none takes another's machines for its own.
        reporting: Where events go.
        instances: What is known of the pool's instances.
        ended: Takes the error that says that another program ended the pool.
    """

    def __init__(
        self,
        engine: EngineLoop,
        request: Request,
        home: Provisioning,
        ids: Iterator[str],
        reporting: Reporting,
        instances: PoolInstances,
        ended: Callable[[PoolEndedError], None],
    ) -> None:
        self._engine = engine
        self._request = request
        self._home = home
        self._ids = ids
        self._reporting = reporting
        self._instances = instances
        self._ended = ended
        self._known: dict[str, Provisioning] = {}
        self._watches: dict[str, InstanceWatch] = {}
        self._opening = asyncio.Lock()
        self._kept: set[str] = set()
        self._searches: set[asyncio.Task[Any]] = set()
        self._left = False
        self._add(home)

    def of(self, shell: NodeShell) -> Provisioning:
        """Return what a node's machine was rented by."""
        return self._known[shell.blueprint.cluster.pool_id]

    async def launch(
        self,
        nodes: tuple[int, ...],
        staying: Callable[[], Sequence[Instance]],
        take: Callable[[NodeShell], None],
        *,
        elsewhere: Callable[[], bool],
    ) -> dict[int, SkywardError]:
        """
        Launch instances, at other clouds those that the pool's own has no capacity for.

        Args:
            nodes: The nodes that need one.
            staying: Gives the machines that the pool has already.
            take: Called with each node that got one, as soon as it is there.
            elsewhere: Returns whether other clouds may be asked now.

        Returns:
            The nodes that got none, and why.
        """
        failed = await self._launch(self._home.spec, nodes, staying(), take)
        reasons = {node: [(self._home.provider_name, error)] for node, error in failed.items()}
        if failed and elsewhere():
            for spec in await self._unless_left(self._others()) or ():
                if self._left or not elsewhere() or self._reporting.meter.exceeded is not None:
                    break
                failed = await self._launch(spec, tuple(failed), staying(), take)
                for node, error in failed.items():
                    reasons[node].append((error.provider or type(spec.provider).__name__, error))
                if not failed:
                    break
        return {node: self._joined(reasons[node]) for node in failed}

    async def end(self, shell: NodeShell, patience: float) -> str:
        """
        End a node and terminate its instance, after what its tasks wrote to volumes was written to their buckets.

        Args:
            shell: The node.
            patience: Seconds that it has to leave in good order.

        Returns:
            What could not be terminated, with ids; empty if all was.
        """
        cloud, patience = self.of(shell), patience if not shell.leaving else 0.0
        await cloud.volumes.detach(shell, patience)
        return await cloud.terminator.end(shell, patience)

    @property
    def unwritten(self) -> list[str]:
        """List what may be lost of what tasks wrote to volumes, a sentence each."""
        return [said for cloud in self._known.values() for said in cloud.volumes.unwritten]

    async def leave(self, patience: float) -> None:
        """Stop launching elsewhere, wait so many seconds for machine images, and decide which machines linger."""
        self._left = True
        for search in self._searches:
            search.cancel()
        await asyncio.gather(*(known.machine_images.settled(patience) for known in self._known.values()))
        await self._home.linger.begin()

    async def close(self) -> list[str]:
        """
        Terminate what is left of the pool's instances at all clouds.

        Returns:
            What else may be left, a sentence for each cloud.

        Raises:
            LeftBehindError: If machines are left that could not be ended.
        """
        await asyncio.gather(*(watch.close() for watch in self._watches.values()))
        return [failed for failed in await self._everywhere(lambda cloud: cloud.close()) if failed]

    async def abort(self) -> None:
        """
        Leave what is not terminated to the guardians that there are.

        Raises:
            LeftBehindError: If machines are left.
        """
        await self._everywhere(lambda cloud: cloud.terminator.abort())

    async def _everywhere(self, do: Callable[[Provisioning], Awaitable[T]]) -> list[T]:
        ended = await asyncio.gather(*map(do, self._known.values()), return_exceptions=True)
        if errors := [one for one in ended if isinstance(one, BaseException)]:
            raise together(errors)
        return [one for one in ended if not isinstance(one, BaseException)]

    def _add(self, provisioning: Provisioning) -> None:
        name = provisioning.pool_id
        self._known[name] = provisioning
        self._watches[name] = InstanceWatch(
            self._engine, provisioning, self._instances, self._request.options, ended=self._ended
        )

    async def _others(self) -> list[Spec]:
        """Return the specs that a node may be rented by besides the pool's own, in the order to try."""
        home = self._home.spec
        allowed = [spec for spec in self._request.specs if spec is not home and self._may(spec)]
        if not allowed:
            return []
        try:
            order = await choose((home, *allowed), self._request.options)
        except Exception as error:
            _log.warning("Other providers could not be compared, and are not asked: %s", start_failure(error))
            return []
        return [spec for spec in order if spec is not home]

    def _may(self, other: Spec) -> bool:
        """Return whether a node may be rented by another spec, and say once why not."""
        home = self._home.spec
        try:
            facts = ProviderHandle(other.provider).facts
        except SkywardError as error:
            name, why = type(other.provider).__name__, str(error)
        else:
            collective = hooks.topology(home.plugins, self._home.cluster).collective or bool(
                self._request.options.cluster
            )
            name, why = (
                facts.name,
                keeps(home, other, collective=collective, rents=facts.rents and self._home.facts.rents),
            )
        if why and name not in self._kept:
            self._kept.add(name)
            _log.warning(
                "Pool %r has no node at %s, although %s gives none now: %s.",
                self._request.name,
                name,
                self._home.provider_name,
                why,
            )
        return not why

    async def _launch(
        self, spec: Spec, nodes: tuple[int, ...], staying: Sequence[Instance], take: Callable[[NodeShell], None]
    ) -> dict[int, SkywardError]:
        taken: set[int] = set()

        def took(shell: NodeShell) -> None:
            taken.add(shell.index)
            watch = self._watches[shell.blueprint.cluster.pool_id]
            shell.on_unreachable = watch.doubt
            take(shell)
            watch.look()

        try:
            provisioning = self._of_spec(spec) or await self._unless_left(self._opened(spec))
            if provisioning is None:
                return dict.fromkeys(nodes, ProvisionError("The pool was left.", pool=self._request.name))
            return await provisioning.launch(nodes, staying, took)
        except Exception as error:
            return {node: start_failure(error) for node in nodes if node not in taken}

    async def _unless_left(self, search: Coroutine[Any, Any, T]) -> T | None:
        """Wait for what rents nothing yet; None if the pool is left meanwhile, which a cloud must not hold up."""
        task = asyncio.ensure_future(search)
        self._searches.add(task)
        task.add_done_callback(self._searches.discard)
        await asyncio.wait([task])
        return None if task.cancelled() else task.result()

    def _of_spec(self, spec: Spec) -> Provisioning | None:
        return next((known for known in self._known.values() if known.spec is spec), None)

    async def _opened(self, spec: Spec) -> Provisioning:
        """Return what makes nodes by a spec; two nodes that are replaced at once have the same."""
        async with self._opening:
            if (known := self._of_spec(spec)) is not None:
                return known
            provisioning = Provisioning(
                self._engine,
                self._request,
                spec,
                next(self._ids),
                self._reporting,
                self._instances,
                like=self._home.cluster,
            )
            self._reporting.meter.bill.follow(provisioning.facts)
            try:
                await provisioning.open()
            except BaseException:
                if failed := await provisioning.close():
                    self._reporting.error(failed, fatal=True)
                raise
            self._add(provisioning)
            return provisioning

    def _joined(self, reasons: Sequence[tuple[str, SkywardError]]) -> SkywardError:
        """Return one error for all the clouds that were asked."""
        if len(reasons) == 1 or not any(worth_another_start(error, again=True) for _, error in reasons):
            return reasons[0][1]
        failures = tuple((name, str(error)) for name, error in reasons)
        failure = AllProvidersFailedError(
            f"No provider could give a node of pool {self._request.name!r}: {each(failures)}",
            reasons=failures,
            pool=self._request.name,
        )
        failure.__cause__ = reasons[-1][1]
        return failure
