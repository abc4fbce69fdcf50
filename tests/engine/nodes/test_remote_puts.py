"""What stands for a value at a node, and what a node may send of it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import Any

import pytest

from skyward.engine.nodes.node_link import NodeLink
from skyward.engine.nodes.remote_puts import RemotePuts
from skyward.errors import ProtocolError, RefError
from skyward.link.absent import Absent, returned
from skyward.link.frames import Frame, Kind
from skyward.link.messages import BLOB
from skyward.link.refs import Refs
from skyward.link.segment import write_segment
from skyward.model.spec.trust_setting import DATA

NAME = b"n" * 32
SIZE = 4096


class Channel:
    """Take note of frames."""

    closed = False

    def __init__(self) -> None:
        self.kinds: list[int] = []
        self.error: Exception | None = None

    def send(self, frame: bytes, *_: object) -> None:
        self.kinds.append(frame[4])

    def close(self, error: Exception | None = None) -> None:
        self.closed, self.error = True, error


class Engine:
    """The loop that runs."""

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        return asyncio.get_running_loop()

    def post(self, do: Callable[[], None]) -> None:
        self.loop.call_soon_threadsafe(do)


def made() -> tuple[Any, RemotePuts, Absent]:
    """Make a node that has one value."""
    channel = Channel()
    link = NodeLink(channel)  # type: ignore[arg-type]
    puts = link.buffers.puts = RemotePuts(Engine(), link, "node 3", DATA, Refs())  # type: ignore[arg-type]
    absent = puts.there(NAME, SIZE)
    assert isinstance(absent, Absent)
    return channel, puts, absent


def frame(name: bytes = NAME, size: int = SIZE) -> Frame:
    """Make what a node sends."""
    return Frame(Kind.BLOB, 0, 1, BLOB.pack(name, size))


def fds(size: int = SIZE) -> tuple[int, ...]:
    """Give memory of a size."""
    segment = write_segment([[b"x" * size]])
    return (os.dup(segment.fd),)


def test_content_comes_once_for_all_that_wait() -> None:
    """One GIVE, and none when it is there."""

    async def check() -> None:
        channel, puts, absent = made()
        heard: list[str] = []
        absent.fetch(heard.append)
        absent.fetch(heard.append)
        assert channel.kinds == [Kind.GIVE]
        assert puts.announced(frame())
        puts.came(frame(), fds())
        absent.fetch(heard.append)
        assert heard == [""] * 3
        assert channel.kinds == [Kind.GIVE]
        assert bytes(absent.map()) == b"x" * SIZE

    asyncio.run(check())


@pytest.mark.parametrize("sent", [frame(b"o" * 32), frame(size=SIZE + 64), Frame(Kind.BLOB, 0, 1, b"short")])
def test_what_was_not_asked_for_is_refused(sent: Frame) -> None:
    """Another name, another size, a torn frame: before memory is taken for it."""

    async def check() -> None:
        _, puts, absent = made()
        absent.fetch(lambda _: None)
        with pytest.raises(ProtocolError):
            puts.announced(sent)

    asyncio.run(check())


def test_what_was_not_asked_for_at_all_is_refused() -> None:
    """No GIVE, no BLOB."""

    async def check() -> None:
        _, puts, _absent = made()
        with pytest.raises(ProtocolError, match="not asked for"):
            puts.announced(frame())

    asyncio.run(check())


def test_less_memory_than_was_said_is_refused() -> None:
    """Reading behind its end would end this process."""

    async def check() -> None:
        _, puts, absent = made()
        absent.fetch(lambda _: None)
        with pytest.raises(ProtocolError, match="holds"):
            puts.came(frame(), fds(64))

    asyncio.run(check())


def test_two_values_of_one_name_are_refused() -> None:
    """What one of them refers to would go with the other."""
    _, puts, _absent = made()
    with pytest.raises(ProtocolError, match="alike"):
        puts.there(NAME, SIZE)


@pytest.mark.parametrize("how", ["gone", "lost", "late"])
def test_what_does_not_come_is_said(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The node dropped it, is lost, or does not answer in time: that one is refused."""
    monkeypatch.setattr("skyward.engine.nodes.remote_puts.GIVES_WITHIN", 0.01 if how == "late" else 60.0)

    async def check() -> None:
        channel, puts, absent = made()
        heard: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        absent.fetch(heard.set_result)
        if how == "gone":
            puts._link.forgot(NAME)
        elif how == "lost":
            puts.close()
        assert "node 3" in await asyncio.wait_for(heard, 10)
        assert absent.lost
        assert (how == "late") == ("GIVES_WITHIN" in str(channel.error))

    asyncio.run(check())


def test_the_node_hears_when_nothing_refers_to_it() -> None:
    """With the next thing that is sent at the latest."""
    channel, puts, absent = made()
    del absent
    puts._link.buffers.drop_gone()
    assert channel.kinds == [Kind.DROP]
    assert not puts.has(NAME)


def test_a_ref_of_any_size_takes_no_memory_here() -> None:
    """A node may have more than this machine."""
    _, puts, _absent = made()
    ref = returned(puts.there(b"l" * 32, 1 << 45), (1 << 44,))
    assert ref.nbytes == 1 << 44


@pytest.mark.parametrize("sizes", [(), (SIZE + 1,), (-1,), [SIZE], (True,), ("a",), (SIZE, 64)])
def test_a_ref_of_other_sizes_than_its_buffer_is_refused(sizes: Any) -> None:
    """Nothing is looked for behind its end."""
    _, _puts, absent = made()
    with pytest.raises(ValueError, match="sizes"):
        returned(absent, sizes)
    with pytest.raises(RefError):
        returned(b"bytes", (5,))
