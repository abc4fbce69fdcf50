"""Lines on their way to a client that reads slowly, or is away for a while."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from skyward.link.frames import Frame, Kind, Parser
from skyward.link.messages import LogLine, decode_lines
from skyward.link.windows import cost
from skyward.node.agent.line_flow import WINDOW, Lines, SpooledLines
from skyward.node.agent.spool import Spool

SIZE = 700_000

STEPS = st.lists(st.sampled_from(["print", "print", "print", "read", "leave", "come", "look"]), max_size=60)


class Node:
    """One process that prints while it is listened to, and a client that reads when it is asked to."""

    lane = 3

    def __init__(self, directory: Path, files: int) -> None:
        self.gone = False
        self.parked = False
        self.heard = True
        self.printed: list[str] = []
        self.read: list[str] = []
        self.notices = 0
        self.unread: list[tuple[int, list[str]]] = []
        self.loop = asyncio.new_event_loop()
        self.spool = Spool(str(directory), files=files, file_bytes=2 << 20)
        link: Any = self
        process: Any = self
        self.lines = SpooledLines(self.tell, lambda: [process], loop=self.loop, link=link, spool=self.spool)

    def away(self, patience: float) -> bool:
        return self.gone

    def listen(self) -> None:
        self.heard = True

    def deafen(self) -> None:
        self.heard = False

    def tell(self, data: bytes, fds: tuple[int, ...], hold: object) -> None:
        (frame,) = Parser().feed(data)
        assert frame.kind == Kind.LOG
        stream, lines = decode_lines(frame.body)
        if stream == 2:
            self.notices += 1
        else:
            assert frame.lane == self.lane
            self.unread.append((cost(frame), [line.text[:10] for line in lines]))

    def print(self) -> None:
        if self.heard:
            self.printed.append(f"{len(self.printed):010}")
            process: Any = self
            self.lines.say(process, 1, [LogLine(0, self.printed[-1].ljust(SIZE))])

    def step(self, step: str) -> None:
        match step:
            case "print":
                self.print()
            case "read" if self.unread and not self.gone:
                size, lines = self.unread.pop(0)
                self.read += lines
                self.lines.read(size)
            case "leave" | "come":
                self.gone = step == "leave"
            case "look":
                self.lines._look()

    def close(self) -> None:
        self.lines.close()
        self.loop.close()


@given(STEPS)
@settings(max_examples=150, deadline=None)
def test_what_is_kept_arrives_once_and_in_order(tmp_path_factory: pytest.TempPathFactory, steps: list[str]) -> None:
    """Nothing is lost unless the client is away, and nothing more than the window is on the way."""
    node = Node(tmp_path_factory.mktemp("lines"), files=64)
    try:
        for step in steps:
            node.step(step)
            assert sum(size for size, _ in node.unread) <= WINDOW + SIZE + 1000
            if step == "look":
                assert node.heard or not node.gone
        node.gone = False
        while node.unread:
            node.step("read")
        assert node.read == node.printed
        assert node.notices == 0
        assert node.heard
    finally:
        node.close()


def test_events_wait_for_the_client_and_results_wait_behind_them(tmp_path: Path) -> None:
    """A result tells the client that nothing more comes of its call; one whose events do not wait goes at once."""
    told: list[str] = []

    def tell(data: bytes, fds: tuple[int, ...], hold: object) -> None:
        (frame,) = Parser().feed(data)
        told.append(frame.body[:5].decode())

    lines = Lines(tell, list)
    for number in range(8):
        lines.emit(0, Frame(Kind.EMIT, 0, 0, f"e{number:04}".encode().ljust(1 << 20)), ())
        lines.after(lambda fds, number=number: told.append(f"r{number:04}"), ())  # type: ignore[misc]
        assert lines.holding == (number >= 4)
    order = [f"{kind}{number:04}" for number in range(8) for kind in "er"]
    assert order[:8] == told
    lines.read(cost(Frame(Kind.EMIT, 0, 0, bytes(1 << 20))))
    assert order[:10] == told
    lines.read(4 * cost(Frame(Kind.EMIT, 0, 0, bytes(1 << 20))))
    assert order == told
    assert not lines.holding


def test_client_that_comes_and_goes_without_reading_is_sent_no_more(tmp_path: Path) -> None:
    """What was listened to because it was away is kept, though it has come back by then."""
    node = Node(tmp_path, files=64)
    try:
        while node.heard:
            node.step("print")
        sent = len(node.unread)
        for _ in range(10):
            for step in ("leave", "look", "come", "print"):
                node.step(step)
        assert len(node.unread) == sent
        assert len(node.printed) == sent + 10
        while node.unread:
            node.step("read")
        assert node.read == node.printed
    finally:
        node.close()


def test_oldest_lines_are_lost_when_a_client_is_away_for_too_much(tmp_path: Path) -> None:
    """The loss is reported, and what remains is in order."""
    node = Node(tmp_path, files=2)
    try:
        node.step("leave")
        for _ in range(60):
            node.step("print")
        assert len(node.printed) == 60, "nobody who prints waits for a client that is away"
        node.step("come")
        while node.unread:
            node.step("read")
        assert node.notices == 1
        assert node.read == sorted(set(node.read))
        assert node.read[:6] == node.printed[:6]
        assert node.read[-3:] == node.printed[-3:]
        assert len(node.read) < 60
    finally:
        node.close()


def test_client_that_is_there_and_slow_is_waited_for(tmp_path: Path) -> None:
    """Also while it catches up: nothing is lost then."""
    node = Node(tmp_path, files=2)
    try:
        for _ in range(60):
            node.step("print")
        assert not node.heard
        assert len(node.printed) < 10
        assert not node.spool.waiting
        node.step("leave")
        node.step("look")
        assert node.heard
        node.step("print")
        node.step("come")
        for _ in range(60):
            node.step("print")
        assert not node.heard
        while node.unread:
            node.step("read")
        assert node.read == node.printed
        assert node.notices == 0
    finally:
        node.close()


def test_what_is_printed_between_two_clients_is_for_the_second(tmp_path: Path) -> None:
    """Nothing is sent to one that has left, and the next has read nothing yet."""
    node = Node(tmp_path, files=4)
    node.print()
    node.parked = True
    node.lines.park()
    for _ in range(3):
        node.print()
    assert len(node.unread) == 1
    node.unread.clear()
    node.parked = False
    node.lines.succeeded()
    while node.unread:
        node.step("read")
    assert node.read == node.printed[1:]
    node.close()
