"""The client's end of a guardian whose process is a stand-in, on virtual time."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from skyward.engine.guardian import guardian_messages
from skyward.engine.guardian.guardian_link import KILLED, START, GuardianLink
from skyward.plan.instances.guardian_duty import InstanceRented
from tests.engine.guardian.test_guardian_process import play


class Process:
    """A process that ends when it is killed, or told to."""

    pid = 7

    def __init__(self) -> None:
        self.code: int | None = None
        self.killed = 0

    def poll(self) -> int | None:
        """Tell how it ended."""
        return self.code

    def kill(self) -> None:
        """End at once."""
        self.killed += 1
        self.code = -9

    def wait(self) -> int | None:
        """Be reaped."""
        return self.code


class Pipe:
    """Keep what is written."""

    def __init__(self) -> None:
        self.messages: list[Any] = []
        self.closed = False

    def write(self, data: bytes) -> None:
        """Take a message."""
        self.messages.append(guardian_messages.message(data[8:]))

    def close(self) -> None:
        """Be closed."""
        self.closed = True


class Scene:
    """A link, and the other end of it."""

    def __init__(self) -> None:
        self.process, self.pipe, self.reader = Process(), Pipe(), asyncio.StreamReader()
        self.link = GuardianLink(self.process, self.reader, self.pipe)  # type: ignore[arg-type]

    def answer(self, trouble: str = "") -> None:
        """Answer what was asked next."""
        self.reader.feed_data(guardian_messages.framed(trouble.encode()))


def test_answers_go_to_those_who_asked_in_their_order() -> None:
    """Those of messages that no caller waits for go to none."""

    async def scene() -> None:
        one = Scene()
        one.link.send(InstanceRented(("i-0",)))
        asked = [asyncio.ensure_future(one.link.ask(guardian_messages.packed(text))) for text in ("first", "second")]
        await asyncio.sleep(0)
        one.answer("told")
        one.answer()
        one.answer("it cannot")
        assert ["", "it cannot"] == await asyncio.gather(*asked)
        assert [InstanceRented(("i-0",)), "first", "second"] == one.pipe.messages
        await one.link.end(0.0)

    play(scene())


def test_a_guardian_that_dies_answers_nobody_any_more() -> None:
    """Callers that wait hear of it, so do later ones, and what is said to it is dropped."""

    async def scene() -> None:
        one = Scene()
        waiting = asyncio.ensure_future(one.link.ask(guardian_messages.packed("first")))
        await asyncio.sleep(0)
        one.reader.feed_eof()
        with pytest.raises(ConnectionError, match=r"guardian \(process 7\) died"):
            await waiting
        assert "guardian (process 7) died" == await one.link.lost
        with pytest.raises(ConnectionError, match="died"):
            await one.link.ask(guardian_messages.packed("second"))
        one.link.send(InstanceRented(("i-0",)))
        assert ["first"] == one.pipe.messages
        assert one.pipe.closed

    play(scene())


def test_one_that_does_not_answer_is_ended() -> None:
    """After a minute; it cannot be relied on."""

    async def scene() -> None:
        one, loop = Scene(), asyncio.get_running_loop()
        with pytest.raises(TimeoutError, match=f"did not answer within {START:g} s"):
            await one.link.ask(guardian_messages.packed("first"))
        assert (1, START) == (one.process.killed, pytest.approx(loop.time()))

    play(scene())


@pytest.mark.parametrize(("goes_after", "killed"), [(2.0, 0), (60.0, 1), (None, 1)])
def test_one_that_is_sent_home_has_its_time(goes_after: float | None, killed: int) -> None:
    """If it stays it is killed."""

    async def scene() -> None:
        one, loop = Scene(), asyncio.get_running_loop()
        if goes_after is not None:
            loop.call_later(goes_after, setattr, one.process, "code", 0)
        await one.link.end(5.0)
        assert killed == one.process.killed
        assert loop.time() <= 5.0 + KILLED
        assert one.pipe.closed

    play(scene())


def test_one_that_goes_on_alone_is_let_go() -> None:
    """It is neither killed nor waited for."""

    async def scene() -> None:
        one = Scene()
        one.link.leave()
        assert (0, True) == (one.process.killed, one.pipe.closed)
        with pytest.raises(asyncio.CancelledError):
            await one.link.lost

    play(scene())
