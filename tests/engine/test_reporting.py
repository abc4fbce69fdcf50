"""Lines of nodes on their way to handlers that are slow at times."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from skyward.engine.dispatcher import Dispatcher
from skyward.engine.reporting import Reporting
from skyward.link.messages import LogLine
from skyward.model.event import Log


class Node:
    """A node that counts what of its lines was taken, and a loop that runs what is posted to it when it is told to."""

    index = 0
    info = None

    def __init__(self) -> None:
        self.link = self
        self.taken = 0
        self.posted: list[Callable[[], None]] = []
        self.waken = threading.Event()

    def acknowledge_log(self, size: int) -> None:
        self.taken += size

    def post(self, do: Callable[[], None]) -> None:
        self.posted.append(do)
        self.waken.set()


def test_node_may_go_on_whenever_handlers_have_caught_up() -> None:
    """It is told once each time, also the first."""
    slow, node = threading.Semaphore(0), Node()
    dispatcher = Dispatcher(limit=10)
    dispatcher.subscribe(Log, lambda _: slow.acquire())
    meter: Any = None
    shell: Any = node
    reporting = Reporting(dispatcher, meter)
    try:
        for times in range(1, 4):
            reporting.lines(shell, 1, [LogLine(0, "one")] * 300, 100)
            assert dispatcher.pressure
            assert (times - 1) * 100 == node.taken, "the node is to wait"
            slow.release(300)
            assert node.waken.wait(30)
            node.waken.clear()
            assert dispatcher.flush(30)
            assert 1 == len(node.posted)
            node.posted.pop()()
            assert times * 100 == node.taken
    finally:
        slow.release(1000)
        dispatcher.close()
