"""
Whatever a cloud does, and in whatever order: each instance is terminated or reported, and no node has two.

The cloud answers late, twice or never, its lists lag and leave instances out, and what it terminates may stay.
"""

from __future__ import annotations

from itertools import count
from typing import Any

from attrs import Factory, define
from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from skyward.model.instances.machine import Instance, InstanceState, SSHAddress
from skyward.model.instances.tags import Tags
from skyward.plan.instances import instance_events as events
from skyward.plan.instances.instance_lifecycle import step, unended
from skyward.plan.instances.instance_list import LATE, ORPHANED_FOR, look_until
from skyward.plan.instances.instance_record import InstanceTable, Key, Phase
from tests.seeds import share

PATIENCE = 60.0


@define
class Machine:
    """An instance in the cloud's own books."""

    id: str
    token: str
    node: int
    state: InstanceState = InstanceState.PENDING
    shown_at: float = 0.0

    @property
    def row(self) -> Instance:
        """Return it as a list has it."""
        return Instance(
            id=self.id,
            node=self.node,
            provider="x",
            state=self.state,
            address=SSHAddress(host="10.0.0.1") if self.state is InstanceState.RUNNING else None,
            tags=Tags(pool_id="a1", token=self.token),
        )


@define
class Launch:
    """A request, and what it has rented; the answer is awaited until it is `over`."""

    token: str
    nodes: tuple[int, ...]
    machines: list[Machine] = Factory(list)
    assigned: list[int] = Factory(list)
    over: bool = False


class Lives(RuleBasedStateMachine):
    """Be a cloud that fails, and the rest of a pool, which does what it is asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.table = InstanceTable()
        self.now = 0.0
        self.numbers = count()
        self.machines: dict[str, Machine] = {}
        self.launches: list[Launch] = []
        self.nodes: dict[Key, int] = {}
        self.doomed: list[Key] = []
        self.billed: set[str] = set()

    @property
    def open_launches(self) -> list[Launch]:
        """List the launches whose answers are awaited."""
        return [one for one in self.launches if not one.over]

    def send(self, event: events.Event) -> None:
        """Take a step, and do what is asked for."""
        before = self.table
        self.table, commands = step(before, event)
        for command in commands:
            self._do(command, event, before)

    def _do(self, command: events.Command, event: events.Event, before: InstanceTable) -> None:
        match command:
            case events.Assign(instance):
                self._assigned(instance)
                self.nodes["x", instance.id] = instance.node
            case events.Surplus(instance):
                self._assigned(instance)
                self.send(events.Released(("x", instance.id)))
            case events.Gone(key) | events.NotRunning(key):
                self.release(key)
            case events.Bill(instance):
                assert ("x", instance.id) not in self.nodes
                self.billed.add(instance.id)
            case events.EndBill(key):
                self.billed.discard(key[1])
            case events.TerminateInstances(keys):
                assert keys
                if isinstance(event, events.Listed):
                    in_use = [key for key in keys if key in before.instances and before.instances[key].phase.of_node]
                    assert [] == in_use, "an instance with a node is terminated"
                self.doomed += keys

    def _assigned(self, instance: Instance) -> None:
        launch = next(one for one in self.launches if one.token == self.machines[instance.id].token)
        assert instance.node in launch.nodes
        assert instance.node not in launch.assigned, "more instances than were asked for"
        launch.assigned.append(instance.node)

    def release(self, key: Key) -> None:
        """Be done with a machine, once."""
        if self.nodes.pop(key, None) is not None:
            self.send(events.Released(key))

    @rule(nodes=st.sets(st.integers(0, 3), min_size=1))
    def ask(self, nodes: set[int]) -> None:
        """Ask for machines, maybe also for a node that waits for one already."""
        launch = Launch(f"t{next(self.numbers)}", tuple(sorted(nodes)))
        self.launches.append(launch)
        self.send(events.LaunchRequested(token=launch.token, cloud="a1", nodes=launch.nodes, rate=1.0, at=self.now))

    @precondition(lambda self: self.open_launches)
    @rule(data=st.data(), running=st.booleans(), lag=st.sampled_from([0.0, 3.0, LATE - 1.0]))
    def rent(self, data: Any, running: bool, lag: float) -> None:
        """Rent a machine for a launch: one may come twice, or for a node that nothing was asked for."""
        launch = data.draw(st.sampled_from(self.open_launches))
        state = InstanceState.RUNNING if running else InstanceState.PENDING
        node = data.draw(st.sampled_from([*launch.nodes, 9]))
        machine = Machine(f"i{next(self.numbers)}", launch.token, node, state, self.now + lag)
        launch.machines.append(machine)
        self.machines[machine.id] = machine

    @precondition(lambda self: self.open_launches)
    @rule(data=st.data(), heard=st.booleans())
    def answer(self, data: Any, heard: bool) -> None:
        """Answer a launch with what it has rented, in any order and maybe twice, or never."""
        launch = data.draw(st.sampled_from(self.open_launches))
        launch.over = True
        rows = tuple(data.draw(st.permutations([one.row for one in launch.machines])))
        if not heard:
            self.send(events.LaunchUnanswered(token=launch.token, at=self.now))
        elif rows:
            twice = rows[: data.draw(st.integers(0, 1))]
            self.send(events.LaunchAnswered(token=launch.token, instances=rows + twice, at=self.now))
        else:
            self.send(events.LaunchRefused(token=launch.token, at=self.now))

    @precondition(lambda self: self.machines)
    @rule(data=st.data(), state=st.sampled_from(InstanceState))
    def change(self, data: Any, state: InstanceState) -> None:
        """Have a machine boot, be reclaimed or end."""
        machine = data.draw(st.sampled_from([*self.machines.values()]))
        if machine.state is not InstanceState.ENDED:
            machine.state = state

    @rule(data=st.data(), later=st.sampled_from([0.5, 5.0, ORPHANED_FOR, PATIENCE]))
    def look(self, data: Any, later: float) -> None:
        """List the machines, but for some, a while later; those that ended may be listed or not."""
        self.now += later
        shown = [one for one in self.machines.values() if one.shown_at <= self.now]
        hidden = data.draw(st.sets(st.sampled_from([one.id for one in shown]), max_size=2)) if shown else set()
        self.listed(one.row for one in shown if one.id not in hidden)

    def listed(self, rows: Any) -> None:
        """Send a list."""
        self.send(events.Listed(cloud="a1", instances=tuple(rows), at=self.now, patience=PATIENCE))

    @precondition(lambda self: self.nodes)
    @rule(data=st.data(), what=st.sampled_from(["ready", "drain", "release"]))
    def go_on(self, data: Any, what: str) -> None:
        """Have a node be ready, drained, or done."""
        key = data.draw(st.sampled_from([*self.nodes]))
        match what:
            case "ready":
                self.send(events.BecameReady(key))
            case "drain":
                self.send(events.Reclaimed(key))
            case _:
                self.release(key)

    @precondition(lambda self: self.doomed)
    @rule(data=st.data(), done=st.booleans(), outcome=st.sampled_from(["confirmed", "refused", "failed"]))
    def terminate(self, data: Any, done: bool, outcome: str) -> None:
        """Have a termination answered: it may be done or not where it fails, and fails for sure where it is refused."""
        key = self.doomed.pop(data.draw(st.integers(0, len(self.doomed) - 1)))
        if done or outcome == "confirmed":
            self.machines[key[1]].state = InstanceState.ENDED
        if outcome == "confirmed":
            self.send(events.Terminated((key,)))
            return
        if outcome == "refused":
            self.send(events.TerminationRefused(key, "no"))
        self.send(events.TerminationFailed((key,), "no"))

    @invariant()
    def no_node_has_two(self) -> None:
        """A place has one instance, besides those that are drained."""
        phases = [
            one for one in self.table.instances.records() if one.phase.of_node and one.phase is not Phase.DRAINING
        ]
        assert len({one.node for one in phases}) == len(phases)
        assert {one.key for one in self.table.instances.records() if one.phase.of_node} == set(self.nodes)

    @invariant()
    def what_is_known_is_kept(self) -> None:
        """A machine that was assigned, billed or is being terminated has a record until its end is confirmed."""
        known = set(self.table.instances)
        assert set(self.nodes) <= known
        assert {("x", name) for name in self.billed} <= known
        assert set(self.doomed) <= known

    def teardown(self) -> None:
        """Leave the pool: what the cloud has then is terminated, or reported by name."""
        for launch in self.open_launches:
            launch.over = True
            self.send(events.LaunchUnanswered(token=launch.token, at=self.now))
        for key in list(self.nodes):
            self.release(key)
        self._finish()
        self.send(events.CloudLeft("a1"))
        self._last_look()
        while (until := look_until(self.table, "a1")) is not None and until > self.now:
            self.now = min(until, self.now + 2.0)
            self._last_look()
        there = {one.id for one in self.machines.values() if one.state is not InstanceState.ENDED}
        assert there <= set(unended(self.table, "a1"))
        assert not self.billed - set(unended(self.table, "a1"))

    def _last_look(self) -> None:
        self.listed(one.row for one in self.machines.values() if one.shown_at <= self.now)
        self._finish()

    def _finish(self) -> None:
        """Answer all terminations: some machines stay for good."""
        doomed, self.doomed = self.doomed, []
        for key in doomed:
            if int(key[1][1:]) % 5:
                self.machines[key[1]].state = InstanceState.ENDED
                self.send(events.Terminated((key,)))
            else:
                self.send(events.TerminationFailed((key,), "no"))


TestLives = Lives.TestCase
TestLives.settings = settings(max_examples=share(120, least=0.4), stateful_step_count=30)
