"""
How the consoles put things: durations, counts, money, and the one line for an event.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Literal, TypeAlias

from attrs import frozen

from skyward.model.events.event import (
    BootstrapCompleted,
    BootstrapFailed,
    BootstrapPhase,
    BootstrapProgress,
    BootstrapStarting,
    ClusterDestroyed,
    ClusterReady,
    ClusterRequested,
    CostFinal,
    Error,
    InfraCreating,
    InstanceDestroyed,
    InstanceLaunching,
    InstanceLingers,
    InstancePreempted,
    InstanceProvisioned,
    InstanceReplaced,
    LaunchDelayed,
    Log,
    NodeReady,
    NodeRecovered,
    NodeSuspected,
    NodeUnhealthy,
    PoolStopping,
    SkywardEvent,
    TaskCompleted,
)
from skyward.model.instances.cost_report import Receipt, money
from skyward.plain import coloured_line, plain_text

__all__ = ["Line", "clean", "count", "lasted", "money", "several", "tell"]

Kind: TypeAlias = Literal["log", "note", "good", "warning", "error"]

# Longer tasks are worth a line of their own in an append-only log.
LONG_TASK_S = 1.0

_DOING: Final = ("booting", "preparing", "computing", "idle", "ending")

# An environment that was there already is not worth one.
WORTH_A_LINE_S = 0.1


@frozen
class Line:
    """
    Hold one line to show.

    Args:
        text: What is said.
        kind: How loud it is said.
        node: The node it concerns, if it is one.
        passing: Whether the live consoles show the same thing anyway.
    """

    text: str
    kind: Kind = "note"
    node: int | None = None
    passing: bool = False


def clean(text: str, *, colours: bool = False) -> str:
    """
    Return a line without what would move the cursor.

    Of a line that was overwritten with carriage returns, as progress bars do, the last writing is kept.

    Args:
        text: What user code wrote.
        colours: Whether colours stay.

    >>> clean("10 %\\r50 %\\r")
    '50 %'
    """
    if text.isascii() and text.isprintable():
        return text
    text = next((part for part in reversed(text.split("\r")) if part), "")
    return coloured_line(text) if colours else plain_text(text)


def count(number: float) -> str:
    """
    Return a number with its thousands apart.

    >>> count(12345), count(0.25), count(7.0)
    ('12,345', '0.2', '7')
    """
    if number >= 10 or number == int(number):
        return f"{number:,.0f}"
    return f"{number:.1f}"


def several(number: int, noun: str) -> str:
    """
    Return a number and its noun, in the plural where it is one.

    >>> several(1, "node"), several(1200, "node")
    ('1 node', '1,200 nodes')
    """
    return f"{count(number)} {noun}{'' if number == 1 else 's'}"


def lasted(seconds: float) -> str:
    """
    Return a duration as people read it.

    >>> lasted(0.0042), lasted(3.14), lasted(75), lasted(3700)
    ('4 ms', '3.1 s', '1:15', '1:01:40')
    """
    if seconds < 0.1:
        return f"{max(seconds, 0) * 1000:.0f} ms"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def tell(event: SkywardEvent) -> Line | None:
    """
    Return the line for an event, or None if it is worth none.

    >>> tell(NodeReady(node=2)).text
    'ready'
    """
    words = _WORDS.get(type(event))
    return words(event) if words is not None else None


def _log(event: Log) -> Line:
    return Line(event.line, "log", event.node)


def _requested(event: ClusterRequested) -> Line:
    nodes = getattr(event.spec, "nodes", None)
    desired = getattr(nodes, "initial", nodes)
    asked = f" with {several(desired, 'node')}" if isinstance(desired, int) else ""
    return Line(f"opening a pool{asked}", passing=True)


def _infrastructure(event: InfraCreating) -> Line:
    where = f" {event.region}" if event.region else ""
    return Line(f"preparing {event.provider}{where}", passing=True)


def _launching(event: InstanceLaunching) -> Line:
    kind = f" of type {event.instance_type}" if event.instance_type else ""
    having = f" with {event.accelerator}" if event.accelerator else ""
    where = f"{event.provider} {event.place}" if event.place else event.provider
    text = f"launching {several(event.count, 'instance')}{kind}{having} at {where}"
    if not event.price:
        return Line(text, passing=True)
    # What is about to be paid for is said by every console.
    text += (
        f", {'spot' if event.spot else 'on demand'} at {money(event.price)} an hour{' each' if event.count > 1 else ''}"
    )
    if event.next_best:
        text += f"; next: {'; '.join(event.next_best)}"
    return Line(text)


def _provisioned(event: InstanceProvisioned) -> Line:
    price = event.price_spot if event.spot else event.price_on_demand
    facts = [
        event.instance_id,
        event.instance_type,
        event.accelerator,
        "spot" if event.spot else None,
        event.ip,
        f"{money(price)} an hour" if price else None,
    ]
    return Line(f"runs: {', '.join(fact for fact in facts if fact)}", node=event.node, passing=True)


def _progress(event: BootstrapProgress) -> Line | None:
    # What a machine does that is not one of the usual phases may take its time.
    return Line(event.step, "note", event.instance.node if event.instance is not None else None, passing=True)


def _phase(event: BootstrapPhase) -> Line | None:
    if event.event == "started" or (event.event == "completed" and event.elapsed < WORTH_A_LINE_S):
        return None
    node = event.instance.node if event.instance is not None else None
    what = "bootstrap" if event.phase == "bootstrap" else f"bootstrap, {event.phase}"
    took = f" in {lasted(event.elapsed)}" if event.elapsed else ""
    return Line(f"{what}: {event.event}{took}", "error" if event.event == "failed" else "note", node, passing=True)


def _bootstrap_failed(event: BootstrapFailed) -> Line:
    node = event.instance.node if event.instance is not None else None
    return Line(f"bootstrap failed in {event.phase}: {event.error}", "error", node)


def _ready(event: ClusterReady) -> Line:
    return Line(f"ready: {several(event.nodes, 'node')} in {lasted(event.elapsed)}", "good", passing=True)


def _completed(event: TaskCompleted) -> Line | None:
    if not event.success:
        why = f": {event.error}" if event.error else ""
        if event.stopped:
            # Its error says no more than that.
            return Line(
                f"{event.function} was stopped after {lasted(event.duration)}", "note", event.node, passing=True
            )
        if event.again:
            later = f" in {lasted(event.retry_in)}" if event.retry_in else ""
            text = f"{event.function} is tried again{later}, after {lasted(event.duration)}{why}"
            return Line(text, "warning", event.node)
        return Line(f"{event.function} failed after {lasted(event.duration)}{why}", "error", event.node)
    if event.duration <= LONG_TASK_S:
        return None
    return Line(f"{event.function} returned after {lasted(event.duration)}", "note", event.node, passing=True)


def _preempted(event: InstancePreempted) -> Line:
    if not event.certain:
        return Line(f"may lose its instance: {event.reason}", "note", event.node)
    what = "lost its instance" if event.ends_at is None else "is about to lose its instance"
    return Line(f"{what}: {event.reason}", "warning", event.node)


def _suspected(event: NodeSuspected) -> Line:
    return Line(f"has been silent for {lasted(event.silent)}{_because(event.reason)}", "warning", event.node)


def _unhealthy(event: NodeUnhealthy) -> Line:
    what = "is replaced" if event.replaced else "may be ill"
    return Line(f"{what}: {event.reason}", "warning", event.node)


def _replaced(event: InstanceReplaced) -> Line:
    return Line(f"has a new instance: {event.new} in place of {event.old}", "note", event.node)


def _lingers(event: InstanceLingers) -> str:
    most = f", for {money(event.cost)} at most" if event.cost else ""
    return f"{event.instance_id} waits {lasted(event.seconds)} for the next pool{most}"


def _delayed(event: LaunchDelayed) -> Line:
    one = len(event.nodes) == 1
    what = f"{several(event.failures, 'start')} failed" if one else f"{len(event.nodes)} nodes could not be started"
    again = f"{what}{_because(event.reason)}"
    return Line(f"{again} (tried again in {lasted(event.retry_in)})", "warning", event.nodes[0] if one else None)


def _because(reason: str) -> str:
    return f": {reason}" if reason else ""


def _final(event: CostFinal) -> Line | None:
    if not event.total_cost:
        return None
    saved = event.savings_vs_ondemand
    less = f", {money(saved)} less than on demand" if saved > 0 else ""
    said = [f"cost {money(event.total_cost)} for {lasted(event.total_seconds)}{less}"]
    return Line("\n".join(said if event.receipt is None else [*said, *_receipt(event.receipt)]))


def _receipt(receipt: Receipt) -> Iterator[str]:
    """Yield the lines of a receipt, six at most."""
    if receipt.foreseen is not None:
        yield f"foreseen {money(receipt.foreseen)} for as long as timeout= allows"
    billed = sum(node.billed_seconds for node in receipt.nodes)
    having = Counter(node.accelerator for node in receipt.nodes if node.accelerator)
    which = ", ".join(f"{count(number)} with {accelerator}" for accelerator, number in having.most_common())
    yield f"billed {lasted(billed)} of {several(len(receipt.nodes), 'machine')}{f' ({which})' if which else ''}"
    yield "time " + ", ".join(f"{what} {lasted(receipt.spent(what))}" for what in _DOING)
    first = receipt.first_result
    if first is not None:
        phases = {"offers": first.offers, "launch": first.launch, "boot": first.boot, "bootstrap": first.bootstrap}
        phases |= {"agent": first.agent, "waiting": first.waiting, "first call": first.first_call}
        yield f"first result after {lasted(first.total)}: " + ", ".join(
            f"{phase} {lasted(seconds)}" for phase, seconds in phases.items()
        )
    if receipt.lingering:
        most = f", for {money(receipt.linger_cost)} more at most" if receipt.linger_cost else ""
        yield f"{several(receipt.lingering, 'machine')} waiting for the next pool for {lasted(receipt.linger_s)}{most}"
    left = [node.instance_id for node in receipt.nodes if not node.ended]
    if left:
        yield f"may still be billed: {', '.join(left)}"


_WORDS: Mapping[type[SkywardEvent], Callable[[Any], Line | None]] = {
    Log: _log,
    ClusterRequested: _requested,
    InfraCreating: _infrastructure,
    InstanceLaunching: _launching,
    InstanceProvisioned: _provisioned,
    BootstrapFailed: _bootstrap_failed,
    NodeReady: lambda event: Line("ready", "note", event.node, passing=True),
    NodeSuspected: _suspected,
    NodeRecovered: lambda event: Line(f"is heard again after {lasted(event.silent)}", "note", event.node),
    ClusterReady: _ready,
    TaskCompleted: _completed,
    InstancePreempted: _preempted,
    NodeUnhealthy: _unhealthy,
    InstanceReplaced: _replaced,
    LaunchDelayed: _delayed,
    PoolStopping: lambda event: Line(f"closing{_because(event.reason)}", passing=True),
    InstanceLingers: lambda event: Line(_lingers(event), node=event.node),
    InstanceDestroyed: lambda event: Line(f"{event.instance_id} has ended", node=event.node, passing=True),
    CostFinal: _final,
    ClusterDestroyed: lambda event: Line(f"closed after {lasted(event.elapsed)}", passing=True),
    Error: lambda event: Line(event.message, "error" if event.fatal else "warning"),
    BootstrapStarting: _phase,
    BootstrapProgress: _progress,
    BootstrapPhase: _phase,
    BootstrapCompleted: _phase,
}
