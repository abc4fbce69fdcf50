"""What a node tells unasked waits as bytes while handlers are behind, in order, and has an end."""

from __future__ import annotations

import gc
import os

import pytest

from skyward.engine.nodes.inflow import Inflow
from skyward.errors import ProtocolError
from skyward.link.frames import Frame, Kind
from skyward.link.messages import EMIT
from skyward.link.payload_making import pack
from skyward.link.segment import anonymous_file
from skyward.link.windows import OUTPUT_WINDOW, cost


class Handlers:
    """Take frames while they are not behind."""

    def __init__(self) -> None:
        self.behind = False
        self.taken: list[Frame] = []
        self.leave = 0
        self.inflow = Inflow(self.take, self.give, lambda: self.behind)

    def take(self, frame: Frame, fds: tuple[int, ...]) -> None:
        for fd in fds:
            os.close(fd)
        self.taken.append(frame)

    def give(self, size: int) -> None:
        self.leave += size


def line(number: int, size: int = 60_000) -> Frame:
    """Make a frame of a line."""
    return Frame(Kind.LOG, number, 0, bytes(size))


def event(size: int) -> Frame:
    """Make a frame of an event with a buffer of so many bytes."""
    return Frame(Kind.EMIT, 0, 1, EMIT.pack(7, 0) + pack([bytes(size)]).encode())


def test_frames_are_passed_on_in_order_and_paid_back() -> None:
    """At once while handlers keep up, later what came while they did not; all but a rest of it is paid back."""
    handlers = Handlers()
    for number in range(30):
        handlers.behind = 10 <= number < 20
        handlers.inflow.take(line(number), ())
        assert (10 if handlers.behind else number + 1) == len(handlers.taken)
    assert list(range(30)) == [frame.lane for frame in handlers.taken]
    owed = sum(map(cost, handlers.taken)) - handlers.leave
    assert 0 <= owed < OUTPUT_WINDOW // 16


def test_a_node_that_goes_on_beyond_its_window_is_refused() -> None:
    """What has arrived until then is at most the window and one frame."""
    handlers = Handlers()
    handlers.behind = True
    most = OUTPUT_WINDOW // cost(line(0)) + 1
    for number in range(most):
        handlers.inflow.take(line(number), ())
    with pytest.raises(ProtocolError, match="sent a LOG frame beyond its window"):
        handlers.inflow.take(line(most), ())
    handlers.behind = False
    handlers.inflow.go_on()
    assert OUTPUT_WINDOW <= sum(map(cost, handlers.taken)) <= OUTPUT_WINDOW + 2 * cost(line(0))


def test_buffers_count_when_they_are_announced() -> None:
    """And not again when they are there; what a node may not send takes no memory."""
    handlers = Handlers()
    handlers.behind = True
    coming = event(OUTPUT_WINDOW)
    handlers.inflow.announced(coming)
    with pytest.raises(ProtocolError, match="sent a EMIT frame beyond its window"):
        handlers.inflow.announced(event(70_000_000 // 64))
    handlers.inflow.take(coming, (anonymous_file(),))
    handlers.behind = False
    handlers.inflow.go_on()
    assert [coming] == handlers.taken
    assert cost(coming) == handlers.leave


def test_what_has_arrived_is_passed_on_when_the_link_is_over() -> None:
    """Also while handlers are behind: it is bounded, and would be lost otherwise."""
    handlers = Handlers()
    handlers.behind = True
    for number in range(3):
        handlers.inflow.take(line(number), ())
    handlers.inflow.take(event(300_000), (anonymous_file(),))
    handlers.inflow.close()
    assert [0, 1, 2, 0] == [frame.lane for frame in handlers.taken]


def test_descriptors_of_what_is_never_passed_on_are_closed() -> None:
    """The node is forgotten with what it has told."""
    handlers = Handlers()
    handlers.behind = True
    fd = anonymous_file()
    handlers.inflow.take(event(300_000), (fd,))
    del handlers
    gc.collect()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)
