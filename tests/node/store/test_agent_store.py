"""An agent asks the client once for what its workers ask, starts what it is asked for, and says why not."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from skyward.errors import ProtocolError, ProvisionError, UsageError
from skyward.link.frames import Frame, Kind, Parser, decode_json
from skyward.link.store_said import ServerEnded, StoreGone, StorePlace, Where, decode, encode_refusal
from skyward.node.store.agent_store import AgentStore
from skyward.node.store.server_search import NAMED
from tests.stores import PASSWORD, command, node_directory, reaping

PLACE = StorePlace("/n/store-1.sock", "secret", "g1")


class _Worker:
    """Keep what it is sent on its control socket."""

    def __init__(self) -> None:
        self.control = self
        self.exit_status: int | None = None
        self.said: list[Any] = []

    def send(self, frame: bytes) -> None:
        self.said += [decode(read.body) for read in Parser().feed(frame)]


class _Bench:
    """Hold an agent's part, and what it sent its client."""

    def __init__(self, directory: str = "/nowhere/nodes/a-0") -> None:
        self.frames: asyncio.Queue[Frame] = asyncio.Queue()
        self.part = AgentStore(asyncio.get_running_loop(), directory, self._take)
        self.workers: list[Any] = [_Worker() for _ in range(3)]

    def _take(self, frame: bytes) -> None:
        for read in Parser().feed(frame):
            self.frames.put_nowait(read)

    async def answer(self, **question: Any) -> dict[str, Any]:
        """Return the answer to a question."""
        assert self.part.ask({"number": 7, **question})
        frame = await asyncio.wait_for(self.frames.get(), 60)
        assert Kind.ANSWER == frame.kind
        return decode_json(frame.body)


def _run(look: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(60):
            await look()

    asyncio.run(bounded())


def test_workers_that_ask_are_answered_together() -> None:
    """The client is asked once; what comes later is answered at once."""

    async def look() -> None:
        bench = _Bench()
        one, other, late = bench.workers
        bench.part.asked(one)
        bench.part.asked(other)
        assert Where() == decode(bench.frames.get_nowait().body)
        assert bench.frames.empty()
        bench.part.received(PLACE.encode())
        bench.part.asked(late)
        assert [[PLACE]] * 3 == [worker.said for worker in bench.workers]
        assert bench.frames.empty()

    _run(look)


def test_the_loss_of_a_store_reaches_those_that_know_it() -> None:
    """The next question goes to the client again."""

    async def look() -> None:
        bench = _Bench()
        one, other, _ = bench.workers
        bench.part.asked(one)
        bench.part.received(PLACE.encode())
        bench.part.received(StoreGone("g1").encode())
        assert [PLACE, StoreGone("g1")] == one.said
        assert [] == other.said
        bench.frames.get_nowait()
        bench.part.asked(other)
        assert Where() == decode(bench.frames.get_nowait().body)

    _run(look)


@pytest.mark.parametrize(
    ("refusal", "asks"), [(UsageError("never"), 0), (ProvisionError("not now"), 1)], ids=["a", "b"]
)
def test_what_stays_so_is_asked_once(refusal: Any, asks: int) -> None:
    """A pool without collections has none later; a server may be found the next time."""

    async def look() -> None:
        bench = _Bench()
        one, other, _ = bench.workers
        bench.part.asked(one)
        bench.frames.get_nowait()
        bench.part.received(encode_refusal(refusal))
        bench.part.asked(other)
        assert type(refusal) is type(one.said[0])
        assert asks == bench.frames.qsize()

    _run(look)


@pytest.mark.parametrize("body", [Where().encode(), ServerEnded(1, "").encode(), b"{}"])
def test_what_no_client_says_is_refused(body: bytes) -> None:
    """As any other frame that makes no sense."""

    async def look() -> None:
        with pytest.raises(ProtocolError):
            _Bench().part.received(body)

    _run(look)


def test_a_question_about_something_else_is_not_taken() -> None:
    """The network between nodes is another part's."""

    async def look() -> None:
        assert not _Bench().part.ask({"number": 1, "listen": 3})

    _run(look)


def test_a_server_is_started_and_its_end_reported() -> None:
    """With its number, so that the client knows which it was."""

    async def look() -> None:
        with node_directory() as directory:
            bench = _Bench(directory)
            async with reaping(bench.part.reaped):
                asked = {"number": 4, "password": PASSWORD, "tools": directory, "packages": False}
                answer = await bench.answer(store=asked)
                assert (7, f"{directory}/store-4.sock") == (answer["number"], answer["path"])
                said = await asyncio.to_thread(command, answer["path"], "INFO", "server")
                import os
                import signal

                os.kill(int(said["process_id"]), signal.SIGTERM)
                ended = decode((await bench.frames.get()).body)
                assert isinstance(ended, ServerEnded)
                assert 4 == ended.number
                bench.part.close()

    _run(look)


def test_a_server_that_cannot_be_had_is_answered_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    """And the next question is answered as well."""
    monkeypatch.setenv(NAMED, "/nowhere/valkey-server")

    async def look() -> None:
        with node_directory() as directory:
            bench = _Bench(directory)
            async with reaping(bench.part.reaped):
                for number in (1, 2):
                    asked = {"number": number, "password": PASSWORD, "tools": directory, "packages": False}
                    answer = await bench.answer(store=asked)
                    assert "/nowhere/valkey-server does not run here" in answer["failed"]

    _run(look)


def test_a_route_is_opened_once_for_each_server() -> None:
    """A second one takes the place of the first."""

    async def look() -> None:
        with node_directory() as directory:
            bench = _Bench(directory)
            answers = [await bench.answer(route=number) for number in (1, 2)]
            assert [f"{directory}/store-{number}.in" for number in (1, 2)] == [answer["path"] for answer in answers]
            with pytest.raises(FileNotFoundError):
                await asyncio.open_unix_connection(answers[0]["path"])
            client = await asyncio.open_unix_connection(answers[1]["door"])
            task = await asyncio.open_unix_connection(answers[1]["path"])
            task[1].write(b"ping")
            assert b"ping" == await client[0].readexactly(4)
            bench.part.close()
            for reader, writer in (client, task):
                assert b"" == await reader.read()
                writer.close()

    _run(look)
