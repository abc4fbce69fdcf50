"""An agent sends heartbeats, but not beside other frames; on a virtual clock."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

import pytest

from skyward.link.channel import Batch, Channel
from skyward.link.frames import Frame, Kind, encode
from skyward.node.agent.heartbeat import Heartbeat
from tests.simulated.loop import VirtualLoop


class Ends:
    """An agent's end of a socket that beats, and the client's."""

    def __init__(self, loop: VirtualLoop, interval: float | None) -> None:
        ours, theirs = socket.socketpair()
        self.frames: list[Frame] = []
        batch = Batch(loop)
        self.agent = Channel(loop, batch, ours, lambda frame, fds: None, lambda error: None)
        self.client = Channel(loop, batch, theirs, lambda frame, fds: self.frames.append(frame), lambda error: None)
        self.heartbeat = Heartbeat(loop)
        self.heartbeat.start(interval, self.agent)

    def close(self) -> None:
        self.heartbeat.stop()
        self.agent.close()
        self.client.close()


def run(interval: float | None, seconds: float, do: Callable[[Ends], None] = lambda ends: None) -> Ends:
    """Let time go by for two ends, and give what came of it."""
    loop = VirtualLoop()

    async def inside() -> Ends:
        ends = Ends(loop, interval)
        for _ in range(int(seconds)):
            do(ends)
            await asyncio.sleep(1.0)
        ends.close()
        return ends

    try:
        return loop.run_until_complete(inside())
    finally:
        loop.close()


def test_an_idle_agent_beats() -> None:
    """Once each interval, with frames that have no body."""
    ends = run(3.0, 31.0)
    assert [Kind.BEAT] * 10 == [frame.kind for frame in ends.frames]
    assert [b""] * 10 == [frame.body for frame in ends.frames]
    assert ends.client.heard == 10


def test_an_agent_that_sends_something_else_does_not_beat() -> None:
    """Any frame shows that it is there."""
    ends = run(3.0, 30.0, lambda ends: ends.agent.send(encode(Kind.METRIC, b"{}")))
    assert {Kind.METRIC} == {frame.kind for frame in ends.frames}
    assert ends.client.heard >= 10


@pytest.mark.parametrize("interval", [None, 0.0])
def test_no_interval_is_no_heartbeat(interval: float | None) -> None:
    """Where silence is of no interest."""
    assert [] == run(interval, 30.0).frames


def test_heartbeats_do_not_pile_up_for_a_client_that_does_not_read() -> None:
    """What waits already is enough."""

    def fill(ends: Ends) -> None:
        ends.client.pause()
        if not ends.agent.backlog:
            ends.agent.send(encode(Kind.LOG, bytes(1 << 20)))
            ends.agent.send(encode(Kind.LOG, bytes(1 << 20)))

    ends = run(3.0, 100.0, fill)
    assert not any(frame.kind == Kind.BEAT for frame in ends.frames)
