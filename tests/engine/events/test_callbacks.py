"""Callbacks and events from the user's side."""

from __future__ import annotations

import contextvars
import logging
import pickle
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType

import attrs
import pytest

from skyward.engine.events.callbacks import Dispatcher, compose, emit, enter, leave, use_callback
from skyward.errors import ConfigError, UsageError
from skyward.model.events.event import Log, NodeReady, SkywardEvent

WAIT = 10.0


@dataclass(frozen=True)
class EpochDone(SkywardEvent):
    """An event as a user would write it."""

    epoch: int


@pytest.fixture
def dispatcher() -> Iterator[Dispatcher]:
    made = Dispatcher()
    yield made
    leave(made)
    made.close(WAIT)


def test_compose_hands_changed_events_on() -> None:
    """An event that a callback returns takes the place of the event for those after it."""
    seen: list[SkywardEvent] = []

    def moved(event: SkywardEvent) -> SkywardEvent:
        assert isinstance(event, NodeReady)
        return attrs.evolve(event, node=7)

    callback = compose(moved, lambda event: None, seen.append)
    changed = callback(NodeReady(node=1, at=0.0))
    assert [NodeReady(node=7, at=0.0)] == seen
    assert NodeReady(node=7, at=0.0) == changed
    assert compose(lambda event: None)(NodeReady(node=1)) is None


def test_emit_reaches_the_innermost_pool(dispatcher: Dispatcher) -> None:
    """An event goes to the handlers of the pool that was entered last and is still open."""
    inner = Dispatcher()
    seen: list[tuple[str, SkywardEvent]] = []
    dispatcher.subscribe(EpochDone, lambda event: seen.append(("outer", event)))
    inner.subscribe(EpochDone, lambda event: seen.append(("inner", event)))
    enter(dispatcher)
    enter(inner)
    first, second = EpochDone(1), EpochDone(2)
    emit(first)
    inner.close(WAIT)
    leave(inner)
    emit(second)
    dispatcher.flush(WAIT)
    assert [("inner", first), ("outer", second)] == seen


def test_emit_stamps_events_with_a_constructor_of_their_own(dispatcher: Dispatcher) -> None:
    """A user's dataclass has `at` and `instance` when handlers get it."""
    event = EpochDone(1)
    emit(event)
    assert event.at > 0
    assert event.instance is None
    assert pickle.loads(pickle.dumps(event)).at == event.at


def test_emit_refuses_what_is_no_event() -> None:
    """Only events can be emitted."""
    with pytest.raises(UsageError, match="emit takes an event, not 'done'"):
        emit("done")  # type: ignore[arg-type]


def test_emit_in_a_task_goes_to_the_client(dispatcher: Dispatcher, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a task the worker takes the event, and no handler of this process does."""
    sent: list[SkywardEvent] = []
    task_context = ModuleType("skyward.node.task.task_context")
    task_context.in_task = lambda: True  # type: ignore[attr-defined]
    task_context.emit_from_task = sent.append  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "skyward.node.task.task_context", task_context)
    seen: list[SkywardEvent] = []
    dispatcher.subscribe(SkywardEvent, seen.append)
    enter(dispatcher)
    event = EpochDone(1)
    emit(event)
    dispatcher.flush(WAIT)
    assert ([event], []) == (sent, seen)


def test_handlers_can_emit(dispatcher: Dispatcher) -> None:
    """What a handler emits goes to the handlers of the same pool."""
    done = threading.Event()
    dispatcher.subscribe(Log, lambda event: emit(EpochDone(1)))
    dispatcher.subscribe(EpochDone, lambda event: done.set())
    dispatcher.publish(Log(line="x", node=0))
    assert done.wait(WAIT)


def test_a_callback_in_use_hears_pools_opened_inside(dispatcher: Dispatcher) -> None:
    """A pool that is opened in the block reports to the callback, until the block ends."""
    seen: list[SkywardEvent] = []
    with use_callback(seen.append):
        enter(dispatcher)
        dispatcher.publish(NodeReady(node=1, at=0.0))
    dispatcher.publish(NodeReady(node=2, at=0.0))
    dispatcher.flush(WAIT)
    assert [NodeReady(node=1, at=0.0)] == seen


def test_a_callback_in_use_hears_pools_that_are_open(dispatcher: Dispatcher) -> None:
    """A block inside a pool's block hears that pool, and all that happened inside has been delivered after it."""
    seen: list[SkywardEvent] = []
    enter(dispatcher)
    with use_callback(seen.append):
        for number in range(100):
            emit(NodeReady(node=number))
    assert list(range(100)) == [event.node for event in seen if isinstance(event, NodeReady)]
    assert not dispatcher.wants(NodeReady)


def test_a_callback_in_use_belongs_to_its_context(dispatcher: Dispatcher) -> None:
    """A pool that is opened in another context does not report to it."""
    with use_callback(lambda event: None):
        contextvars.Context().run(enter, dispatcher)
    assert not dispatcher.wants(NodeReady)
    with use_callback(lambda event: None):
        contextvars.copy_context().run(enter, dispatcher)
        assert dispatcher.wants(NodeReady)


def test_without_a_pool_callbacks_in_use_are_called_at_once(caplog: pytest.LogCaptureFixture) -> None:
    """Where no pool is open, `emit` calls the callbacks itself, and one that raises stops nothing."""
    seen: list[SkywardEvent] = []

    def fails(event: SkywardEvent) -> None:
        raise ValueError(event)

    event = EpochDone(1)
    with caplog.at_level(logging.ERROR), use_callback(fails), use_callback(seen.append):
        emit(event)
        assert [event] == seen
    assert "callback.failed" in caplog.text


def test_use_callback_refuses_what_cannot_be_called() -> None:
    """A callback that is none is an error at once, pool or not."""
    with pytest.raises(ConfigError, match="must be a function"), use_callback(3):  # type: ignore[arg-type]
        pytest.fail("the block must not be entered")


def test_leaving_a_pool_that_was_never_entered_is_no_error(dispatcher: Dispatcher) -> None:
    """A pool may be left in another context than it was entered in."""
    leave(dispatcher)
