"""Threads that wait for calls: one call, many, a future that decodes once, a stream that gives credit as it is read."""

from __future__ import annotations

import concurrent.futures
import gc
import threading
import weakref
from concurrent.futures import CancelledError, as_completed, wait
from typing import Any

import pytest

from skyward.engine.calls.answer import Answer
from skyward.engine.calls.call import Call, CapturedFunction
from skyward.engine.calls.waiters import AnswerCollector, Future, Promise, Stream, StreamEnd, Waiter
from skyward.errors import PoolClosedError, ResultError
from skyward.link.failure import dump_failure
from skyward.link.messages import Status
from skyward.link.payload import Payload
from skyward.link.payload_making import dump
from skyward.node.worker.streams import WINDOW_ITEMS


def call(index: int = 0) -> Call:
    """Make a call of nothing."""
    return Call(CapturedFunction("f", b"", b"", Payload((), b"")), Payload((), b""), Waiter(), index=index)


def ok(value: object) -> Answer:
    """Answer with a result."""
    return Answer(Status.OK, dump(value), b"", function="f", where="node 0")


def raised(error: Exception) -> Answer:
    """Answer with what the function raised."""
    return Answer(Status.RAISED, None, dump_failure(error), function="f", where="node 0")


def unloadable() -> Payload:
    """Make a payload that cannot be unpickled here."""
    return Payload((), b"cnowhere\nnothing\n.")


def test_a_thread_waits_until_its_call_is_answered() -> None:
    """The answer comes from another thread."""
    waiter = Waiter()
    threading.Timer(0.01, waiter.resolve, (call(), ok(42))).start()
    assert 42 == waiter.wait().value()


def test_answers_of_many_calls_come_as_they_are_given() -> None:
    """Each with its call's index."""
    collector = AnswerCollector()
    assert not collector.ready()
    for index in (2, 0):
        collector.resolve(call(index), ok(index))
    assert collector.ready()
    assert [2, 0] == [collector.next()[0], collector.next()[0]]


def test_a_future_decodes_its_result_once() -> None:
    """All who ask get the same object."""
    future: Future[list[int]] = Future(lambda call: None)
    Promise(future).resolve(call(), ok([1]))
    assert future.result() is future.result()
    assert future.exception() is None


def test_a_future_raises_what_the_function_raised() -> None:
    """And gives it to the caller that asks for it instead."""
    future: Future[Any] = Future(lambda call: None)
    Promise(future).resolve(call(), raised(KeyError("gone")))
    with pytest.raises(KeyError, match="gone"):
        future.result()
    assert isinstance(future.exception(), KeyError)


def test_a_result_that_cannot_be_unpickled_says_whose_it_is() -> None:
    """Function and node."""
    future: Future[Any] = Future(lambda call: None)
    Promise(future).resolve(call(), Answer(Status.OK, unloadable(), b"", function="f", where="node 0"))
    with pytest.raises(ResultError, match=r"result of f\(\) on node 0 cannot be unpickled here: ModuleNotFoundError"):
        future.result()


def test_a_future_is_cancelled_once_and_not_after_its_end() -> None:
    """The node hears of it once; an answer that comes all the same is passed over."""
    told: list[Call] = []
    future, made = Future[int](told.append), call()
    promise = Promise(future)
    promise.made(made)
    assert future.cancel()
    promise.resolve(made, ok(1))
    with pytest.raises(CancelledError):
        future.result()
    done: Future[int] = Future(told.append)
    Promise(done).settle(3)
    assert not done.cancel()
    assert (3, [made]) == (done.result(), told)


@pytest.mark.parametrize("cancelled", [False, True])
def test_a_future_goes_with_the_last_reference_to_it(cancelled: bool) -> None:
    """Its call holds it and is held by it until then: nothing is left for the garbage collector."""
    future = Future[int](lambda call: None)
    promise = Promise(future)
    made = Call(CapturedFunction("f", b"", b"", Payload((), b"")), Payload((), b""), promise)
    promise.made(made)
    assert cancelled == (cancelled and future.cancel())
    promise.resolve(made, ok(1))
    gone = weakref.ref(future)
    gc.disable()
    try:
        del promise, made, future
        assert gone() is None
    finally:
        gc.enable()


def test_a_future_has_few_parts() -> None:
    """Python's garbage collector looks at each of them: most are the standard library's."""
    gc.collect()
    counts = [len(gc.get_objects())]
    futures: list[concurrent.futures.Future[int]] = []
    for make in (concurrent.futures.Future, lambda: Future(print)):
        futures += [make() for _ in range(1000)]
        counts.append(len(gc.get_objects()))
    theirs, ours = counts[1] - counts[0], counts[2] - counts[1]
    # Less than one more for each; other threads make objects, too.
    assert ours < theirs + 500


def test_a_future_shows_what_its_user_can_do_with_it() -> None:
    """And nothing of how its result comes."""
    shown = [name for name in dir(Future(lambda call: None)) if not name.startswith("_")]
    assert ["add_done_callback", "cancel", "cancelled", "done", "exception", "result", "running"] == shown


def test_waiting_for_a_future_has_a_limit() -> None:
    """The call goes on."""
    future: Future[int] = Future(lambda call: None)
    with pytest.raises(TimeoutError):
        future.result(timeout=0.001)
    Promise(future).settle(1)
    assert 1 == future.result(timeout=0.001)


def stream(*items: object, end: Answer | None = None) -> tuple[Stream[Any], StreamEnd, list[Any]]:
    """Make a stream that has got some items, and what it tells its node."""
    told: list[Any] = []
    arrived = StreamEnd()
    for item in items:
        arrived.item(call(), dump(item))
    if end is not None:
        arrived.resolve(call(), end)
    return Stream(arrived, lambda: told.append("cancel"), told.append), arrived, told


def test_a_stream_gives_its_items_and_ends() -> None:
    """In order, and again and again at its end."""
    given, _, told = stream("a", "b", end=Answer(Status.STREAMED, None, b""))
    assert ["a", "b"] == list(given)
    assert [] == list(given)
    given.close()
    assert [] == told


def test_a_stream_raises_what_its_generator_raised_after_the_items_before() -> None:
    """And is over then."""
    given, _, _ = stream("a", end=raised(ValueError("bad")))
    assert "a" == next(given)
    with pytest.raises(ValueError, match="bad"):
        next(given)
    assert [] == list(given)


def test_credit_is_given_for_half_a_window() -> None:
    """Not for each item."""
    given, _, told = stream(*range(WINDOW_ITEMS), end=Answer(Status.STREAMED, None, b""))
    assert WINDOW_ITEMS == len(list(given))
    assert [WINDOW_ITEMS // 2] * 2 == told


def test_leaving_a_stream_ends_its_generator() -> None:
    """By its block, or by letting go of it; once."""
    given, _, told = stream("a")
    with given:
        next(given)
    given.close()
    assert ["cancel"] == told
    other, _, told = stream("a")
    del other
    assert ["cancel"] == told


def test_an_item_that_cannot_be_unpickled_ends_its_stream() -> None:
    """With an error that says so."""
    given, arrived, told = stream()
    arrived.item(call(), unloadable())
    with pytest.raises(ResultError, match="An item of a stream cannot be unpickled here"):
        next(given)
    assert ["cancel"] == told


def test_a_stream_is_stalled_when_nobody_has_taken_anything_since_it_was_last_asked() -> None:
    """Never before it has got anything."""
    given, arrived, _ = stream()
    assert [False, False] == [arrived.stalled(), arrived.stalled()]
    for item in "abc":
        arrived.item(call(), dump(item))
    next(given)
    assert [False, True] == [arrived.stalled(), arrived.stalled()]
    next(given)
    assert not arrived.stalled()


def test_what_waits_for_several_futures_hears_of_a_cancelled_one() -> None:
    """Once, however often it is cancelled; the call is stopped once."""
    stopped: list[Call] = []
    future, made = Future[int](stopped.append), call()
    Promise(future).made(made)
    threading.Timer(0.02, future.cancel).start()
    assert ({future}, set()) == wait([future], timeout=10)
    assert future.cancel()
    assert [made] == stopped
    assert [future] == list(as_completed([future], timeout=10))


def test_a_result_that_was_not_asked_for_can_be_withheld() -> None:
    """As it is another client's; one that was asked for stays what it was, and one that has not come is none yet."""
    asked: Future[int] = Future(lambda _: None)
    other: Future[int] = Future(lambda _: None)
    late: Future[int] = Future(lambda _: None)
    Promise(asked).settle(1)
    other.set_result(Answer(Status.CANCELLED, None, b""))  # type: ignore[arg-type]
    error = PoolClosedError("It was detached.")
    assert [future.withhold(error) for future in (asked, other, late)] == [False, True, False]
    assert asked.result() == 1
    with pytest.raises(PoolClosedError, match=r"It was detached\."):
        other.result()
    assert [future.used for future in (asked, other, late)] == [True, True, False]
