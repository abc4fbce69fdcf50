"""Delivery of events: in one thread, in order, bounded, and never broken by a handler."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from skyward.engine.events.event_dispatcher import Dispatcher
from skyward.errors import ConfigError
from skyward.link.emitted import class_name
from skyward.model.events.event import (
    ALL,
    BootstrapPhase,
    BootstrapStarting,
    Log,
    Metric,
    NodeReady,
    SkywardEvent,
    TaskCompleted,
    TaskStarted,
)

WAIT = 10.0


class Gate:
    """A handler that stops at its first event until it is let go, and keeps what it gets."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.open = threading.Event()
        self.seen: list[SkywardEvent] = []

    def __call__(self, event: SkywardEvent) -> None:
        self.entered.set()
        self.open.wait(WAIT)
        self.seen.append(event)


@pytest.fixture
def dispatcher() -> Iterator[Dispatcher]:
    made = Dispatcher(limit=10)
    yield made
    made.close(WAIT)


@pytest.fixture
def gate(dispatcher: Dispatcher) -> Iterator[Gate]:
    """A handler of everything that is busy with one event already."""
    made = Gate()
    dispatcher.subscribe(SkywardEvent, made)
    dispatcher.publish(NodeReady(node=-1))
    assert made.entered.wait(WAIT)
    yield made
    made.open.set()


def metric(value: float) -> Metric:
    return Metric(name="cpu", value=value, node=0)


def line(text: str) -> Log:
    return Log(line=text, node=0)


def completed(task_id: str) -> TaskCompleted:
    return TaskCompleted(task_id=task_id, function="f", node=0)


def test_events_come_in_order_in_one_thread(dispatcher: Dispatcher) -> None:
    """Handlers are called one after another, in a thread of their own, as events were published."""
    seen: list[tuple[SkywardEvent, str]] = []
    dispatcher.subscribe(SkywardEvent, lambda event: seen.append((event, threading.current_thread().name)))
    events = [line("a"), metric(1), completed("1"), line("b"), metric(2)]
    for event in events:
        assert dispatcher.publish(event)
    assert dispatcher.flush(WAIT)
    assert [(event, "skyward-events") for event in events] == seen


def test_order_holds_between_threads(dispatcher: Dispatcher) -> None:
    """Each publishing thread's events keep their order."""
    dispatcher = Dispatcher()
    seen: list[tuple[int, int]] = []
    dispatcher.subscribe(Log, lambda event: seen.append((event.node, int(event.line))))

    def publish(node: int) -> None:
        for number in range(500):
            dispatcher.publish(Log(line=str(number), node=node))

    threads = [threading.Thread(target=publish, args=(node,)) for node in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert dispatcher.close(WAIT)
    assert [[(node, number) for number in range(500)] for node in range(4)] == [
        [one for one in seen if one[0] == node] for node in range(4)
    ]


def test_handlers_hear_subclasses(dispatcher: Dispatcher) -> None:
    """A handler of a type hears the types that extend it, and no others."""
    seen: list[SkywardEvent] = []
    dispatcher.subscribe(BootstrapPhase, seen.append)
    starting = BootstrapStarting(instance_id="i")
    dispatcher.publish(starting)
    dispatcher.publish(line("no"))
    dispatcher.flush(WAIT)
    assert [starting] == seen


def test_several_types_can_be_subscribed_at_once(dispatcher: Dispatcher) -> None:
    """A tuple of types is one subscription."""
    seen: list[SkywardEvent] = []
    cancel = dispatcher.subscribe((Log, Metric), seen.append)
    events = [line("a"), metric(1)]
    for event in (*events, completed("1")):
        dispatcher.publish(event)
    dispatcher.flush(WAIT)
    assert events == seen
    cancel()
    assert not dispatcher.wants(Log)


def test_wants_follows_subscriptions(dispatcher: Dispatcher) -> None:
    """`wants` says whether an event of a type would reach any handler now."""
    assert not dispatcher.wants(TaskStarted)
    cancel = dispatcher.subscribe(TaskStarted, print)
    assert dispatcher.wants(TaskStarted)
    assert not dispatcher.wants(TaskCompleted)
    cancel()
    assert not dispatcher.wants(TaskStarted)


def test_no_thread_before_it_is_needed() -> None:
    """A dispatcher that nothing was published to has no thread to leave behind."""
    dispatcher = Dispatcher(name="unused-events")
    dispatcher.subscribe(Log, print)
    dispatcher.publish(metric(1))
    assert "unused-events" not in {thread.name for thread in threading.enumerate()}
    assert dispatcher.close()


def test_metrics_are_dropped_first_and_the_oldest_first(dispatcher: Dispatcher, gate: Gate) -> None:
    """When too much waits, measurements give way, the oldest before the newer."""
    for value in range(6):
        dispatcher.publish(metric(value))
    for number in range(7):
        dispatcher.publish(completed(str(number)))
    assert dispatcher.dropped == 3
    gate.open.set()
    dispatcher.flush(WAIT)
    assert [metric(value).value for value in (3, 4, 5)] == [e.value for e in gate.seen if isinstance(e, Metric)]
    assert 7 == sum(isinstance(event, TaskCompleted) for event in gate.seen)


def test_task_events_are_bounded_once_metrics_are_gone(dispatcher: Dispatcher, gate: Gate) -> None:
    """A handler that is too slow loses the oldest task events rather than filling the memory."""
    for number in range(25):
        dispatcher.publish(completed(str(number)))
    gate.open.set()
    dispatcher.flush(WAIT)
    kept = [event.task_id for event in gate.seen if isinstance(event, TaskCompleted)]
    assert [str(number) for number in range(15, 25)] == kept
    assert dispatcher.dropped == 15


def test_log_lines_are_never_dropped(dispatcher: Dispatcher, gate: Gate) -> None:
    """Log lines are kept beyond the bound; `publish` says that it is time to stop."""
    answers = [dispatcher.publish(line(str(number))) for number in range(30)]
    assert [True] * 7 + [False] * 23 == answers
    assert dispatcher.pressure
    gate.open.set()
    dispatcher.flush(WAIT)
    assert [str(number) for number in range(30)] == [event.line for event in gate.seen if isinstance(event, Log)]
    assert dispatcher.dropped == 0


def test_long_lines_weigh_more(dispatcher: Dispatcher, gate: Gate) -> None:
    """The bound is one of memory: a line counts once more for each 256 characters."""
    assert not dispatcher.publish(line("x" * 8 * 1024))


def test_metrics_make_no_pressure(dispatcher: Dispatcher, gate: Gate) -> None:
    """Measurements hold nothing up, however many of them wait."""
    assert all(dispatcher.publish(metric(value)) for value in range(50))
    assert dispatcher.publish(line("a"))


def test_drained_is_called_when_pressure_goes(dispatcher: Dispatcher, gate: Gate) -> None:
    """What stopped because of the pressure is called when there is room again."""
    drained = threading.Event()
    dispatcher.on_drained(drained.set)
    while dispatcher.publish(line("x")):
        pass
    assert not drained.is_set()
    gate.open.set()
    assert drained.wait(WAIT)
    assert not dispatcher.pressure


def test_dropped_events_are_reported_once(dispatcher: Dispatcher, gate: Gate, caplog: pytest.LogCaptureFixture) -> None:
    """What was dropped is counted in one warning."""
    with caplog.at_level(logging.WARNING, "skyward.engine.events.event_dispatcher"):
        for value in range(15):
            dispatcher.publish(metric(value))
        gate.open.set()
        dispatcher.close(WAIT)
    assert ["events.dropped measurements=5 tasks=0: a handler is too slow for them"] == [
        record.getMessage() for record in caplog.records
    ]


@pytest.mark.parametrize("error", [ValueError("no"), SystemExit(3)], ids=["exception", "exit"])
def test_a_handler_that_raises_is_logged_once(
    dispatcher: Dispatcher, caplog: pytest.LogCaptureFixture, error: BaseException
) -> None:
    """A failing handler breaks nothing, neither other handlers nor later events."""
    seen: list[SkywardEvent] = []

    def fails(event: SkywardEvent) -> None:
        raise error

    dispatcher.subscribe(Log, fails)
    dispatcher.subscribe(Log, seen.append)
    with caplog.at_level(logging.ERROR, "skyward.engine.events.event_dispatcher"):
        for number in range(3):
            dispatcher.publish(line(str(number)))
        dispatcher.flush(WAIT)
    assert ["0", "1", "2"] == [event.line for event in seen if isinstance(event, Log)]
    assert len(caplog.records) == 1
    assert caplog.records[0].exc_info is not None


def test_close_delivers_what_waits() -> None:
    """Nothing that was published before `close` is lost; what comes later goes nowhere."""
    dispatcher = Dispatcher()
    seen: list[SkywardEvent] = []
    dispatcher.subscribe(Log, seen.append)
    for number in range(1000):
        dispatcher.publish(line(str(number)))
    assert dispatcher.close(WAIT)
    dispatcher.publish(line("late"))
    assert dispatcher.close(WAIT)
    assert dispatcher.flush(WAIT)
    assert 1000 == len(seen)


def test_close_gives_up_a_stuck_handler(caplog: pytest.LogCaptureFixture) -> None:
    """A handler that never ends keeps `close` no longer than its timeout, and no thread waits in `flush` for ever."""
    dispatcher = Dispatcher()
    gate = Gate()
    dispatcher.subscribe(Log, gate)
    dispatcher.publish(line("first"))
    dispatcher.publish(line("second"))
    assert gate.entered.wait(WAIT)
    with caplog.at_level(logging.WARNING, "skyward.engine.events.event_dispatcher"):
        assert not dispatcher.close(0.01)
    assert "events.abandoned waiting=" in caplog.text
    assert not dispatcher.flush(WAIT)
    gate.open.set()
    assert dispatcher.close(WAIT)
    assert ["first"] == [event.line for event in gate.seen if isinstance(event, Log)]


def test_handlers_may_close_and_flush(dispatcher: Dispatcher) -> None:
    """A handler that closes its pool does not wait for itself."""
    answers: list[bool] = []
    dispatcher.subscribe(Log, lambda event: answers.extend([dispatcher.flush(), dispatcher.close()]))
    dispatcher.publish(line("x"))
    assert dispatcher.close(WAIT)
    assert [False, True] == answers


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("TaskComplete", r"event_type must be .* not 'TaskComplete'\. Did you mean sky\.TaskCompleted\?"),
        (int, r"event_type must be a class of events"),
        (NodeReady(node=1), r"event_type must be a class of events"),
    ],
    ids=["name", "class", "instance"],
)
def test_types_that_are_none_of_events_are_refused(dispatcher: Dispatcher, kind: object, message: str) -> None:
    """A wrong type is an error at once, and the nearest right one is offered."""
    with pytest.raises(ConfigError, match=message):
        dispatcher.subscribe(kind, print)  # type: ignore[arg-type]


def test_handlers_that_could_not_work_are_refused(dispatcher: Dispatcher) -> None:
    """What cannot be called, or would make a coroutine that nothing awaits, is an error at once."""

    async def handler(event: SkywardEvent) -> None: ...

    with pytest.raises(ConfigError, match="is a coroutine function"):
        dispatcher.subscribe(Log, handler)
    with pytest.raises(ConfigError, match="must be a function that takes an event, not 3"):
        dispatcher.subscribe(Log, 3)  # type: ignore[arg-type]


class Loss(SkywardEvent):
    """An event of the user's."""


@pytest.mark.parametrize(
    ("kind", "own", "asked"),
    [(Loss, False, True), (SkywardEvent, False, True), (Log, False, False), (Loss, True, False), (ALL, True, False)],
)
def test_a_pickle_of_a_node_is_asked_for_by_handlers_of_the_user_alone(
    dispatcher: Dispatcher, kind: Any, own: bool, asked: bool
) -> None:
    """By those of its own class or one that it extends; what Skyward shows and writes asks for none."""
    dispatcher.subscribe(kind, print, own=own)
    assert asked is dispatcher.asks(map(class_name, (Loss, SkywardEvent)))
    assert not dispatcher.asks(["builtins.object"])
