"""Requests of workers are answered in a thread, and a node that does not wait for answers loses its link."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from skyward.engine.pool import kept_files
from skyward.engine.pool.event_loop import EngineLoop
from skyward.engine.pool.kept_files import MOST_WAITING, KeptFiles
from skyward.errors import ProtocolError
from skyward.link.frames import Frame, Kind
from skyward.link.keeping import decode_kept, encode_kept
from skyward.link.payload import Payload


class Link:
    """Take the answers of a node."""

    def __init__(self) -> None:
        self.answers: dict[int, dict[str, Any]] = {}
        self.reads: list[Callable[[], None]] = []

    def send_kept(self, lane: int, body: bytes, payload: Payload, read: Callable[[], None]) -> None:
        answer = decode_kept(body, [])
        self.answers[answer.number] = {"lane": lane, **answer.head}
        self.reads.append(read)


class Shell:
    """What there is of a node."""

    def __init__(self, link: Link) -> None:
        self.link = link


class Stage:
    """One node, and what its client keeps."""

    def __init__(self) -> None:
        self.engine = EngineLoop()
        self.kept = KeptFiles(self.engine, "a1", "train")
        self.link = Link()
        self.shell: Any = Shell(self.link)

    def ask(self, number: int, head: dict[str, Any], data: bytes = b"", lanes: int = 1) -> None:
        body, _ = encode_kept(number, head, data)

        async def take() -> None:
            self.kept.take(self.shell, Frame(Kind.KEEP, 3, 0, body), (), lanes)

        self.engine.run(take())

    def until(self, holds: Callable[[], object]) -> None:
        end = time.monotonic() + 20
        while not holds():
            assert time.monotonic() < end, "it did not come true in time"
            self.engine.run(asyncio.sleep(0.01))


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    monkeypatch.setenv("SKYWARD_STATE", str(tmp_path))
    made = Stage()
    yield made
    made.kept.close()
    made.engine.close()


HERE = {"address": "call-a1-7", "named": False}


def test_requests_are_answered_in_their_lane(stage: Stage) -> None:
    """By their numbers."""
    stage.ask(7, {"do": "write", "upload": "u", "at": 0, **HERE}, b"bytes")
    stage.ask(8, {"do": "publish", "upload": "u", "size": 5, "keep": 1})
    stage.ask(9, {"do": "list", **HERE})
    stage.until(lambda: 9 in stage.link.answers)
    assert {7: {"lane": 3}, 8: {"lane": 3, "version": 1}, 9: {"lane": 3, "versions": [1]}} == stage.link.answers


def test_nothing_is_made_until_something_is_asked(tmp_path: Path, stage: Stage) -> None:
    """Neither a thread nor a folder."""
    assert [] == list(tmp_path.iterdir())
    assert not any(thread.name == "skyward-kept-files" for thread in threading.enumerate())


def test_a_node_that_does_not_wait_is_refused(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """What waits is a few pieces for each of its workers."""
    gate = threading.Event()
    monkeypatch.setattr(kept_files.KeptVersions, "answer", lambda *_: (gate.wait(20), ({}, b""))[1])
    for number in range(2 * MOST_WAITING):
        stage.ask(number, {"do": "list", **HERE}, lanes=2)
    with pytest.raises(ProtocolError, match="beyond its window: 32 wait for their answers"):
        stage.ask(99, {"do": "list", **HERE}, lanes=2)
    gate.set()
    stage.until(lambda: len(stage.link.answers) == 2 * MOST_WAITING)
    stage.ask(99, {"do": "list", **HERE}, lanes=2)


def test_a_node_that_does_not_read_is_refused(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until it has read what it asked for."""
    monkeypatch.setattr(kept_files, "MOST_UNREAD", 2000)
    for number in range(8):
        stage.ask(number, {"do": "list", **HERE})
        stage.until(lambda number=number: number in stage.link.answers)
    with pytest.raises(ProtocolError, match=r"0 wait for their answers, and \d+ bytes of answers are yet to be read"):
        stage.ask(98, {"do": "list", **HERE})
    for read in stage.link.reads:
        stage.engine.post(read)
    stage.ask(99, {"do": "list", **HERE})


def test_its_end_removes_what_only_the_pool_needed(tmp_path: Path, stage: Stage) -> None:
    """Also what was on its way."""
    stage.ask(7, {"do": "write", "upload": "u", "at": 0, **HERE}, b"bytes")
    stage.until(lambda: stage.link.answers)
    stage.kept.close()
    assert [] == [path for path in (tmp_path / "checkpoints" / "pools").iterdir() if path.is_dir()]
