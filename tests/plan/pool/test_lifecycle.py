"""What an event means for a pool and its nodes."""

from __future__ import annotations

from attrs import evolve
from hypothesis import given, strategies as st

from skyward.plan.pool.lifecycle import (
    Announce,
    Closed,
    Command,
    Ended,
    Event,
    GiveUp,
    Launch,
    Launched,
    Leaves,
    Lost,
    Opened,
    PoolState,
    Resized,
    Start,
    Started,
    StartFailed,
    Terminate,
    orders,
    step,
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


def test_pool_that_works_goes_on_without_a_node_that_cannot_be_replaced() -> None:
    """It is smaller, and not given up."""
    state, _ = _after(_open(attempts=1), Lost(1, "gone"), Ended(1))
    state, commands = _after(state, StartFailed(1, "no"), Ended(1))
    assert commands == [Terminate(1, "no")]
    assert state.desired == 1


def test_shrinking_takes_idle_nodes_first() -> None:
    """Then the highest places."""
    assert _after(_open(3), Resized(2, removable=(0,)))[1][0] == Terminate(0, "the pool was made smaller")
    assert _after(_open(3), Resized(2))[1][0] == Terminate(2, "the pool was made smaller")


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


_events = st.one_of(
    st.builds(Launched, st.integers(0, 3)),
    st.builds(Started, st.integers(0, 3)),
    st.builds(StartFailed, st.integers(0, 3), st.just("no"), st.booleans()),
    st.builds(Lost, st.integers(0, 3), st.just("gone")),
    st.builds(Ended, st.integers(0, 3)),
    st.builds(Leaves, st.integers(0, 3)),
    st.builds(Resized, st.integers(1, 4)),
)


@given(st.lists(_events, max_size=40))
def test_no_more_nodes_than_wanted_are_ever_asked_for(events: list[Event]) -> None:
    """Whatever happens, in whatever order; and after the close nothing is launched."""
    state, _ = _after(PoolState(desired=2, needed=1), Opened())
    for event in events:
        state, commands = step(state, event)
        staying = [node for node in state.nodes.values() if node.status is not NodeStatus.LEAVING]
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
        assert sum(held.status is not NodeStatus.LEAVING for held in state.nodes.values()) == state.staying
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
