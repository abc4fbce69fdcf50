"""What the machines of a pool do, from one event to the next: launch, boot, bootstrap, ready, terminate."""

from __future__ import annotations

from typing import NamedTuple

from attrs import define, field

from skyward.model.events import event as events

__all__ = ["MACHINES", "MachinePhases", "Moment", "MachinePhase"]

MACHINES: tuple[type[events.SkywardEvent], ...] = (
    events.InstanceRequested,
    events.InstanceLaunched,
    events.InstanceRunning,
    events.BootstrapStarting,
    events.BootstrapCompleted,
    events.NodeReady,
    events.NodeSuspected,
    events.NodeRecovered,
    events.NodeUnhealthy,
    events.InstancePreempted,
    events.InstanceStopping,
    events.InstanceDestroyed,
    events.InstanceLingers,
)
"""The events that tell it."""

_BEGINS: dict[type[events.SkywardEvent], str] = {
    events.InstanceLaunched: "boot",
    events.InstanceRunning: "connect",
    events.BootstrapStarting: "bootstrap",
    events.BootstrapCompleted: "start workers",
    events.NodeReady: "ready",
    events.InstanceStopping: "terminate",
}
_HAPPENS: dict[type[events.SkywardEvent], str] = {
    events.NodeSuspected: "silent",
    events.NodeRecovered: "heard again",
    events.NodeUnhealthy: "unhealthy",
    events.InstancePreempted: "reclaimed",
    events.InstanceDestroyed: "terminated",
    events.InstanceLingers: "lingers",
}
_LAST = (events.InstanceDestroyed, events.InstanceLingers)


class MachinePhase(NamedTuple):
    """
    Tell what a machine did for a time.

    Args:
        node: Its node.
        instance: The provider's name for it.
        name: What it did.
        began: When, in seconds.
        ended: Until when.
    """

    node: int
    instance: str
    name: str
    began: float
    ended: float


class Moment(NamedTuple):
    """
    Tell what happened to a machine.

    Args:
        node: Its node.
        instance: The provider's name for it.
        name: What happened.
        at: When, in seconds.
        reason: Why.
    """

    node: int
    instance: str
    name: str
    at: float
    reason: str


@define(eq=False)
class MachinePhases:
    """
    Make phases of events.

    >>> phases = MachinePhases()
    >>> phases.take(events.InstanceRequested(node=0, at=1.0))
    []
    >>> facts = {"instance_id": "i-1", "node": 0, "spot": False, "provider": "aws"}
    >>> [phase.name for phase in phases.take(events.InstanceLaunched(**facts, at=3.0))]
    ['launch']
    >>> [(phase.name, phase.ended) for phase in phases.close(9.0)]
    [('boot', 9.0)]
    """

    _asked: dict[int, float] = field(factory=dict, init=False)
    _open: dict[tuple[int, str], tuple[str, float]] = field(factory=dict, init=False)

    def take(self, event: events.SkywardEvent) -> list[MachinePhase | Moment]:
        """Take an event, and return the phase that it ends and what happened at this moment."""
        if isinstance(event, events.InstanceRequested):
            self._asked[event.node] = event.at
            return []
        node, instance = _machine(event)
        steps: list[MachinePhase | Moment] = []
        if isinstance(event, events.InstanceLaunched) and node in self._asked:
            steps.append(MachinePhase(node, instance, "launch", self._asked.pop(node), event.at))
        key, kind = (node, instance), type(event)
        if kind in _BEGINS or kind in _LAST:
            steps += self._end(key, event.at)
        if kind in _BEGINS:
            self._open[key] = _BEGINS[kind], event.at
        elif kind in _HAPPENS:
            reason = getattr(event, "reason", "")
            steps.append(Moment(node, instance, _HAPPENS[kind], event.at, reason))
        return steps

    def close(self, at: float) -> list[MachinePhase]:
        """Return what is under way, as far as it has come."""
        return [phase for key in list(self._open) for phase in self._end(key, at)]

    def _end(self, key: tuple[int, str], at: float) -> list[MachinePhase]:
        name, began = self._open.pop(key, ("", 0.0))
        return [MachinePhase(*key, name, began, at)] if name else []


def _machine(event: events.SkywardEvent) -> tuple[int, str]:
    """Return the node and the instance that an event is of."""
    info = event.instance
    node = getattr(event, "node", None)
    if node is None:
        node = info.node if info is not None else 0
    return int(node), getattr(event, "instance_id", "") or (info.id if info is not None else "")
