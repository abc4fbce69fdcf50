"""What operators give and raise, in the user's thread, with nodes that answer as scripted."""

from __future__ import annotations

import itertools
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, wait

import pytest
from attrs import evolve

import skyward as sky
from skyward.engine.calls import operations
from skyward.engine.calls.waiters import Stream
from skyward.plan.pool.retry_policy import RENEWALS
from tests.simulated import plan
from tests.simulated.node import Task
from tests.simulated.plan import HANGS, SPENT, Plan, dies, raises, returns
from tests.simulated.scripted_pool import ScriptedPool, idle
from tests.waiting import until

act = sky.function(plan.act)
act_and_yield = sky.function(plan.act_and_yield)
act_on_items = sky.function(plan.act_on_items)


@pytest.fixture
def pool() -> Iterator[ScriptedPool]:
    """Three nodes of one slot each."""
    with ScriptedPool([1], [1], [1]) as pool:
        yield pool


# One call.


def test_run_gives_the_value_or_raises_as_itself(pool: ScriptedPool) -> None:
    """However long it takes."""
    assert 7 == operations.run(pool, act(returns(7, 3600.0)))
    with pytest.raises(KeyError, match="x"):
        operations.run(pool, act(raises(KeyError("x"))))


def test_run_on_a_node(pool: ScriptedPool) -> None:
    """And no other."""
    for _ in range(4):
        operations.run(pool, act(returns(7)), node=1)
    assert [0, 4, 0] == [len(node.begun) for node in pool.scripted.values()]


@pytest.mark.parametrize(
    "send",
    [
        lambda pool: operations.run(pool, act(HANGS)),
        lambda pool: operations.run_all(pool, (act(HANGS), act(HANGS)), keep_errors=False),
        lambda pool: list(operations.stream_all(pool, (act(HANGS),), ordered=True, keep_errors=False)),
    ],
    ids=["run", "gather", "stream"],
)
def test_an_interrupt_stops_what_is_under_way(pool: ScriptedPool, send: Callable[[ScriptedPool], object]) -> None:
    """At whatever moment it comes; the slots are free afterwards."""

    def interrupt() -> None:
        until(lambda: any(node.running for node in pool.scripted.values()))
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        send(pool)
    thread.join()
    until(lambda: idle(pool))


def test_a_future_gives_the_value_later(pool: ScriptedPool) -> None:
    """Or the failure; both in whichever thread asks."""
    good, bad = operations.run_async(pool, act(returns(7))), operations.run_async(pool, act(raises(KeyError())))
    assert set() == wait([good, bad], timeout=10).not_done
    assert (7, KeyError) == (good.result(), type(bad.exception()))


def test_a_cancelled_future_stops_its_call(pool: ScriptedPool) -> None:
    """Also one that has not begun; what ended cannot be cancelled."""
    futures = [operations.run_async(pool, act(HANGS)) for _ in range(5)]
    # Those that wait first, or they would begin in the place of the others.
    assert all(future.cancel() for future in reversed(futures))
    until(lambda: idle(pool))
    assert 3 == sum(len(node.begun) for node in pool.scripted.values())
    with pytest.raises(CancelledError):
        futures[0].result()
    done = operations.run_async(pool, act(returns(7)))
    assert 7 == done.result(10)
    assert not done.cancel()


def test_a_stream_ends_its_generator_when_it_is_let_go(pool: ScriptedPool) -> None:
    """However that happens."""
    for leave in (lambda stream: stream.close(), lambda stream: None):
        stream = operations.run(pool, act_and_yield(Plan(items=tuple(range(50)))))
        assert [0, 1, 2] == list(itertools.islice(stream, 3))
        leave(stream)
        del stream
        until(lambda: idle(pool))


def test_a_stream_gives_its_items_before_its_failure(pool: ScriptedPool) -> None:
    """Then it is over."""
    stream = operations.run(pool, act_and_yield(Plan(items=(1, 2), ends=plan.Ending.RAISES, value=OSError("disk"))))
    assert [1, 2] == [next(stream), next(stream)]
    with pytest.raises(OSError, match="disk"):
        next(stream)
    assert "over" == next(stream, "over")
    assert list(range(100)) == list(operations.run(pool, act_and_yield(Plan(items=tuple(range(100))))))


# Many calls.


def test_a_group_gives_results_in_the_order_of_its_calls(pool: ScriptedPool) -> None:
    """Whatever the order of their ends; progress is reported."""
    calls = tuple(act(returns(number, 10.0 - number)) for number in range(6))
    assert list(range(6)) == operations.run_all(pool, calls, keep_errors=False)
    assert [("gather", 6, done) for done in range(1, 7)] == pool.told


class WaitsToBePickled:
    """An argument whose pickling goes on when an attempt has begun."""

    def __init__(self, pool: ScriptedPool) -> None:
        self._pool = pool

    def __reduce__(self) -> tuple[type[int], tuple[int]]:
        until(lambda: any(node.begun for node in self._pool.scripted.values()))
        return int, (7,)


class Unpicklable:
    """An argument that no call can take along."""

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("not this one")


@sky.function
def act_beside(argument: object, *plans: Plan) -> object:
    """Do as planned, with an argument beside the plans."""
    return plan.act(*plans)


def test_the_first_calls_of_a_group_run_while_later_ones_are_pickled(pool: ScriptedPool) -> None:
    """Else the pickling of thousands would be time in which no slot is busy."""
    late = act_beside(WaitsToBePickled(pool), returns("late"))
    calls = (*(act(returns(number)) for number in range(operations.AT_ONCE)), late)
    assert "late" == operations.run_all(pool, calls, keep_errors=False)[-1]
    streamed = operations.stream_all(pool, calls, ordered=True, keep_errors=False)
    assert "late" == list(streamed)[-1]


def test_a_call_that_cannot_be_pickled_stops_those_before_it(pool: ScriptedPool) -> None:
    """They may run already; none of them goes on."""
    calls = (*(act(HANGS) for _ in range(operations.AT_ONCE)), act_beside(Unpicklable(), returns(1)))
    for send in (
        lambda: operations.run_all(pool, calls, keep_errors=False),
        lambda: list(operations.stream_all(pool, calls, ordered=True, keep_errors=False)),
    ):
        with pytest.raises(Exception, match="not this one"):
            send()
        until(lambda: idle(pool))


def test_the_first_failure_in_the_order_of_the_calls_is_raised(pool: ScriptedPool) -> None:
    """Those before it are waited for, those behind it are stopped; what was done is remembered."""
    calls = (
        act(returns("slow", 5.0)),
        act(raises(KeyError("second"), 2.0)),
        act(raises(ValueError(), 1.0)),
        act(HANGS),
    )
    with pytest.raises(KeyError, match="second") as caught:
        operations.run_all(pool, calls, keep_errors=False)
    done = sky.partial(caught.value)
    assert ["slow", "KeyError"] == [done[0], type(done[1]).__name__]
    until(lambda: idle(pool))


def test_a_failure_at_the_head_is_raised_at_once(pool: ScriptedPool) -> None:
    """The others never end by themselves."""
    with pytest.raises(ValueError, match="head"):
        operations.run_all(pool, (act(raises(ValueError("head"))), *[act(HANGS)] * 7), keep_errors=False)
    until(lambda: idle(pool))
    assert 4 >= sum(len(node.begun) for node in pool.scripted.values())


def test_a_group_can_keep_failures(pool: ScriptedPool) -> None:
    """Each in its place."""
    calls = (act(returns(1)), act(raises(KeyError())), act(dies()), act(returns(4)))
    results = operations.run_all(pool, calls, keep_errors=True)
    assert [1, "KeyError", "WorkerDiedError", 4] == [
        type(result).__name__ if isinstance(result, Exception) else result for result in results
    ]


@pytest.mark.parametrize(("ordered", "expected"), [(True, [2, 1, 0]), (False, [0, 1, 2])])
def test_a_streamed_group_gives_results_as_they_come(pool: ScriptedPool, expected: list[int], *, ordered: bool) -> None:
    """In order of the calls, or of their ends."""
    calls = tuple(act(returns(number, 1.0 + number)) for number in (2, 1, 0))
    assert expected == list(operations.stream_all(pool, calls, ordered=ordered, keep_errors=False))


def test_leaving_a_streamed_group_stops_the_rest(pool: ScriptedPool) -> None:
    """Also where a failure is what leaves it."""
    for first, error in ((returns(1), None), (raises(KeyError()), KeyError)):
        stream = operations.stream_all(pool, (act(first), act(HANGS), act(HANGS)), ordered=True, keep_errors=False)
        if error is None:
            assert 1 == next(stream)
            stream.close()  # type: ignore[attr-defined]  # a generator
        else:
            with pytest.raises(error):
                next(stream)
        until(lambda: idle(pool))


def test_a_streamed_group_that_nobody_reads_is_stopped(pool: ScriptedPool) -> None:
    """Its calls began when it was sent, and not with the first item that is asked for."""
    stream = operations.stream_all(pool, (act(HANGS), act(HANGS)), ordered=True, keep_errors=False)
    until(lambda: 2 == sum(len(node.begun) for node in pool.scripted.values()))
    del stream
    until(lambda: idle(pool))


def test_each_call_of_a_group_has_its_own_retries(pool: ScriptedPool) -> None:
    """One call's failures cost the others nothing."""
    wrong = raises(KeyError())
    calls = (
        act(wrong, wrong, returns("third")).with_retries(2),
        act(wrong, returns("second")),
        act(dies(), returns("second")).with_retries(1),
    )
    third, failed, second = operations.run_all(pool, calls, keep_errors=True)
    assert ("third", KeyError, "second") == (third, type(failed), second)


@pytest.mark.parametrize("interruptions", [0, 1])
def test_the_option_says_how_often_a_call_may_lose_its_node(interruptions: int) -> None:
    """Whatever its retries are."""

    def losing(task: Task) -> Plan:
        if task.attempt <= 1:
            pool.engine.loop.call_later(1.0, pool.scripted[task.node].lose)
        return HANGS if task.attempt <= 1 else returns("again")

    with ScriptedPool([1], script=losing, retry_on_interruption=interruptions) as pool:
        future = operations.run_async(pool, act().with_retries(9))
        error = future.exception(10)
        assert (sky.NodeLostError if interruptions == 0 else type(None)) is type(error)


# Broadcasts.


def test_a_broadcast_gives_one_value_a_rank_in_their_order() -> None:
    """Whatever the order of their ends."""
    pool_script = lambda task: returns(task.node, 3.0 - task.node)
    with ScriptedPool([1], [1], [1], script=pool_script) as backwards:
        assert [0, 1, 2] == operations.broadcast(backwards, act(), keep_errors=False)


def _failing_first(times: int, failure: Plan, others: Plan = HANGS) -> tuple[Callable[[Task], Plan], list[int]]:
    """Have node 1 fail in the first broadcasts; the numbers of broadcasts are kept."""
    seen: list[int] = []

    def script(task: Task) -> Plan:
        if task.broadcast not in seen:
            seen.append(task.broadcast)
        if len(seen) > times:
            return returns((task.node, len(seen)))
        return failure if task.node == 1 else others

    return script, seen


def test_the_first_failure_in_time_ends_the_other_ranks() -> None:
    """They hang; what each came to is remembered."""
    script, seen = _failing_first(9, raises(KeyError("one"), 1.0))
    with ScriptedPool([1], [1], [1], script=script) as pool:
        with pytest.raises(KeyError, match="one") as caught:
            operations.broadcast(pool, act(), keep_errors=False)
        assert ["CancelledError", "KeyError", "CancelledError"] == [
            type(one).__name__ for one in sky.partial(caught.value)
        ]
        assert 1 == len(seen)
        assert idle(pool)


def test_a_broadcast_is_tried_again_as_a_whole() -> None:
    """With as many retries as were asked for, and all ranks begin anew."""
    script, seen = _failing_first(2, raises(KeyError(), 1.0), returns("in vain"))
    with ScriptedPool([1], [1], script=script) as pool:
        assert [(0, 3), (1, 3)] == operations.broadcast(pool, act().with_retries(2), keep_errors=False)
        assert [3, 3] == [len(node.begun) for node in pool.scripted.values()]
        assert 3 == len(seen)


def test_a_broadcasts_retries_are_bounded() -> None:
    """The last failure is raised."""
    script, seen = _failing_first(9, dies(1.0))
    with ScriptedPool([1], [1], script=script) as pool:
        with pytest.raises(sky.WorkerDiedError):
            operations.broadcast(pool, act().with_retries(1), keep_errors=False)
        assert 2 == len(seen)


@pytest.mark.parametrize(
    ("interruptions", "losses", "good"), [(1, 1, True), (2, 2, True), (1, 2, False), (0, 1, False)]
)
def test_a_broadcast_that_lost_a_node_waits_for_another(interruptions: int, losses: int, *, good: bool) -> None:
    """Losses have a budget of their own; all ranks begin anew, with the node that is there then."""
    script, seen = _failing_first(losses, HANGS)

    def losing(task: Task) -> Plan:
        made = script(task)
        if task.node == 1 and len(seen) <= losses:
            pool.engine.loop.call_later(1.0, pool.scripted[1].lose)
        return made

    with ScriptedPool([1], [1], script=losing, retry_on_interruption=interruptions) as pool:
        pending = act().with_retries(9)
        if good:
            assert [(0, losses + 1), (1, losses + 1)] == operations.broadcast(pool, pending, keep_errors=False)
        else:
            with pytest.raises(sky.NodeLostError):
                operations.broadcast(pool, pending, keep_errors=False)
        assert min(losses, interruptions) == pool.whole.waited
        until(lambda: idle(pool))


@pytest.mark.parametrize("keep_errors", [False, True])
def test_a_broadcast_begins_again_where_workers_were_spent(*, keep_errors: bool) -> None:
    """It costs no retry, and happens so often and no more."""
    script, seen = _failing_first(RENEWALS, SPENT)
    with ScriptedPool([1], [1], script=script) as pool:
        assert [(0, RENEWALS + 1), (1, RENEWALS + 1)] == operations.broadcast(pool, act(), keep_errors=keep_errors)
    script, seen = _failing_first(99, SPENT)
    with ScriptedPool([1], [1], script=script) as pool:
        with pytest.raises(sky.WorkerSpentError):
            operations.broadcast(pool, act().with_retries(9), keep_errors=keep_errors)
        assert RENEWALS + 1 == len(seen)


def test_ranks_say_together_that_their_workers_are_spent() -> None:
    """One that was stopped before it could say so would be found to be spent by the next attempt."""
    spent: list[int] = []

    def script(task: Task) -> Plan:
        if task.node in spent:
            return returns(len(spent))
        spent.append(task.node)
        return evolve(SPENT, seconds=0.2 * task.node)

    with ScriptedPool([1], [1], [1], script=script) as pool:
        assert [3, 3, 3] == operations.broadcast(pool, act(), keep_errors=False)
        assert [[], [], []] == [node.cancelled for node in pool.scripted.values()]


def test_a_broadcast_can_keep_failures() -> None:
    """No rank is stopped for another's."""
    script, _ = _failing_first(9, raises(KeyError()), returns("good", 5.0))
    with ScriptedPool([1], [1], script=script) as pool:
        good, bad = operations.broadcast(pool, act().with_retries(5), keep_errors=True)
    assert ("good", KeyError) == (good, type(bad))


def test_a_broadcast_of_a_generator_gives_one_stream_a_rank(pool: ScriptedPool) -> None:
    """Each ends by itself."""
    streams = operations.broadcast(pool, act_and_yield(Plan(items=tuple(range(40)))), keep_errors=False)
    assert [Stream] * 3 == [type(stream) for stream in streams]
    streams[1].close()
    assert [list(range(40))] * 2 == [list(streams[2]), list(streams[0])]
    until(lambda: idle(pool))


def test_an_iterator_cannot_be_broadcast(pool: ScriptedPool) -> None:
    """It has one consumer; not one item is taken."""
    numbers = iter(range(3))
    with pytest.raises(sky.UsageError, match="takes an iterator, which has one consumer"):
        operations.broadcast(pool, act_on_items(numbers, Plan(takes=3)), keep_errors=False)
    assert [0, 1, 2] == list(numbers)


def test_what_is_sent_to_a_closed_pool_fails() -> None:
    """Each operator raises the same."""
    with ScriptedPool([1]) as pool:
        pool.do(pool.dispatch.close, "The pool 'train' is closed.")
        attempts: list[Callable[[], object]] = [
            lambda: operations.run(pool, act(HANGS)),
            lambda: operations.run_all(pool, (act(HANGS),), keep_errors=False),
            lambda: operations.broadcast(pool, act(HANGS), keep_errors=False),
            lambda: operations.run_async(pool, act(HANGS)).result(10),
        ]
        for attempt in attempts:
            with pytest.raises(sky.PoolClosedError, match="'train' is closed"):
                attempt()
