"""Frames and descriptors over a real socket in a real loop."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable
from typing import Any

import pytest

from skyward.errors import ProtocolError, TransportError
from skyward.link.channel import Batch, Channel
from skyward.link.descriptors import own
from skyward.link.frames import Frame, Kind, encode
from skyward.link.messages import CANCEL


class End:
    """One end of a connection, and what arrived there."""

    def __init__(self, loop: asyncio.AbstractEventLoop, batch: Batch, sock: socket.socket) -> None:
        self.frames: list[tuple[Frame, tuple[int, ...]]] = []
        self.closed: asyncio.Future[Exception | None] = loop.create_future()
        self.channel = Channel(loop, batch, sock, self._frame, self._closed)

    def _frame(self, frame: Frame, fds: tuple[int, ...]) -> None:
        own(fds)
        self.frames.append((frame, fds))

    def _closed(self, error: Exception | None) -> None:
        self.closed.set_result(error)

    async def until(self, condition: Callable[[], Any]) -> None:
        """Let the loop run until a condition holds."""
        async with asyncio.timeout(10):
            while not condition():  # noqa: ASYNC110  # the loop has to go round for it to come true
                await asyncio.sleep(0)


def _run(test: Callable[[End, End], Any]) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        batch = Batch(loop)
        one, other = (End(loop, batch, sock) for sock in socket.socketpair())
        try:
            await test(one, other)
        finally:
            one.channel.close()
            other.channel.close()

    asyncio.run(main())


def test_frames_arrive_in_order() -> None:
    """Many small ones and large ones, both ways."""

    async def test(one: End, other: End) -> None:
        bodies = [bytes([number % 256]) * (number * 700) for number in range(300)]
        for body in bodies:
            one.channel.send(encode(Kind.TASK, body))
            other.channel.send(encode(Kind.RESULT, body))
        await one.until(lambda: len(one.frames) == len(other.frames) == 300)
        assert [frame.body for frame, _ in other.frames] == bodies
        assert [frame.body for frame, _ in one.frames] == bodies
        assert one.channel.backlog == 0

    _run(test)


def test_descriptors_arrive_with_their_frames() -> None:
    """Also between large frames without any."""

    async def test(one: End, other: End) -> None:
        pipes = [os.pipe() for _ in range(5)]
        for number, (read, _) in enumerate(pipes):
            one.channel.send(encode(Kind.TASK, bytes(300_000)))
            one.channel.send(encode(Kind.ITEM, bytes([number]), fds=1), (read,))
        await one.until(lambda: len(other.frames) == 10)
        for (read, write), (frame, fds) in zip(pipes, other.frames[1::2], strict=True):
            os.write(write, frame.body)
            assert os.read(fds[0], 10) == frame.body
            for fd in (read, write, *fds):
                os.close(fd)

    _run(test)


def test_end_in_good_order_is_no_error() -> None:
    """Everything that was sent before arrives."""

    async def test(one: End, other: End) -> None:
        one.channel.send(encode(Kind.TASK, bytes(1_000_000)))
        one.channel.end()
        assert await asyncio.wait_for(other.closed, 10) is None
        assert len(other.frames) == 1

    _run(test)


@pytest.mark.parametrize("data", [b"GET / HTTP/1.1\r\n\r\n", b"\xff" * 64, bytes(64)])
def test_hostile_bytes_close_the_link_with_a_clear_error(data: bytes) -> None:
    """And nothing else is harmed."""

    async def test(one: End, other: End) -> None:
        one.channel._sock.send(data)
        error = await asyncio.wait_for(other.closed, 10)
        assert isinstance(error, ProtocolError)

    _run(test)


def test_end_inside_a_frame_is_an_error() -> None:
    """A torn frame is reported."""

    async def test(one: End, other: End) -> None:
        one.channel._sock.send(encode(Kind.TASK, b"abc")[:6])
        one.channel.close()
        error = await asyncio.wait_for(other.closed, 10)
        assert isinstance(error, TransportError)
        assert "inside a frame" in str(error)

    _run(test)


def test_handler_that_raises_closes_only_its_link(caplog: pytest.LogCaptureFixture) -> None:
    """A frame whose body is not what its kind says is the sender's fault."""

    async def test(one: End, other: End) -> None:
        other.channel._on_frame = lambda frame, fds: frame.body.decode().split("=")[1]  # type: ignore[assignment,return-value]
        one.channel.send(encode(Kind.TASK, b"no sign"))
        assert isinstance(await asyncio.wait_for(other.closed, 10), ProtocolError)

    _run(test)
    assert "link.failed" not in caplog.text


def test_bug_in_a_handler_closes_only_its_link(caplog: pytest.LogCaptureFixture) -> None:
    """And is written down as one."""

    async def test(one: End, other: End) -> None:
        other.channel._on_frame = lambda frame, fds: frame.nothing  # type: ignore[assignment,attr-defined]
        one.channel.send(encode(Kind.TASK))
        assert isinstance(await asyncio.wait_for(other.closed, 10), ProtocolError)

    _run(test)
    assert "link.failed" in caplog.text


def test_descriptors_that_no_frame_names_close_the_link() -> None:
    """They would pile up."""

    async def test(one: End, other: End) -> None:
        reading, writing = os.pipe()
        one.channel.send(encode(Kind.READY), (reading,))
        error = await asyncio.wait_for(other.closed, 10)
        assert isinstance(error, ProtocolError)
        assert "1 descriptors arrived that no frame names" in str(error)
        os.close(reading)
        os.close(writing)

    _run(test)


def test_body_of_another_length_closes_the_link() -> None:
    """It says what was wrong with it."""

    async def test(one: End, other: End) -> None:
        other.channel._on_frame = lambda frame, fds: CANCEL.unpack(frame.body)  # type: ignore[assignment,misc]
        one.channel.send(encode(Kind.CANCEL, b"short"))
        error = await asyncio.wait_for(other.closed, 10)
        assert isinstance(error, ProtocolError)
        assert "not what its kind says" in str(error)

    _run(test)


def test_descriptors_of_a_frame_that_makes_no_sense_are_closed() -> None:
    """Nothing else would."""

    async def test(one: End, other: End) -> None:
        reading, writing = os.pipe()
        arrived: list[int] = []

        def refuse(frame: Frame, fds: tuple[int, ...]) -> None:
            arrived.extend(fds)
            raise KeyError("missing")

        other.channel._on_frame = refuse
        one.channel.send(encode(Kind.TASK, fds=1), (reading,))
        error = await asyncio.wait_for(other.closed, 10)
        assert isinstance(error, ProtocolError)
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(arrived[0])
        os.close(reading)
        os.close(writing)

    _run(test)
