"""An open pool: executes what `plan.pool.lifecycle` decides, and carries calls to its nodes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Iterable, Iterator, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from skyward.blocking import in_thread
from skyward.engine.calls.batches import post_in_parts
from skyward.engine.calls.broadcast_calls import broadcast
from skyward.engine.calls.call import Call
from skyward.engine.calls.call_failures import failure as answer
from skyward.engine.calls.call_making import CallMaker
from skyward.engine.calls.cancelling import Cancelling
from skyward.engine.calls.dispatch import Dispatch
from skyward.engine.calls.inherited_calls import InheritedCalls
from skyward.engine.calls.settling import finished, settled
from skyward.engine.events.reporting import Reporting
from skyward.engine.instances.autoscaling import Sizing
from skyward.engine.instances.clouds import Clouds
from skyward.engine.instances.drain import Drain
from skyward.engine.instances.launch_batches import Orders
from skyward.engine.instances.pool_instances import PoolInstances
from skyward.engine.instances.provisioning import Provisioning
from skyward.engine.instances.sick_machines import SickMachines
from skyward.engine.nodes.forwarding import Forwards
from skyward.engine.nodes.member import Member
from skyward.engine.nodes.membership import Membership
from skyward.engine.nodes.node_shell import NodeShell
from skyward.engine.nodes.silence import SilenceWatch
from skyward.engine.pool.event_loop import engine_loop
from skyward.engine.pool.kept_files import KeptFiles
from skyward.engine.pool.node_reports import NodeReports
from skyward.engine.pool.pool_record import NoRecord, PoolRecord
from skyward.engine.pool.snapshot import snapshot
from skyward.engine.pool.stopping import Stopping
from skyward.engine.pool.wholeness import Wholeness
from skyward.engine.source.shipping import Shipping
from skyward.engine.store.pool_store import PoolStore
from skyward.errors import PoolEndedError, ProvisionError, SkywardError
from skyward.model.instances.machine import LocalAddress
from skyward.plan.pool import lifecycle, lifecycle_events
from skyward.plan.pool.places import NodeStatus
from skyward.plan.pool.retry_policy import start_failure, worth_another_start

if TYPE_CHECKING:
    from skyward.engine.events.event_dispatcher import Dispatcher
    from skyward.engine.instances.meter import Meter
    from skyward.link.payload import Payload
    from skyward.model.spec.spec import Spec
    from skyward.pending import PendingFunction
    from skyward.plan.config.request import Request

_log = logging.getLogger(__name__)


class Running:
    """
    Run one pool, from its first machine to its last.

    Args:
        request: What the user asked for.
        spec: The spec that is tried.
        ids: Returns the pool's id, which is in names of directories and processes, and one for each cloud more.
        dispatcher: Where events go.
        meter: What counts the money.
        alternatives: Whether another spec is tried if this one cannot be had.
    """

    def __init__(
        self,
        request: Request,
        spec: Spec,
        ids: Iterator[str],
        dispatcher: Dispatcher,
        meter: Meter,
        *,
        alternatives: bool = False,
    ) -> None:
        self.engine = engine_loop()
        self.name = request.name
        self.options = request.options
        self.spec = spec
        self.reporting = Reporting(dispatcher, meter)
        self._shipping = Shipping(spec.image, lambda files: self.engine.post(self._send_files, files))
        trails = self.reporting.trails
        self.maker = CallMaker(
            self._shipping, self.options, lambda *it: self.engine.post(self.dispatch.send_input, *it), trails
        )
        self.instances = PoolInstances(self.reporting, self.options.provision_timeout)
        self.provisioning = Provisioning(self.engine, request, spec, next(ids), self.reporting, self.instances)
        self._nodes: dict[int, NodeShell] = {}
        caught_up = self.caught_up = self.reporting.caught_up
        self.inherited = InheritedCalls(self.engine, self.name, request.adopted, self._nodes.get, caught_up)
        known = self.inherited.members
        self.membership = Membership(self.provisioning.pool_id, joined=self.options.cluster, after=known)
        self._kept = KeptFiles(self.engine, self.provisioning.pool_id, self.name)
        self.dispatch = Dispatch(
            self.engine,
            pool=self.name,
            buffer=self.inherited.buffer(self.options.workers),
            observer=self.reporting,
            membership=self.membership.of,
        )
        self.cancel_soon = Cancelling(self.engine, self.dispatch.cancel).put
        self.store = PoolStore(self.engine, self.name, self.options, self.ready_shells, lambda: self.sizing.wake(1))
        parts = self.dispatch, self.inherited, self.reporting, self.membership, self._kept
        self._reports = NodeReports(*parts, self._on_notice, self._on_lost, self.store.said)
        self._state = lifecycle.initial(spec.nodes, self.options)
        self._lost: dict[int, NodeShell] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._usable: asyncio.Future[None] = self.engine.loop.create_future()
        self.whole = Wholeness(self.name, lambda: self._state, lambda: self.sizing.woken())  # noqa: PLW0108  # made below
        self.stopping = Stopping(self.name, self._usable, self.dispatch, self.reporting, self._stopped)
        meter.begin(self.provisioning.facts, spec.timeout, self.stopping.stop, dispatcher.publish)
        self.forwards = Forwards(
            self.engine, self.name, lambda target: self._nodes.get(self.check_node(target, "node") or 0)
        )
        self.reporting.ordered(spec.nodes.initial, self.engine.loop.time)
        self.sizing = Sizing(self, spec.nodes, request.options)
        again, error = self.reporting.delayed, lambda: self._start_error
        self._orders = Orders(self.options, lambda: self._state, error, self._spawn, self._launch, again)
        self._opening: asyncio.Task[Any] | None = None
        self._alternatives, self._closed = alternatives, False
        self._drains = Drain(
            self.dispatch, self.instances, lambda: self._state.closing, self._terminate_machine, self._step
        )
        self._silence = SilenceWatch(self.engine, self.options, self.dispatch, self.membership, self.reporting)
        self.clouds = Clouds(self.engine, request, self.provisioning, ids, self.reporting, self.instances, self._ended)
        self._sick = SickMachines(self.clouds.of)
        self.record: PoolRecord = NoRecord()

    # From the user's threads.

    @property
    def ranks(self) -> int:
        """Count the ranks of the ready nodes."""
        return self._state.ready_count * self.provisioning.ranks_per_node

    @property
    def ready_nodes(self) -> int:
        """Count the nodes that take calls."""
        return self._state.ready_count

    @property
    def slots(self) -> int:
        """Count the slots of the nodes that the pool is to have, or may grow to; cheap, and from any thread."""
        return self.sizing.most * self.provisioning.slots_per_node

    @property
    def instance_count(self) -> int:
        """Count the machines there are, ready or not."""
        return len(self.instances.shells)

    def submit(self, calls: Sequence[Call]) -> None:
        """Send calls on their way."""
        post_in_parts(self.engine.post, self.dispatch.submit, calls)
        if self.inherited.waits:
            # A plugin calls before the pool is open; its answer comes behind what the nodes have kept.
            self.engine.post(self._spawn, self.inherited.resume(self.ready_shells()))
        if not self._state.desired:
            # Not with the next tick: the first call has a pool of no nodes start.
            self.engine.post(self.sizing.look)

    def submit_broadcast(self, pending: PendingFunction[Any], sinks: Sequence[Any], number: int) -> list[Call]:
        """Send a call to every rank of the ready nodes; there is one sink for each rank, or one for all."""
        first = self.maker.call(pending, sinks[0], shared=True)
        first.broadcast = number
        ready: Future[list[Call]] = Future()
        ranks = self.provisioning.ranks_per_node
        self.engine.post(
            lambda: broadcast(first, sinks, ready, self.dispatch, self._state.ready, ranks, self.membership)
        )
        return ready.result()

    def cancel(self, calls: Iterable[Call]) -> None:
        """Stop calls; harmless for those that ended."""
        post_in_parts(self.engine.post, self.dispatch.cancel, list(calls))

    def credit(self, call: Call, items: int) -> None:
        """Allow a streaming call to send more items."""
        self.engine.post(self.dispatch.credit, call, items)

    def check_node(self, target: int | str | None, parameter: str = "target") -> int | None:
        """Find the node that a placement target means, as `lifecycle.place` does."""
        return lifecycle.place(self._state, target, parameter, self.name)

    # The pool's life, in the engine's loop.

    async def open(self) -> None:
        """
        Open the pool: get its nodes; `close` terminates them, also those of a pool that failed to open.

        Raises:
            SkywardError: If they cannot be had.
        """
        self._opening = asyncio.current_task()
        self.stopping.within(self.options.pool_deadline)
        await self.provisioning.open()
        self._step(lifecycle_events.Opened(self.inherited.places))
        await self._usable
        self.reporting.cluster_ready(self._state.ready_count)
        self.sizing.start()

    def break_off(self) -> None:
        """Stop getting nodes, if that is under way: what waits for it is woken when all was terminated."""
        if self._opening is not None and not self._usable.done():
            self._opening.cancel()

    async def close(self, patience: float) -> None:
        """
        Terminate every node; harmless when that is done.

        Args:
            patience: Seconds that nodes have to leave in good order.

        Raises:
            LeftBehindError: If machines are left that could not be ended.
        """
        if self._closed:
            return
        await self.record.pause()
        await self.dispatch.leave(f"The pool {self.name!r} is closed.")
        self.inherited.close(f"The pool {self.name!r} is closed.")
        self._silence.close()
        self.stopping.close()
        await self.forwards.close()
        await self.store.close()
        self._patience = patience
        self._orders.leave()
        await self.clouds.leave(patience)
        self._step(lifecycle_events.Closed())
        while self._tasks:
            await asyncio.wait(list(self._tasks))
        try:
            for failed in await self.clouds.close():
                self.reporting.error(failed, fatal=True)
        finally:
            self._closed = True
            await self.record.close(left=self.provisioning.linger.stays)
            self.maker.close()
            await in_thread(self._kept.close)
            await in_thread(self.reporting.emitted.close)
            self.whole.give_up("closed")

    async def abort(self, within: float) -> None:
        """Terminate every node within seconds; what takes longer is left to the guardian."""
        self._patience = 0.0
        await self.record.close(left=self.provisioning.linger.stays)
        for shell in self.instances.shells:
            shell.abort()
        await finished(self._tasks, within)
        await self.clouds.abort()

    def snapshot(self) -> dict[str, Any]:
        """Return what the pool is at this moment."""
        return snapshot(self._state, self.dispatch)

    async def refresh(self) -> None:
        """Restart every worker, and send what changed of the local modules."""
        changed = self._shipping.changed()
        await settled(self.dispatch)
        for files in changed:
            self._send_files(files)
        await asyncio.gather(*(node.refresh() for node in self._nodes.values() if node.link is not None))

    _patience = 5.0
    _start_error: SkywardError | None = None

    def _stopped(self, reason: str) -> None:
        """Stop the pool before it is left: terminate every node."""
        self._patience = 1.0
        self._orders.leave()
        self.whole.give_up(reason)
        self._step(lifecycle_events.Closed())

    def _ended(self, error: PoolEndedError) -> None:
        """Stop because another program ended the pool, unless it is being left anyway."""
        if not self._state.closing:
            self.stopping.ended(error)

    def _step(self, event: lifecycle_events.Event) -> None:
        self._state, commands = lifecycle.step(self._state, event)
        for command in commands:
            self._execute(command)
        self.whole.changed()

    def _execute(self, command: lifecycle_events.Command) -> None:
        match command:
            case lifecycle_events.Launch(nodes):
                self._orders.add(nodes)
            case lifecycle_events.Start(node):
                self._spawn(self._start(node))
            case lifecycle_events.Terminate(node, reason):
                self._spawn(self._terminate(node, reason))
            case lifecycle_events.Announce():
                if not self._usable.done():
                    self._usable.set_result(None)
            case lifecycle_events.GiveUp(reason):
                self._give_up(reason)

    def _spawn(self, coroutine: Coroutine[Any, Any, None]) -> None:
        task = self.engine.loop.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _give_up(self, reason: str) -> None:
        self.whole.give_up(reason)
        error = self._start_error or ProvisionError(reason, pool=self.name)
        if not self._usable.done():
            self._usable.set_exception(error)
        else:
            self.reporting.error(reason, fatal=True)
            why = f"The pool {self.name!r} has no nodes left: {reason}"
            self.dispatch.close(why if self._state.proven else answer(self.name, type(error).__name__, str(error)))

    async def _launch(self, nodes: tuple[int, ...]) -> None:
        self._step(lifecycle_events.Asked(nodes))
        self.sizing.asked(nodes)
        failed = await self.clouds.launch(
            nodes,
            lambda: [shell.instance for shell in self._nodes.values() if not shell.leaving],
            self._launched,
            elsewhere=lambda: self._state.usable and not self._state.closing,
        )
        for node, failure in failed.items():
            if isinstance(failure, PoolEndedError):
                self._ended(failure)
            else:
                self._start_failed(node, failure)

    def _launched(self, shell: NodeShell) -> None:
        if self.instances.is_surplus(shell):
            # Another machine took the place while this one was launching.
            self._spawn(self._terminate_machine(shell, "its place is taken"))
            return
        if not isinstance(shell.instance.address, LocalAddress):
            self.maker.go_far()
        self._nodes[shell.index] = shell
        if (before := self._lost.pop(shell.index, None)) is not None:
            self.reporting.replaced(before, shell)
        self._step(lifecycle_events.Launched(shell.index))

    async def _start(self, node: int) -> None:
        shell = self._nodes[node]
        shell.listener = self._reports
        provisioning = self.clouds.of(shell)
        try:
            await provisioning.start(shell, self._shipping.all())
        except Exception as error:
            # One that was terminated meanwhile says nothing of the machine that the node has now.
            if self._nodes.get(node) is not shell:
                return
            again = node in self._state.nodes and self._state.nodes[node].failures > 0
            self._start_failed(node, error, counts=provisioning.start_failed(shell, error, again=again))
            return
        if self._state.nodes.get(node) is None or self._state.nodes[node].status is not NodeStatus.STARTING:
            return
        self.membership.join(node, shell.info)
        self.sizing.started(node)
        self._step(lifecycle_events.Started(node))
        if self._state.nodes[node].status is NodeStatus.READY and shell.link is not None:
            # Before calls begin there: their events and counts need a known node.
            provisioning.ready(shell)
            self.store.node_ready()
            lanes, refs = self.provisioning.lanes, self.maker.refs
            self.dispatch.add(Member(node, shell.link, shell.where, lanes, shell.trust, refs))
            self._silence.watch(shell)
            self._depart(shell)

    def _start_failed(self, node: int, error: Exception, *, counts: bool = True) -> None:
        failed = self._start_error = start_failure(error)
        self.reporting.error(str(failed), fatal=False)
        again = self._state.usable or self.options.max_provision_attempts is not None or not self._alternatives
        final = counts and not worth_another_start(error, again=again, proven=self._state.proven)
        self._step(lifecycle_events.StartFailed(node, str(failed), final=final, counts=counts))

    async def _terminate(self, node: int, reason: str) -> None:
        shell = self._nodes.pop(node, None)
        try:
            self.dispatch.remove(node, reason)
        except Exception:
            # Whatever is wrong with the calls, the machine is terminated.
            _log.exception("node.remove_failed node=%s", node)
        self.membership.drop(node)
        self.inherited.lost(node, reason)
        if shell is not None:
            await self._terminate_machine(shell, reason)
        if not (self._state.nodes.get(node) and self._state.nodes[node].status is not NodeStatus.LEAVING):
            self._step(lifecycle_events.Ended(node))
        if node not in self._state.nodes:
            self.dispatch.forsake(node, reason)

    async def _terminate_machine(self, shell: NodeShell, reason: str) -> None:
        self.reporting.stopping(shell, reason)
        self.store.node_gone(shell)
        failed = await self.clouds.end(shell, self._patience)
        if failed:
            self.reporting.error(failed, fatal=True)
        else:
            self.reporting.destroyed(shell, reason)

    def _on_notice(self, shell: NodeShell, notice: dict[str, Any]) -> None:
        notice = self._sick.judged(shell, notice)
        self.reporting.noticed(shell, notice)
        shell.notice = notice if notice["certain"] else None
        self._depart(shell)

    def _depart(self, shell: NodeShell) -> None:
        """Replace a machine that is about to be reclaimed, or failed a check."""
        node = shell.index
        if shell.notice is None or self._nodes.get(node) is not shell or not self._state.is_ready(node):
            return
        self._lost[node] = self._nodes.pop(node)
        self.membership.drop(node)
        self._spawn(self._drains.begin(shell, shell.notice))

    def _on_lost(self, shell: NodeShell, why: str) -> None:
        if self._drains.lost(shell, why):
            return
        self.reporting.lost(shell, why)
        self.store.node_gone(shell)
        self._lost[shell.index] = shell
        self._step(lifecycle_events.Lost(shell.index, why))

    def ready_shells(self) -> list[NodeShell]:
        """List the nodes that take calls, the head first."""
        return [self._nodes[node] for node in self._state.ready if node in self._nodes]

    def _send_files(self, packed: Payload) -> None:
        for node in self._nodes.values():
            if node.link is not None:
                node.link.send_files(packed)

    @property
    def state(self) -> lifecycle.PoolState:
        """Return what the pool is at this moment."""
        return self._state

    def idle_nodes(self) -> tuple[int, ...]:
        """List the ready nodes that nothing runs on, but for that of the store, which would be lost with it."""
        ready = (index for index in self._state.ready if self.dispatch.idle(index) and self.inherited.idle(index))
        return tuple(index for index in ready if index != self.store.node)

    def change_size(self, desired: int) -> None:
        """Set another number of nodes; idle ones go first."""
        self._step(lifecycle_events.Resized(desired, self.idle_nodes()))
