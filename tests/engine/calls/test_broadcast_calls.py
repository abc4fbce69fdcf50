"""A broadcast begins everywhere or nowhere, in one order, and its ranks know each other; on virtual time."""

from __future__ import annotations

import asyncio

import pytest

from skyward.engine.calls.broadcast_calls import broadcast
from skyward.errors import NodeLostError, PoolClosedError
from tests.simulated.node import Task
from tests.simulated.plan import HANGS, SPENT, Plan, raises, returns
from tests.simulated.stage import Stage


def place(task: Task) -> Plan:
    """Return node and lane after a second."""
    return returns((task.node, task.lane), 1.0)


def test_every_rank_of_every_node_gets_one_call() -> None:
    """In the order of nodes and ranks, whatever the order of answers."""
    with Stage([1, 1], [1, 1], ranks=2, script=place) as stage:
        calls = stage.broadcast()
        stage.run()
        sink = calls[0].sink
        answers = {index: answer.value() for (index, _), answer in zip(sink.ends, sink.answers, strict=True)}
        assert {0: (0, 0), 1: (0, 1), 2: (1, 0), 3: (1, 1)} == answers


def test_ranks_share_number_and_members() -> None:
    """Another broadcast has another number, a call that is none has 0."""
    with Stage([1], [1]) as stage:
        stage.broadcast(returns(1))
        stage.broadcast(returns(2))
        stage.send(returns(3))
        stage.run()
        first, second = ([task.broadcast for task in node.begun if task.broadcast] for node in stage.nodes.values())
        assert first == second
        assert 2 == len(set(first))
        assert {0} == {task.broadcast for node in stage.nodes.values() for task in node.begun} - set(first)
        assert 1 == len({task.members for node in stage.nodes.values() for task in node.begun})


def test_it_begins_everywhere_at_once() -> None:
    """Where one node is busy, the free ones wait with it."""
    with Stage([1], [1], [1]) as stage:
        stage.send(returns("held", 5.0), node=1)
        stage.broadcast(returns("all"))
        stage.run(4.0)
        assert [0, 1, 0] == [len(node.begun) for node in stage.nodes.values()]
        stage.run(2.0)
        assert 1 == len({node.begun[-1].began for node in stage.nodes.values()})


def test_nothing_overtakes_it() -> None:
    """Neither calls for any node nor those for one."""
    with Stage([1], [1]) as stage:
        stage.send(returns("held", 5.0), node=1)
        stage.broadcast(returns("all"))
        later = [stage.send(returns("later")), stage.send(returns("later"), node=0)]
        stage.run(4.0)
        assert [] == stage.nodes[0].begun
        stage.run()
        assert ["later"] * 2 == [call.sink.outcome for call in later]
        assert all(node.begun[-1].attempt == 1 for node in stage.nodes.values())


def test_two_broadcasts_do_not_wait_for_each_other() -> None:
    """All nodes begin with the same one."""
    with Stage([1], [1]) as stage:
        for _ in range(5):
            stage.broadcast(HANGS, timeout=1.0)
        stage.run()
        one, other = ([task.broadcast for task in node.begun] for node in stage.nodes.values())
        assert one == other
        assert 5 == len(one)


def test_no_rank_is_tried_again_alone() -> None:
    """A broadcast begins as a whole, whatever its calls may."""
    with Stage([1], [1]) as stage:
        calls = stage.broadcast(raises(ValueError()), retries=3, interruptions=3)
        stage.run()
        assert ["ValueError"] * 2 == calls[0].sink.outcomes
        lost = stage.broadcast(HANGS, interruptions=3)
        stage.run(1.0)
        stage.nodes[1].lose()
        stage.run(1.0)
        assert ["NodeLostError"] == lost[0].sink.outcomes


def test_ranks_of_a_spent_worker_are_not_tried_again_alone() -> None:
    """Who sent the broadcast begins it again."""
    with Stage([1], [1]) as stage:
        calls = stage.broadcast(SPENT)
        stage.run()
        assert ["WorkerSpentError"] * 2 == calls[0].sink.outcomes
        assert [1, 1] == [len(node.begun) for node in stage.nodes.values()]


@pytest.mark.parametrize("goes", ["lost", "leaves"])
def test_a_node_that_goes_before_it_began_ends_all_of_it(goes: str) -> None:
    """None that comes later takes a place in it."""
    with Stage([1], [1]) as stage:
        stage.send(returns("held", 5.0), node=0)
        calls = stage.broadcast(returns("all"))
        stage.run(1.0)
        if goes == "lost":
            stage.nodes[1].lose()
        else:
            stage.leave(1)
        stage.add([1], index=1)
        stage.run()
        assert ["NodeLostError"] * 2 == calls[0].sink.outcomes
        assert [] == stage.nodes[1].begun
        assert "good" == stage.outcome(returns("good"), node=0)


def test_a_queued_one_is_cancelled_as_a_whole() -> None:
    """What waits behind it comes next."""
    with Stage([1], [1]) as stage:
        holding = stage.send(returns("held", 5.0), node=1)
        calls = stage.broadcast(returns("all"))
        behind = stage.send(returns("behind"))
        stage.run(1.0)
        stage.dispatch.cancel(calls)
        stage.run(1.0)
        assert (["CancelledError"] * 2, "behind") == (calls[0].sink.outcomes, behind.sink.outcome)
        stage.run()
        assert "held" == holding.sink.outcome


def test_a_rank_that_is_cancelled_before_it_began_takes_no_other_along() -> None:
    """As when the first of its streams is closed: it begins with the others, and ends at once."""
    with Stage([1], [1]) as stage:
        stage.send(returns("held", 5.0), node=1)
        sinks = [stage.heard(), stage.heard()]
        calls = stage.broadcast(HANGS, sink=sinks[0], timeout=3.0)
        calls[1].sink = sinks[1]
        stage.run(1.0)
        stage.dispatch.cancel(calls[:1])
        stage.run()
        assert (["CancelledError"], ["TaskTimeoutError"]) == tuple(sink.outcomes for sink in sinks)
        assert (0, 0) == (stage.dispatch.running, stage.dispatch.queued)


def test_ranks_that_are_cancelled_one_by_one_before_they_began_wait_for_nothing() -> None:
    """With the last of them all of it is over."""
    with Stage([1], [1]) as stage:
        stage.send(HANGS, node=1)
        calls = stage.broadcast(returns("all"))
        behind = stage.send(returns("behind"))
        for call in calls:
            stage.run(1.0)
            stage.dispatch.cancel([call])
        stage.run(1.0)
        assert (["CancelledError"] * 2, "behind") == (calls[0].sink.outcomes, behind.sink.outcome)


def _made(stage: Stage, sinks: int) -> list[int]:
    """Broadcast as a pool does, and give the index of each call."""
    first = stage.call(returns(1))
    made = stage.loop.create_future()
    broadcast(first, [first.sink] * sinks, made, stage.dispatch, stage.nodes, stage.ranks, stage.membership)
    return [call.index for call in made.result()]


def test_one_sink_takes_all_or_each_has_its_own() -> None:
    """Ranks that came since the sinks were counted get no call."""
    with Stage([1], [1], [1]) as stage:
        assert [0, 1, 2] == _made(stage, 1)
        assert [0, 1] == _made(stage, 2)
        stage.run()


def test_without_a_node_there_is_an_error_and_no_call() -> None:
    """That of the pool, if it is closed."""
    with Stage() as stage:
        with pytest.raises(NodeLostError, match="no ready node to broadcast to"):
            _made(stage, 1)
        stage.dispatch.close("The pool 'train' is closed.")
        with pytest.raises(PoolClosedError, match="'train' is closed"):
            _made(stage, 1)


def test_a_node_that_left_meanwhile_gets_no_call() -> None:
    """Those that are ready take part, numbered without gaps."""
    with Stage([1], [1]) as stage:
        stage.nodes[0].lose()
        stage.loop.run_until_complete(asyncio.sleep(0))
        assert [0] == _made(stage, 1)
        stage.run()
        assert 1 == len(stage.nodes[1].begun)
