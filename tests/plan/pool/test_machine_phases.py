"""The phases of machines are made of the pool's events."""

from __future__ import annotations

from skyward.model.events import event as events
from skyward.model.instances.instance import InstanceInfo
from skyward.plan.pool.machine_phases import MachinePhase, MachinePhases, Moment

INFO = InstanceInfo(node=1, id="i-1")
FACTS = {"instance_id": "i-1", "node": 1, "spot": False, "provider": "cloud"}


def test_a_machine_goes_through_all_phases() -> None:
    """Each lasts until the next begins, and the end is a moment."""
    phases = MachinePhases()
    told = []
    for event in (
        events.InstanceRequested(node=1, at=1.0),
        events.InstanceLaunched(**FACTS, at=2.0),
        events.InstanceRunning(**FACTS, at=10.0),
        events.BootstrapStarting(instance_id="i-1", instance=INFO, at=12.0),
        events.BootstrapCompleted(instance_id="i-1", instance=INFO, at=20.0),
        events.NodeReady(node=1, instance=INFO, at=21.0),
        events.InstanceStopping(instance_id="i-1", node=1, at=50.0),
        events.InstanceDestroyed(instance_id="i-1", node=1, reason="the pool was left", at=55.0),
    ):
        told += phases.take(event)
    expected = [
        ("launch", 1.0, 2.0),
        ("boot", 2.0, 10.0),
        ("connect", 10.0, 12.0),
        ("bootstrap", 12.0, 20.0),
        ("start workers", 20.0, 21.0),
        ("ready", 21.0, 50.0),
        ("terminate", 50.0, 55.0),
    ]
    assert expected == [(phase.name, phase.began, phase.ended) for phase in told if isinstance(phase, MachinePhase)]
    assert Moment(1, "i-1", "terminated", 55.0, "the pool was left") == told[-1]
    assert [] == phases.close(60.0)


def test_a_machine_that_takes_a_place_is_another_one() -> None:
    """The one before may still be terminated when it is ready."""
    phases = MachinePhases()
    phases.take(events.NodeReady(node=1, instance=INFO, at=1.0))
    lost = events.InstancePreempted(node=1, instance_id="i-1", reason="reclaimed by the cloud", at=2.0)
    assert ["reclaimed"] == [each.name for each in phases.take(lost)]
    phases.take(events.InstanceStopping(instance_id="i-1", node=1, at=3.0))
    phases.take(events.NodeReady(node=1, instance=InstanceInfo(node=1, id="i-2"), at=4.0))
    assert {("i-1", "terminate"), ("i-2", "ready")} == {(phase.instance, phase.name) for phase in phases.close(5.0)}
