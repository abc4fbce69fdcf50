"""Turn what happens in a pool into events, only those that have a handler."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from attrs import evolve

from skyward.engine.events.emitted_events import EmittedEvents
from skyward.engine.events.trails import Trails
from skyward.engine.nodes.measured import Measured, of_all_gpus
from skyward.errors import ProtocolError
from skyward.link.messages import task_of
from skyward.model.events import event as events
from skyward.plan.instances.lingering import linger_cost

if TYPE_CHECKING:
    from skyward.engine.calls.answer import Answer
    from skyward.engine.calls.call import Call
    from skyward.engine.events.event_dispatcher import Dispatcher
    from skyward.engine.instances.meter import Meter
    from skyward.engine.nodes.node_shell import NodeShell
    from skyward.link.messages import LogLine

PROGRESS_INTERVAL = 0.1
"""Seconds between two progress events of one map."""

SHOWING = 1.0
"""Seconds for which a result waits for handlers to have what its call printed."""

CLOCK_OFF = 5.0
"""Seconds by which a node's clock may differ from the client's without a word."""

_NAME, _SENTENCE = 256, 2000
_STREAMS = {1: "stdout", 2: "stderr"}


class Reporting:
    """
    Publish events of one pool.

    Args:
        dispatcher: Where they go.
        meter: What counts the money.
    """

    def __init__(self, dispatcher: Dispatcher, meter: Meter) -> None:
        self._dispatcher = dispatcher
        self.meter = meter
        self._log = dispatcher.log
        self._infos: dict[int, Any] = {}
        self._order: set[int] = set()
        self._clock: Callable[[], float] = time.monotonic
        self._ordered = 0.0
        self._measured: dict[NodeShell, Measured] = {}
        self._busy: dict[NodeShell, tuple[str, float]] = {}
        self.trails = Trails()
        # Shows lines that a console holds back.
        self.shown: Callable[[], object] = bool
        self.emitted = EmittedEvents(dispatcher, partial(self.error, fatal=False))

    @property
    def pressed(self) -> bool:
        """Return whether the queue of handlers is so full that nothing more should be published."""
        return self._dispatcher.pressure

    def publish(self, event: events.SkywardEvent) -> None:
        """Publish any event of the pool's own."""
        self._dispatcher.publish(event)
        self.meter.bill.heard(event)

    # Tasks.

    def started(self, call: Call, node: int) -> None:
        """Report that a call began on a node."""
        self.meter.bill.task_started(call.id, node)
        self._log.began(call, node)
        if call.trail is not None:
            self.trails.started(call, node)
        if self._dispatcher.wants(events.TaskStarted):
            self._dispatcher.publish(
                events.TaskStarted(
                    task_id=str(task_of(call.id)),
                    function=call.function.name,
                    node=node,
                    instance=self._infos.get(node),
                )
            )

    def ended(self, call: Call, answer: Answer, *, again: bool = False, delay: float = 0.0) -> None:
        """Report that an attempt ended, whether another follows, and when."""
        self.meter.bill.task_ended(call.id, good=not answer.failed)
        self._log.ended(call, answer, again=again)
        if call.trail is not None:
            self.trails.ended(call, answer, again=again, delay=delay)
        if not self._dispatcher.wants(events.TaskCompleted):
            return
        self._dispatcher.publish(
            events.TaskCompleted(
                task_id=str(task_of(call.id)),
                function=call.function.name,
                node=answer.node,
                success=not answer.failed,
                duration=answer.seconds,
                error=answer.headline() if answer.failed else None,
                again=again,
                retry_in=delay if again else None,
                stopped=answer.failed and answer.stopped,
                instance=self._infos.get(answer.node) if answer.node is not None else None,
            )
        )

    def progress(self, label: str, total: int | None) -> Callable[[int], None]:
        """Return what reports how far a map or gather is, not too often."""
        if not self._dispatcher.wants(events.Progress):
            return lambda done: None
        last = 0.0
        # What takes long is measured from here, and not from its first result.
        self._dispatcher.publish(events.Progress(label=label, done=0, total=total))

        def report(done: int) -> None:
            nonlocal last
            now = time.monotonic()
            if done == total or now - last >= PROGRESS_INTERVAL:
                last = now
                self._dispatcher.publish(events.Progress(label=label, done=done, total=total))

        return report

    # Output.

    def lines(self, shell: NodeShell, stream: int, lines: list[LogLine]) -> None:
        """Report what a worker wrote."""
        self._log.lines(shell.index, stream, lines)
        if not self._dispatcher.wants(events.Log):
            return
        for call, text in lines:
            self._dispatcher.publish(
                events.Log(
                    line=text,
                    stream=_STREAMS.get(stream, "stdout"),  # type: ignore[arg-type]
                    node=shell.index,
                    task_id=str(task_of(call)) if call else None,
                    instance=shell.info,
                )
            )

    def caught_up(self) -> None:
        """Wait until handlers have all lines that were printed so far, but not for long."""
        if self._dispatcher.lines_waiting:
            self._dispatcher.flush(SHOWING)
        self.shown()

    def measured(self, shell: NodeShell, frame: dict[str, Any]) -> None:
        """Report what a node measured, and what it can't measure; nothing while handlers are behind."""
        if self.pressed:
            return
        rows = [(str(source), str(name), str(unit), float(value)) for source, name, unit, value in frame["values"]]
        if any(len(text) > _NAME for row in rows for text in row[:3]):
            raise ProtocolError(f"A node measured something whose name has more than {_NAME} characters.")
        for trouble in frame["troubles"]:
            self.publish(
                events.Error(
                    message=f"{shell.where}: {str(trouble)[:_SENTENCE]}",
                    instance_id=shell.instance.id,
                    instance=shell.info,
                )
            )
        if self._dispatcher.wants(events.Metric):
            for _, name, unit, value in (*rows, *of_all_gpus(rows)):
                self.publish(events.Metric(name=name, value=value, unit=unit, node=shell.index, instance=shell.info))
        if self._dispatcher.wants(events.Metrics):
            snapshot = self._measured.setdefault(shell, Measured()).snapshot(rows, time.monotonic())
            if snapshot:
                self.publish(self._of(events.Metrics, shell, **snapshot))

    # Nodes.

    def ordered(self, nodes: int, clock: Callable[[], float]) -> None:
        """
        Record the pool's first order.

        Args:
            nodes: How many nodes it is of.
            clock: Returns the time, in seconds.
        """
        self._order, self._clock, self._ordered = set(range(nodes)), clock, clock()

    def launched(self, shell: NodeShell) -> None:
        """Report that a machine is rented."""
        self.publish(events.InstanceLaunched(**self._facts(shell)))

    def busy(self, shell: NodeShell, doing: str) -> None:
        """Report what a machine does that does not run yet, such as to pull an image."""
        self._no_longer_busy(shell)
        self._busy[shell] = doing, time.monotonic()
        self.publish(events.BootstrapProgress(step=doing, instance_id=shell.instance.id, instance=shell.info))

    def waiting(self, shell: NodeShell, line: str) -> None:
        """Report that a machine does not answer yet: on its way to a node that is usual, afterwards it is trouble."""
        facts: dict[str, Any] = {"instance_id": shell.instance.id, "instance": shell.info}
        if shell.was_ready:
            self.publish(events.Error(message=line, **facts))
        else:
            self.publish(events.BootstrapProgress(step=line, **facts))

    def _no_longer_busy(self, shell: NodeShell) -> None:
        doing, since = self._busy.pop(shell, ("", 0.0))
        if doing:
            elapsed = time.monotonic() - since
            self.publish(events.BootstrapPhase(phase=doing, event="completed", elapsed=elapsed, instance=shell.info))

    def runs(self, shell: NodeShell) -> None:
        """Report that a machine runs and can be reached."""
        self._no_longer_busy(shell)
        facts = self._facts(shell)
        self.publish(events.InstanceRunning(**facts))
        self.publish(events.InstanceProvisioned(**facts))
        if shell.index not in self._order:
            return
        self._order.discard(shell.index)
        if not self._order:
            elapsed = self._clock() - self._ordered
            self.publish(events.ClusterProvisioned(nodes=shell.blueprint.cluster.nodes, elapsed=elapsed))

    @staticmethod
    def _facts(shell: NodeShell) -> dict[str, Any]:
        instance = shell.instance
        return {
            "instance": shell.info,
            "instance_id": instance.id,
            "node": shell.index,
            "spot": instance.spot,
            "provider": instance.provider,
            "ip": instance.ip,
            "instance_type": instance.instance_type,
            "accelerator": shell.blueprint.cluster.offer.accelerators,
            "price_on_demand": shell.info.on_demand_rate,
            "price_spot": shell.info.hourly_rate if instance.spot else None,
        }

    @contextlib.contextmanager
    def bootstrap(self, shell: NodeShell) -> Iterator[None]:
        """Report the beginning and the end of making a node's environment."""
        began = time.monotonic()
        facts: dict[str, Any] = {"instance_id": shell.instance.id, "instance": shell.info}
        self.publish(events.BootstrapRequested(instance=shell.info))
        self.publish(events.BootstrapStarting(**facts))
        try:
            yield
        except Exception as error:
            self.publish(events.BootstrapFailed(phase="bootstrap", error=str(error), instance=shell.info))
            raise
        self.publish(events.BootstrapCompleted(**facts, elapsed=time.monotonic() - began))
        self.publish(events.InstanceBootstrapped(node=shell.index, instance=shell.info))

    def preparing(self, shell: NodeShell, event: events.SkywardEvent) -> None:
        """
        Report the progress of a bootstrap.

        Args:
            shell: The node that is made.
            event: What happened; the instance is added.
        """
        if type(event) is events.BootstrapPhase and event.event == "started":
            event = events.BootstrapProgress(step=event.phase, instance_id=shell.instance.id, at=event.at)
        self.publish(evolve(event, instance=shell.info))

    def replaced(self, old: NodeShell, new: NodeShell) -> None:
        """Report that a node moved to another machine."""
        self.publish(
            events.InstanceReplaced(old=old.instance.id, new=new.instance.id, node=new.index, instance=new.info)
        )

    def delayed(self, nodes: tuple[int, ...], failures: int, seconds: float, error: Exception | None) -> None:
        """Report that nodes could not be started, and when they are asked for again."""
        reason = "" if error is None else str(error)
        self.publish(events.LaunchDelayed(nodes=nodes, failures=failures, retry_in=seconds, reason=reason))

    def node_ready(self, shell: NodeShell) -> None:
        """Report that a node takes calls."""
        self._infos[shell.index] = shell.info
        self.trails.ahead[shell.index] = shell.ahead
        self.publish(events.NodeReady(node=shell.index, instance=shell.info))
        if abs(shell.ahead) >= CLOCK_OFF:
            way = "ahead of" if shell.ahead > 0 else "behind"
            reason = f"its clock is {abs(shell.ahead):.1f} s {way} this computer's"
            self.publish(self._of(events.NodeUnhealthy, shell, check="clock", reason=reason))

    @staticmethod
    def readiness(shells: Iterable[NodeShell]) -> list[events.NodeReady]:
        """Return what says of nodes that are ready that they are, for what follows the pool only now."""
        return [events.NodeReady(node=shell.index, instance=shell.info) for shell in shells]

    def lost(self, shell: NodeShell, why: str) -> None:
        """Report that a node went away."""
        self.publish(self._of(events.InstancePreempted, shell, reason=why, cause=shell.lost_by))

    def suspected(self, shell: NodeShell, silent: float, reason: str) -> None:
        """Report that a node has been silent for so many seconds, and gets no new calls."""
        event = events.NodeSuspected(node=shell.index, silent=silent, reason=reason, instance=shell.info)
        self.publish(event)

    def recovered(self, shell: NodeShell, silent: float) -> None:
        """Report that a node is heard again after so many seconds."""
        self.publish(events.NodeRecovered(node=shell.index, silent=silent, instance=shell.info))

    def noticed(self, shell: NodeShell, notice: dict[str, Any]) -> None:
        """Report that a node is about to be lost, or may be: its machine is reclaimed, or failed a check."""
        certain = bool(notice["certain"])
        if "check" in notice:
            facts = {"check": notice["check"], "reason": notice["reason"], "replaced": certain}
            self.publish(self._of(events.NodeUnhealthy, shell, **facts))
            return
        ends_at = (notice.get("at") or time.time()) if certain else None
        facts = {"reason": notice["reason"], "certain": certain, "ends_at": ends_at, "cause": "notice"}
        self.publish(self._of(events.InstancePreempted, shell, **facts))

    def unreached(self, shell: NodeShell, sentence: str) -> None:
        """Report that a node does not reach another one any more."""
        self.publish(self._of(events.NodeUnhealthy, shell, check="network", reason=sentence))

    def stopping(self, shell: NodeShell, reason: str) -> None:
        """Report that a machine is being terminated."""
        self.publish(self._of(events.InstanceStopping, shell, reason=reason))

    def lingers(self, shell: NodeShell, seconds: float, rate: float) -> None:
        """Report that a machine waits for the next pool, for so many seconds at a rate in USD an hour."""
        cost = linger_cost(rate, seconds)
        self.publish(self._of(events.InstanceLingers, shell, seconds=seconds, cost=cost))

    def destroyed(self, shell: NodeShell, reason: str) -> None:
        """Report that a machine is terminated; of one that lingers, more is said once that is settled."""
        self._measured.pop(shell, None)
        self._busy.pop(shell, None)
        if shell.lingers:
            return
        self.publish(self._of(events.InstanceDestroyed, shell, reason=reason))

    def cluster_ready(self, nodes: int) -> None:
        """Report that the pool is usable."""
        self.publish(events.ClusterReady(nodes=nodes, elapsed=self._clock() - self._ordered))

    def error(self, message: str, *, fatal: bool) -> None:
        """Report a failure that has no caller to be raised at."""
        self.publish(events.Error(message=message, fatal=fatal))

    @staticmethod
    def _of(kind: Any, shell: NodeShell, **fields: Any) -> Any:
        return kind(node=shell.index, instance_id=shell.instance.id, instance=shell.info, **fields)
