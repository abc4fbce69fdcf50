"""The agent asks for a notice as long as there may be one, and tells of each kind once."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from skyward.link.frames import HEADER, Frame, Kind, Parser, decode_json, encode_json
from skyward.link.windows import Life
from skyward.node.agent.notice import NoticeWatch, notice


class Client:
    """Keep what it hears."""

    def __init__(self) -> None:
        self.told: list[dict[str, Any]] = []

    def send(self, frame: bytes) -> None:
        """Take a frame."""
        (parsed,) = Parser().feed(frame)
        assert parsed.kind == Kind.NOTICE
        self.told.append(decode_json(parsed.body))


async def _until(holds: Callable[[], object]) -> None:
    end = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < end
        await asyncio.sleep(0.01)


def test_a_recommendation_is_told_once_and_what_is_certain_after_it(tmp_path: Path) -> None:
    """Then nothing is asked any more; answers that are none do no harm."""
    told, asked = tmp_path / "told", tmp_path / "asked"

    async def run() -> None:
        loop, client = asyncio.get_running_loop(), Client()
        watch = NoticeWatch(loop, interval=0.02)

        def reap() -> None:
            while watch._command is not None and (ended := os.waitpid(watch._command.pid, os.WNOHANG))[0]:
                watch.reaped(*ended)

        def questions() -> int:
            return len(asked.read_text()) if asked.exists() else 0

        loop.add_signal_handler(signal.SIGCHLD, reap)
        watch.start(("sh", "-c", f"printf x >>{asked}; cat {told} 2>/dev/null || true"), client)  # type: ignore[arg-type]
        for text in ("", "no notice", '{"reason": "soon", "certain": false}'):
            told.write_text(text)
            before = questions()
            await _until(lambda before=before: questions() >= before + 3)
        assert [each["certain"] for each in client.told] == [False]
        told.write_text('{"reason": "gone", "at": 5}')
        await _until(lambda: len(client.told) == 2)
        assert client.told[1] == {"reason": "gone", "certain": True, "at": 5.0}
        assert watch._command is None
        assert watch._timer is not None
        assert watch._timer.cancelled()
        loop.remove_signal_handler(signal.SIGCHLD)

    asyncio.run(run())


def test_a_command_that_is_not_there_does_no_harm() -> None:
    """And nothing is reported."""

    async def run() -> None:
        client = Client()
        watch = NoticeWatch(asyncio.get_running_loop())
        watch.start(("/no/such/command",), client)  # type: ignore[arg-type]
        watch.stop()
        assert client.told == []

    asyncio.run(run())


def test_a_long_reason_is_cut() -> None:
    """The client refuses a frame beyond the largest of its kind, whatever letters it is made of."""
    found = notice(json.dumps({"reason": "\N{ROCKET}" * 100_000}))
    assert found is not None
    Life().arrived(Frame(Kind.NOTICE, 0, 0, encode_json(Kind.NOTICE, found)[HEADER.size :]))


@pytest.mark.parametrize("text", ["[]", "3", "{", '"taken"'])
def test_what_is_no_notice_is_an_error(text: str) -> None:
    """So that it is not taken for one."""
    with pytest.raises(ValueError, match=r".+"):
        notice(text)
