"""A pool is left: handlers that are behind are waited for, and what they do not take is in the log."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from skyward.engine.events.event_dispatcher import Dispatcher
from skyward.engine.events.event_flush import Delivery
from skyward.engine.events.log_files import logging_to
from skyward.model.events.event import Log, NodeReady, SkywardEvent, TaskCompleted
from skyward.model.fields.log_config import LogConfig

WAIT = 10.0
LINES = 3000


class Stepper:
    """A handler that takes one event for each step that it is given, and keeps what it took."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.seen: list[SkywardEvent] = []
        self._steps = threading.Semaphore(0)

    def __call__(self, event: SkywardEvent) -> None:
        self.entered.set()
        assert self._steps.acquire(timeout=WAIT)
        self.seen.append(event)

    def steps(self, count: int) -> None:
        """Let it take so many more."""
        self._steps.release(count)


class Clock:
    """Seconds that pass only while a dispatcher is waited for, all at once, and what happens meanwhile."""

    def __init__(self, stepper: Stepper, *, steps: int) -> None:
        self.now = 0.0
        self.slept = 0
        self._stepper, self._steps = stepper, steps

    def __call__(self) -> float:
        return self.now

    def wait(self, dispatcher: Dispatcher, seconds: float) -> bool:
        """Let that much time pass, and the handler take some events in it."""
        self.now += seconds
        self.slept += 1
        before = dispatcher.handled
        if not self._steps:
            return dispatcher.ended(0.0)
        self._stepper.steps(self._steps)
        deadline = threading.Event()
        while dispatcher.handled < before + self._steps:
            if dispatcher.ended(0.0):
                return True
            deadline.wait(0.001)
        return dispatcher.ended(0.0)


@pytest.fixture
def stepper() -> Iterator[Stepper]:
    made = Stepper()
    yield made
    made.steps(10 * LINES)


@pytest.fixture
def config(tmp_path: Path) -> LogConfig:
    return LogConfig(file=tmp_path / "sky.log", level="ERROR")


def behind(stepper: Stepper, lines: int = LINES) -> Dispatcher:
    """Make a dispatcher whose handler has taken nothing yet."""
    dispatcher = Dispatcher()
    dispatcher.subscribe(SkywardEvent, stepper)
    for number in range(lines):
        dispatcher.publish(Log(line=f"line {number}", node=1, at=0.0))
    assert stepper.entered.wait(WAIT)
    return dispatcher


def texts(stepper: Stepper) -> list[str]:
    return [event.line for event in stepper.seen if isinstance(event, Log)]


def kept(config: LogConfig) -> list[str]:
    """Return the lines that the log kept for a handler."""
    path = Path(config.file)
    found = path.read_text().splitlines() if path.exists() else []
    return [text.partition(" undelivered ")[2] for text in found if " undelivered " in text]


def test_a_slow_handler_gets_every_line(stepper: Stepper, config: LogConfig, caplog: pytest.LogCaptureFixture) -> None:
    """It is waited for much longer than a stuck one would be, and a warning counts what is left meanwhile."""
    dispatcher, clock = behind(stepper), Clock(stepper, steps=100)
    with logging_to(config), caplog.at_level(logging.WARNING, "skyward.engine.events.event_flush"):
        assert Delivery(dispatcher, config, clock=clock, ended=clock.wait).finish()
    assert [f"line {number}" for number in range(LINES)] == texts(stepper)
    assert clock.now > 60
    assert [] == kept(config)
    first = caplog.records[0].getMessage()
    assert "events.waiting" in first
    assert "2,900 log lines" in first
    assert "Stepper" in first


def test_a_stuck_handler_is_given_up_and_its_lines_are_in_the_log(
    stepper: Stepper, config: LogConfig, caplog: pytest.LogCaptureFixture
) -> None:
    """None is lost: that which the handler has in hand and those that wait are written down, in order."""
    dispatcher, clock = behind(stepper), Clock(stepper, steps=0)
    dispatcher.publish(NodeReady(node=1))
    dispatcher.publish(TaskCompleted(task_id="3", function="f", node=1, success=True, duration=1.0, at=0.0))
    with logging_to(config), caplog.at_level(logging.WARNING, "skyward.engine.events.event_flush"):
        assert not Delivery(dispatcher, config, clock=clock, ended=clock.wait).finish()
    written = kept(config)
    assert [f"node=1 stdout line {number}" for number in range(LINES)] == written[:LINES]
    assert ["NodeReady", "TaskCompleted"] == [text.split()[0] for text in written[LINES:]]
    last = caplog.records[-1].getMessage()
    assert "3,000 log lines and 2 other events" in last
    assert config.file in last
    assert clock.now == 10.0


def test_what_a_hurried_end_leaves_is_in_the_log(stepper: Stepper, config: LogConfig) -> None:
    """A pool that was left by an interrupt waits five seconds in all, also for a handler that gets on."""
    dispatcher, clock = behind(stepper), Clock(stepper, steps=100)
    delivery = Delivery(dispatcher, config, clock=clock, ended=clock.wait)
    with logging_to(config), pytest.raises(SystemExit), delivery:
        raise SystemExit
    assert clock.now == 5.0
    stepper.steps(LINES)
    assert dispatcher.ended(WAIT)
    first_kept = int(kept(config)[0].split()[-1])
    assert [f"node=1 stdout line {number}" for number in range(first_kept, LINES)] == kept(config)
    assert first_kept <= len(texts(stepper))


def test_an_interrupt_skips_the_rest_and_counts_it(
    stepper: Stepper, config: LogConfig, caplog: pytest.LogCaptureFixture
) -> None:
    """Ctrl-C is raised as ever, after what was not delivered has been written down."""
    dispatcher = behind(stepper)

    def interrupted(dispatcher: Dispatcher, seconds: float) -> bool:
        raise KeyboardInterrupt

    with logging_to(config), caplog.at_level(logging.WARNING, "skyward.engine.events.event_flush"):
        delivery = Delivery(dispatcher, config, ended=interrupted)
        with pytest.raises(KeyboardInterrupt):
            delivery.finish()
    assert LINES == len(kept(config))
    assert "3,000 log lines" in caplog.records[-1].getMessage()


def test_another_thread_can_skip_the_rest(stepper: Stepper, config: LogConfig) -> None:
    """As the task of an async block does, which hears of an interrupt where the pool's thread does not."""
    dispatcher = behind(stepper)
    delivery = Delivery(dispatcher, config)
    with logging_to(config):
        finishing = threading.Thread(target=delivery.finish)
        finishing.start()
        delivery.skip()
        finishing.join(WAIT)
        assert not finishing.is_alive()
    assert LINES == len(kept(config))


def test_without_a_log_a_warning_says_that_lines_are_lost(stepper: Stepper, caplog: pytest.LogCaptureFixture) -> None:
    """With `logging=False` there is no file, and the count says so."""
    dispatcher, clock = behind(stepper, 10), Clock(stepper, steps=0)
    with caplog.at_level(logging.WARNING, "skyward.engine.events.event_flush"):
        assert not Delivery(dispatcher, None, clock=clock, ended=clock.wait).finish()
    assert "10 log lines" in caplog.records[-1].getMessage()
    assert "logging" in caplog.records[-1].getMessage()


def test_a_handler_may_leave_its_own_pool(config: LogConfig) -> None:
    """It does not wait for itself; what comes after it is delivered all the same."""
    dispatcher, answers, both, last = Dispatcher(), list[bool](), threading.Event(), threading.Event()
    delivery = Delivery(dispatcher, config)

    def leaves(event: Log) -> None:
        if event.line == "first":
            assert both.wait(WAIT)
            answers.append(delivery.finish())
        else:
            last.set()

    dispatcher.subscribe(Log, leaves)
    dispatcher.publish(Log(line="first", node=0, at=0.0))
    dispatcher.publish(Log(line="second", node=0, at=0.0))
    both.set()
    assert last.wait(WAIT)
    assert [True] == answers
