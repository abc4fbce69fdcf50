"""Lines and events of nodes on their way to handlers that are slow at times."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from skyward.engine.events import reporting as reporting_of_core
from skyward.engine.events.emitted_events import OPENED_AT_ONCE
from skyward.engine.events.event_dispatcher import Dispatcher
from skyward.engine.events.reporting import Reporting
from skyward.engine.instances.billed_lives import BilledLives
from skyward.engine.nodes.inflow import Inflow
from skyward.link.emitted import Emitted, decode_event, encode_event
from skyward.link.frames import Frame, Kind
from skyward.link.messages import LogLine, decode_lines, encode_lines
from skyward.link.windows import OUTPUT_WINDOW, cost
from skyward.model.events.event import (
    ALL,
    BootstrapPhase,
    BootstrapProgress,
    CostFinal,
    Error,
    Log,
    NodeReady,
    Progress,
    SkywardEvent,
)
from skyward.model.instances.instance import InstanceInfo

BODY = encode_lines(1, [LogLine(0, "one")] * 20_000)


opened: list[str] = []
"""Which events of nodes were opened, as their pickles tell."""


class Loss(SkywardEvent):
    """An event of the user's that tells when it is opened."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        opened.append(type(self).__qualname__)
        super().__setstate__(state)


class Node:
    """A node that counts what of its lines was taken, and a loop that runs what is posted to it when it is asked to."""

    index = 0
    info = None
    ahead = 1.0

    def __init__(self, reporting: Reporting) -> None:
        self.taken = 0
        self.posted: list[Callable[[], None]] = []
        self.waken = threading.Event()
        shell: Any = self
        self.inflow = Inflow(
            lambda frame, fds: reporting.lines(shell, *decode_lines(frame.body)),
            self.give_leave,
            lambda: reporting.emitted.behind(shell),
        )

    def give_leave(self, size: int) -> None:
        self.taken += size

    def go_on(self) -> None:
        self.inflow.go_on()

    def post(self, do: Callable[[], None]) -> None:
        self.posted.append(do)
        self.waken.set()


def test_node_may_go_on_whenever_handlers_have_caught_up() -> None:
    """It hears so once each time, also the first."""
    slow, frame = threading.Semaphore(0), Frame(Kind.LOG, 0, 0, BODY)
    dispatcher = Dispatcher(limit=10)
    dispatcher.subscribe(Log, lambda _: slow.acquire())
    meter: Any = None
    node = Node(Reporting(dispatcher, meter))
    try:
        # The first is passed on as nothing waits, the others one by one as handlers catch up.
        for _ in range(4):
            node.inflow.take(frame, ())
        for times in range(1, 4):
            assert dispatcher.pressure
            assert times * cost(frame) == node.taken, "the node is to wait"
            slow.release(20_000)
            assert node.waken.wait(30)
            node.waken.clear()
            assert dispatcher.flush(30)
            assert 1 == len(node.posted)
            node.posted.pop()()
    finally:
        slow.release(100_000)
        dispatcher.close()


def test_a_node_is_held_back_while_its_events_are_unpickled() -> None:
    """Each costs far more memory in that queue than on its way; it goes on when half of them are done."""
    dispatcher = Dispatcher()
    dispatcher.subscribe(NodeReady, lambda _: None)
    meter: Any = None
    reporting = Reporting(dispatcher, meter)
    node: Any = Node(reporting)
    event, begin = emitted(NodeReady(node=1)), threading.Event()
    # The one thread that unpickles waits until the test has looked.
    reporting.emitted.take(node, event)
    assert reporting.emitted._unpickling is not None
    reporting.emitted._unpickling.submit(begin.wait, 30)
    try:
        for _ in range(OPENED_AT_ONCE):
            reporting.emitted.take(node, event)
        assert reporting.emitted.behind(node)
        begin.set()
        assert node.waken.wait(30)
    finally:
        begin.set()
        reporting.emitted.close()
        dispatcher.close()
    assert not reporting.emitted.behind(node)
    assert OUTPUT_WINDOW > OPENED_AT_ONCE * 1024


def test_a_result_waits_no_longer_for_a_handler_than_it_has_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not at all where nothing was printed, and a moment where a handler never comes to its end."""
    monkeypatch.setattr(reporting_of_core, "SHOWING", 0.05)
    stuck = threading.Event()
    dispatcher = Dispatcher()
    dispatcher.subscribe(Error, lambda _: stuck.wait(30))
    dispatcher.subscribe(Log, lambda _: None)
    meter: Any = None
    reporting = Reporting(dispatcher, meter)
    shell: Any = Node(reporting)
    try:
        dispatcher.publish(Error(message="a handler that hangs"))
        assert not dispatcher.lines_waiting
        reporting.caught_up()
        reporting.lines(shell, 1, [LogLine(0, "one")])
        assert dispatcher.lines_waiting
        began = time.monotonic()
        reporting.caught_up()
        assert 0.05 <= time.monotonic() - began
        stuck.set()
        assert dispatcher.flush(30)
        assert not dispatcher.lines_waiting
    finally:
        stuck.set()
        dispatcher.close()


def reported(*emitted: Emitted, listen: Any = (), own: Any = ()) -> list[Any]:
    """Report events of a node, and return what handlers of the user's hear, and Skyward's own."""
    heard: list[Any] = []
    dispatcher = Dispatcher()
    meter: Any = Meter()
    if listen:
        dispatcher.subscribe(listen, heard.append)
    if own:
        dispatcher.subscribe(own, heard.append, own=True)
    reporting = Reporting(dispatcher, meter)
    shell: Any = Node(reporting)
    for one in emitted:
        reporting.emitted.take(shell, one)
    reporting.emitted.close()
    assert dispatcher.close(30)
    return heard


class Meter:
    """A meter that bills nothing."""

    def __init__(self) -> None:
        self.bill = BilledLives(time.monotonic, lambda: None)


def emitted(event: SkywardEvent) -> Emitted:
    return decode_event(encode_event(7, event)[0], ())


def test_an_event_is_opened_where_a_handler_listens_to_it() -> None:
    """In no other pool; events that travel as plain data need no such handler."""
    opened.clear()
    progress = emitted(Progress(at=10.0, label="epochs", done=1))
    assert [Progress(at=9.0, label="epochs", done=1)] == reported(emitted(Loss()), progress, own=ALL)
    assert [] == reported(emitted(Loss()), listen=Log)
    assert [] == opened
    [loss] = reported(emitted(Loss()), listen=SkywardEvent)
    assert ["Loss"] == opened
    assert isinstance(loss, Loss)


def test_an_event_that_says_it_is_another_is_not_delivered() -> None:
    """A pickle that is opened for one class brings no other."""
    pickled = emitted(CostFinal(total_cost=1e9, total_seconds=1.0))
    forged = pickled._replace(names=emitted(Loss()).names)
    [error] = reported(forged, listen=Loss, own=ALL)
    assert isinstance(error, Error)
    assert (
        "says it is a tests.engine.events.test_reporting.Loss, and is a skyward.model.events.cost_event.CostFinal"
        in error.message
    )


def test_each_phase_of_a_bootstrap_begins_with_its_step() -> None:
    """Whatever machine it is on; the event names the instance, and is a phase that has started."""
    heard: list[SkywardEvent] = []
    dispatcher, meter = Dispatcher(), cast("Any", Meter())
    dispatcher.subscribe(BootstrapPhase, heard.append)
    reporting = Reporting(dispatcher, meter)
    info = InstanceInfo(id="i-7", node=2)
    shell: Any = SimpleNamespace(index=2, info=info, instance=info)
    reporting.preparing(shell, BootstrapPhase(phase="deps", event="started", at=1.0))
    reporting.preparing(shell, BootstrapPhase(phase="deps", event="completed", elapsed=2.0, at=3.0))
    dispatcher.close()
    assert [
        BootstrapProgress(step="deps", instance_id="i-7", instance=info, at=1.0),
        BootstrapPhase(phase="deps", event="completed", elapsed=2.0, instance=info, at=3.0),
    ] == heard
