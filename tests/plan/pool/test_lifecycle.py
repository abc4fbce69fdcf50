"""What an event means for a pool and its nodes."""

from __future__ import annotations

from attrs import evolve
from hypothesis import given, strategies as st

from skyward.plan.pool.lifecycle import PoolState, orders, step, unasked
from skyward.plan.pool.lifecycle_events import (
    Announce,
    Asked,
    Closed,
    Command,
    Drains,
    Ended,
    Event,
    GiveUp,
    Launch,
    Launched,
    Leaves,
    Lost,
    Opened,
    Resized,
    Start,
    Started,
    StartFailed,
    Terminate,
    Vacated,
)
from skyward.plan.pool.places import NodeStatus


def _after(state: PoolState, *events: Event) -> tuple[PoolState, list[Command]]:
    commands: list[Command] = []
    for event in events:
        state, made = step(state, event)
        commands += made
    return state, commands


def _open(nodes: int = 2, **more: int) -> PoolState:
    events: list[Event] = [Opened()]
    for node in range(nodes):
        events += [Launched(node), Started(node)]
    return _after(PoolState(desired=nodes, needed=more.pop("needed", nodes), **more), *events)[0]


def test_pool_is_usable_when_enough_nodes_are_ready() -> None:
    """Not before, and announced once."""
    state, commands = _after(PoolState(desired=3, needed=2), Opened(), Launched(0), Launched(1), Started(1))
    assert commands == [Launch((0, 1, 2)), Start(0), Start(1)]
    state, commands = _after(state, Started(0), Launched(2), Started(2))
    assert commands == [Announce(), Start(2)]
    assert state.ready == (0, 1, 2)


def test_lost_node_is_terminated_then_replaced_at_its_place() -> None:
    """The machine is given back before the next is asked for."""
    state, commands = _after(_open(), Lost(0, "gone"))
    assert commands == [Terminate(0, "gone")]
    assert _after(state, Ended(0))[1] == [Launch((0,))]


def test_a_place_waits_for_the_machine_that_its_node_drains() -> None:
    """Only then it is asked for; not while the pool closes, and not where the place is wanted no more."""
    state, commands = _after(_open(), Drains(0))
    assert ([], (1,)) == (commands, state.ready)
    assert [Launch((0,))] == _after(state, Vacated(0))[1]
    assert [] == _after(_open(), Vacated(0))[1]
    assert Launch((0,)) not in _after(state, Closed(), Vacated(0))[1]
    assert Launch((0,)) not in _after(state, Resized(1), Vacated(0))[1]


def test_node_that_is_about_to_go_frees_its_place_at_once() -> None:
    """Only a ready one, and not while the pool closes."""
    state, commands = _after(_open(), Leaves(0))
    assert commands == [Launch((0,))]
    assert state.ready == (1,)
    assert _after(state, Leaves(0))[1] == []
    assert _after(_open(), Closed(), Leaves(0))[1][-1] == Terminate(1, "the pool is closing")


def test_start_that_fails_is_tried_again_a_few_times() -> None:
    """Then the pool is given up, and nothing more is asked for."""
    state, _ = _after(PoolState(desired=1, needed=1, attempts=2), Opened(), Launched(0))
    state, commands = _after(state, StartFailed(0, "no"))
    assert commands == [Terminate(0, "no"), Launch((0,))]
    state, commands = _after(state, Launched(0), StartFailed(0, "no"), Ended(0))
    assert commands == [Start(0), Terminate(0, "no"), GiveUp("no")]


def test_final_failure_is_not_tried_again() -> None:
    """A mistake of the user's stays one."""
    _, commands = _after(PoolState(desired=1, needed=1), Opened(), Launched(0), StartFailed(0, "bad", final=True))
    assert commands[-1] == GiveUp("bad")


def test_pool_that_works_keeps_its_size_however_often_a_start_fails() -> None:
    """The next attempt is ordered at once, at the same place; how long it waits is not decided here."""
    state, _ = _after(_open(attempts=1), Lost(1, "gone"), Ended(1))
    for failures in range(1, 20):
        state, commands = _after(state, Asked((1,)), StartFailed(1, "no"))
        assert commands == [Terminate(1, "no"), Launch((1,))]
        assert (2, failures) == (state.desired, state.nodes[1].failures)
    state, commands = _after(state, Asked((1,)), Launched(1), Started(1))
    assert (commands, state.ready, state.nodes[1].failures) == ([Start(1)], (0, 1), 0)


def test_pool_that_works_goes_on_without_a_node_where_that_is_asked_for() -> None:
    """After so many failures in a row it is smaller; without any node left it is given up."""
    state, _ = _after(_open(replacements=2), Lost(1, "gone"), Ended(1))
    state, commands = _after(state, StartFailed(1, "no"))
    assert (commands, state.desired) == ([Terminate(1, "no"), Launch((1,))], 2)
    state, commands = _after(state, StartFailed(1, "no"), Ended(1))
    assert (commands, state.desired) == ([Terminate(1, "no")], 1)
    state, commands = _after(state, Lost(0, "gone"), Ended(0), StartFailed(0, "no"), StartFailed(0, "no"))
    assert commands[-1] == GiveUp("no")


def test_pool_that_waits_for_its_nodes_waits_for_none_that_fails_again_and_again() -> None:
    """A broadcast begins again with those that can be had."""
    state, _ = _after(_open(3, attempts=2), Lost(2, "gone"))
    assert not state.whole
    state, _ = _after(state, Ended(2), StartFailed(2, "no"))
    assert (state.whole, state.late) == (False, 0)
    state, _ = _after(state, StartFailed(2, "no"))
    assert (state.whole, state.late, state.desired) == (True, 1, 3)
    state, _ = _after(state, Lost(0, "gone"), Lost(1, "gone"))
    assert not state.whole


def test_pool_that_starts_with_its_first_call_is_usable_without_a_node() -> None:
    """It asks for nothing; what fails before it has worked is given up as while a pool is opened."""
    state, commands = _after(PoolState(desired=0, needed=0, attempts=2), Opened())
    assert (commands, state.usable, state.whole) == ([Announce()], True, True)
    state, commands = _after(state, Resized(1), StartFailed(0, "no"), StartFailed(0, "no"))
    assert commands == [Launch((0,)), Terminate(0, "no"), Launch((0,)), Terminate(0, "no"), GiveUp("no")]
    state, commands = _after(PoolState(desired=0, needed=0), Opened(), Resized(1), Launched(0), Started(0), Resized(0))
    assert commands[-1] == Terminate(0, "the pool was made smaller")
    assert _after(state, Ended(0))[0].desired == 0


def test_shrinking_takes_idle_nodes_first() -> None:
    """Then the highest places, and the head last of all."""
    assert _after(_open(3), Resized(2, removable=(1,)))[1][0] == Terminate(1, "the pool was made smaller")
    assert _after(_open(3), Resized(2))[1][0] == Terminate(2, "the pool was made smaller")
    assert _after(_open(3), Resized(2, removable=(0,)))[1][0] == Terminate(2, "the pool was made smaller")


def test_shrinking_takes_what_no_cloud_is_asked_for_before_all_else() -> None:
    """Nothing was paid for it."""
    state, _ = _after(_open(1), Resized(4), Asked((2, 3)), Launched(3))
    assert [Terminate(1, "the pool was made smaller")] == _after(state, Resized(3))[1]


def test_machine_that_is_asked_for_and_not_wanted_is_wanted_again_before_another_is_asked_for() -> None:
    """A cloud cannot be stopped: what it answers is terminated, or takes its place after all."""
    state, commands = _after(_open(1), Resized(2), Asked((1,)), Resized(1))
    assert (commands, state.nodes[1].status) == ([Launch((1,))], NodeStatus.WITHDRAWN)
    assert _after(state, Resized(2))[1] == []
    assert _after(state, Resized(3))[1] == [Launch((2,))]
    assert _after(state, Resized(2), Launched(1))[1] == [Start(1)]
    late, commands = _after(state, Launched(1))
    assert commands == [Terminate(1, "it is not wanted any more")]
    assert _after(late, Ended(1), Resized(2))[1] == [Launch((1,))]
    none, commands = _after(state, StartFailed(1, "no"), Ended(1))
    assert (commands, list(none.nodes)) == ([Terminate(1, "no")], [0])


def test_shrinking_takes_nodes_that_are_not_ready_before_idle_ones() -> None:
    """A pool that grows and shrinks again keeps what works, whether or not that has anything to do."""
    state, _ = _after(_open(1), Resized(3), Launched(1))
    commands = step(state, Resized(1, removable=(0,)))[1]
    assert [Terminate(2, "the pool was made smaller"), Terminate(1, "the pool was made smaller")] == list(commands)


def test_growing_fills_free_places() -> None:
    """The lowest first."""
    assert _after(_open(2), Resized(4))[1] == [Launch((2, 3))]


def test_closing_terminates_every_node_there_is() -> None:
    """Also those that are launched too late."""
    state, _ = _after(PoolState(desired=2, needed=2), Opened(), Launched(0))
    state, commands = _after(state, Closed())
    assert {command.node for command in commands if isinstance(command, Terminate)} == {0, 1}
    assert _after(state, Launched(1), Ended(0))[1] == [Terminate(1, "the pool is closing")]


def test_machine_that_comes_too_late_for_its_place_is_given_back() -> None:
    """The node was told to leave while its machine was on its way."""
    state, _ = _after(PoolState(desired=2, needed=1), Opened(), Resized(1))
    assert _after(state, Launched(1))[1] == [Terminate(1, "it is not wanted any more")]


WANTED = {NodeStatus.LAUNCHING, NodeStatus.STARTING, NodeStatus.READY}

_events: st.SearchStrategy[Event] = st.one_of(
    st.builds(Launched, st.integers(0, 3)),
    st.builds(Started, st.integers(0, 3)),
    st.builds(StartFailed, st.integers(0, 3), st.just("no"), st.booleans()),
    st.builds(Lost, st.integers(0, 3), st.just("gone")),
    st.builds(Ended, st.integers(0, 3)),
    st.builds(Leaves, st.integers(0, 3)),
    st.builds(Drains, st.integers(0, 3)),
    st.builds(Vacated, st.integers(0, 3)),
    st.builds(Resized, st.integers(1, 4)),
    st.builds(lambda node: Asked((node,)), st.integers(0, 3)),
)


@given(st.lists(_events, max_size=40))
def test_no_more_nodes_than_wanted_are_ever_asked_for(events: list[Event]) -> None:
    """Whatever happens, in whatever order; and after the close nothing is launched."""
    state, _ = _after(PoolState(desired=2, needed=1), Opened())
    for event in events:
        state, commands = step(state, event)
        staying = [node for node in state.nodes.values() if node.status in WANTED]
        assert len(staying) <= 4
        for command in commands:
            if isinstance(command, Launch):
                assert all(state.nodes[node].status is NodeStatus.LAUNCHING for node in command.nodes)
    state, _ = step(state, Closed())
    assert not any(isinstance(command, Launch) for event in events for command in step(evolve(state), event)[1])


@given(st.lists(_events, max_size=40))
def test_counts_are_those_of_the_nodes(events: list[Event]) -> None:
    """They are kept along, and nothing is counted anew."""
    state, _ = _after(PoolState(desired=3, needed=1), Opened())
    for event in events:
        state, _ = step(state, event)
        ready = [node for node, held in state.nodes.items() if held.status is NodeStatus.READY]
        assert (tuple(ready), len(ready)) == (state.ready, state.ready_count)
        assert sum(held.status in WANTED for held in state.nodes.values()) == state.staying
        assert ready == [node for node in range(10) if state.is_ready(node)]


def test_nodes_that_are_lost_together_are_replaced_each_at_its_own_place() -> None:
    """Whichever machine is given back first: calls that wait for a node find it again."""
    state, _ = _after(_open(5), *(Lost(node, "gone") for node in (1, 2, 4)))
    state, commands = _after(state, Ended(4), Ended(1), Ended(2))
    assert [Launch((4,)), Launch((1,)), Launch((2,))] == commands
    assert (0, 1, 2, 3, 4) == tuple(state.nodes)


def test_machines_are_ordered_together_for_nodes_that_failed_as_often() -> None:
    """Others wait longer; those that are not wanted any more are left out."""
    state, _ = _after(PoolState(desired=4, needed=4), Opened(), Launched(2), StartFailed(2, "no"), Launched(3))
    assert {0: (0, 1), 1: (2,)} == orders(state, [2, 1, 0, 3, 0, 9])


class _Cloud:
    """
    Answer a pool as clouds do: late, in any order, with machines that may be lost, or not at all.

    Args:
        desired: Nodes of the pool.
    """

    def __init__(self, desired: int) -> None:
        self.state, commands = step(PoolState(desired=desired, needed=1), Opened())
        self.ordered: list[int] = []
        self.asked: list[int] = []
        self.machines: list[int] = []
        self.ending: list[int] = []
        self._carry_out(commands)

    def happens(self, event: Event) -> None:
        """Have the pool take an event."""
        self.state, commands = step(self.state, event)
        self._carry_out(commands)

    def _carry_out(self, commands: tuple[Command, ...]) -> None:
        for command in commands:
            match command:
                case Launch(nodes):
                    self.ordered += nodes
                case Terminate(node, _):
                    if node in self.machines:
                        self.machines.remove(node)
                    self.ending.append(node)

    def ask(self) -> None:
        """Send the requests whose pause is over, as the engine does."""
        wanted, self.ordered = unasked(self.state, self.ordered), []
        self.happens(Asked(wanted))
        self.asked += wanted

    def answer(self, draw: int, *, good: bool) -> None:
        """Answer one request: with a machine, or with none."""
        if self.asked:
            node = self.asked.pop(draw % len(self.asked))
            if good:
                self.machines.append(node)
                self.happens(Launched(node))
            else:
                self.happens(StartFailed(node, "there is none"))

    def fare(self, draw: int, *, good: bool) -> None:
        """Have one machine become a node, or be lost."""
        if self.machines:
            node = self.machines[draw % len(self.machines)]
            if good:
                self.happens(Started(node))
            elif self.state.is_ready(node):
                self.happens(Lost(node, "gone"))
            else:
                self.happens(StartFailed(node, "died"))

    def end(self, draw: int) -> None:
        """Confirm the end of one machine."""
        if self.ending:
            node = self.ending.pop(draw % len(self.ending))
            held = self.state.nodes.get(node)
            if held is None or held.status is NodeStatus.LEAVING:
                self.happens(Ended(node))

    def settle(self) -> None:
        """Have all go well that is under way."""
        for _ in range(100):
            while self.ending:
                self.end(0)
            self.ask()
            while self.asked:
                self.answer(0, good=True)
            for node in tuple(self.machines):
                self.happens(Started(node))


_steps = st.tuples(
    st.sampled_from(["ask", "granted", "refused", "ready", "lost", "ended", "resized"]), st.integers(0, 7)
)


@given(st.integers(1, 4), st.lists(_steps, max_size=80))
def test_there_are_never_more_machines_than_were_asked_for_and_in_the_end_as_many(
    desired: int, steps: list[tuple[str, int]]
) -> None:
    """However often starts fail, machines are lost, answers are late, and the size changes in between."""
    cloud, most = _Cloud(desired), desired
    for what, draw in steps:
        match what:
            case "ask":
                cloud.ask()
            case "granted" | "refused":
                cloud.answer(draw, good=what == "granted")
            case "ready" | "lost":
                cloud.fare(draw, good=what == "ready")
            case "ended":
                cloud.end(draw)
            case "resized":
                desired = draw % 4 + 1
                cloud.happens(Resized(desired))
        if cloud.state.desired == 0:
            # It never worked, and was given up.
            assert not cloud.state.proven
            return
        most = max(most, desired)
        assert len(cloud.asked) + len(cloud.machines) <= most
        assert sorted(cloud.asked) == sorted(set(cloud.asked))
    cloud.settle()
    assert (desired, desired) == (len(cloud.machines), cloud.state.ready_count)


def test_a_pool_that_is_attached_has_the_places_that_were_left() -> None:
    """Also where they are not the lowest: a node was lost before, and ranks stay where they are."""
    state, commands = _after(PoolState(desired=3, needed=3), Opened((0, 2)))
    assert commands == [Launch((0, 2))]
    assert (state.desired, state.needed, sorted(state.nodes)) == (2, 2, [0, 2])
