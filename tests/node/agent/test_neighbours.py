"""An agent says whether other nodes can be reached, and lets itself be reached meanwhile."""

from __future__ import annotations

import asyncio
import hashlib
import socket
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest

from skyward.link.segment import Segment, write_segment
from skyward.node.agent.neighbours import Neighbours

KEPT: dict[bytes, Segment] = {}


class Asked:
    """Ask the agent's part, and wait for its answers."""

    def __init__(self) -> None:
        self._answers: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.part = Neighbours(asyncio.get_running_loop(), KEPT.get, self._answers.put_nowait)

    async def __call__(self, **question: Any) -> dict[str, Any]:
        """Give the answer to a question."""
        self.part.ask({"number": 7, **question})
        answer = await asyncio.wait_for(self._answers.get(), 20)
        assert 7 == answer.pop("number")
        return answer


@contextmanager
def deaf() -> Iterator[int]:
    """Give a port at which nothing answers: its queue of connections is full."""
    with closing(socket.socket()) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        waiting = [socket.socket() for _ in range(4)]
        for each in waiting:
            each.setblocking(False)
            each.connect_ex(listener.getsockname())
        yield listener.getsockname()[1]
        for each in waiting:
            each.close()


def closed() -> int:
    """Give a port at which nothing listens."""
    with closing(socket.socket()) as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


def test_two_that_see_each_other() -> None:
    """Any number of times, at every address of the machine."""

    async def look() -> dict[str, Any]:
        one, other = Asked(), Asked()
        port = (await one(listen=20))["port"]
        places = [["127.0.0.1", port], ["127.0.0.2", port], ["localhost", port]]
        await other(reach=places, within=5)
        found = await other(reach=places, within=5)
        one.part.close()
        return found

    assert {"unreached": ["", "", ""]} == asyncio.run(look())


def test_what_cannot_be_reached_is_told_with_the_reason() -> None:
    """For each place by itself."""

    async def look(port: int) -> list[str]:
        places = [["127.0.0.1", port], ["127.0.0.1", closed()], ["no-such-host.invalid", 1]]
        answer = await Asked()(reach=places, within=0.5)
        return [str(reason) for reason in answer["unreached"]]

    with deaf() as port:
        silent, refused, unknown = asyncio.run(look(port))
    assert "no answer within 0.5 s" == silent
    assert "Connection refused" == refused
    assert unknown


def test_nobody_listens_after_the_end() -> None:
    """Neither when the time is over, nor when the agent leaves."""

    async def look() -> list[str]:
        one, other = Asked(), Asked()
        brief, long = (await one(listen=0.01))["port"], (await one(listen=600))["port"]
        while not (await other(reach=[["127.0.0.1", brief]], within=5))["unreached"][0]:
            pass
        assert {"unreached": [""]} == await other(reach=[["127.0.0.1", long]], within=5)
        one.part.close()
        while not (reasons := (await other(reach=[["127.0.0.1", long]], within=5))["unreached"])[0]:
            pass
        return [str(reason) for reason in reasons]

    [reason] = asyncio.run(look())
    assert "Connection refused" == reason


@pytest.mark.parametrize(
    "question",
    [
        {},
        {"checksum": "no hex"},
        {"checksum": 7},
        {"reach": 7, "within": 1},
        {"reach": [["a"]], "within": 1},
        {"listen": "a"},
    ],
)
def test_a_question_that_makes_no_sense_is_refused(question: dict[str, Any]) -> None:
    """As any frame is that does not hold what it should; the link ends then."""

    async def look() -> None:
        Neighbours(asyncio.get_running_loop(), lambda name: None, lambda answer: None).ask({"number": 1, **question})

    with pytest.raises((KeyError, ValueError, TypeError)):
        asyncio.run(look())


def test_a_question_that_cannot_be_answered_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """The node that asked gives up by itself; other questions are answered."""

    async def look() -> dict[str, Any]:
        one = Asked()
        one.part.ask({"number": 7, "reach": [["no\0host", 1]], "within": 5})
        answer = await one(listen=20)
        end = time.monotonic() + 20
        while not caplog.records:
            assert time.monotonic() < end
            await asyncio.sleep(0.01)
        one.part.close()
        return answer

    assert ["port"] == list(asyncio.run(look()))
    assert "neighbours.unanswered reason=" in caplog.text


def test_the_checksum_of_what_is_kept() -> None:
    """Nothing is said of what is not here."""
    content = b"x" * 4096

    async def look() -> list[Any]:
        one = Asked()
        return [(await one(checksum=name.hex()))["checksum"] for name in (b"here", b"gone")]

    KEPT[b"here"] = write_segment([[content]])
    try:
        assert [hashlib.sha256(content).hexdigest(), None] == asyncio.run(look())
    finally:
        KEPT.clear()
