"""The process that keeps volumes, as the one that started it sees it: questions, answers, and its end."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from skyward.errors import ProvisionError
from skyward.node.agent.descendants import MARK, OUTLIVES

__all__ = ["KeeperProcess"]

_LIMIT = 16 << 20


class KeeperProcess:
    """
    Start the process that keeps volumes, and ask it.

    It is none of the node's marked processes, which are killed at the node's end: it takes the volumes away when its
    input ends, and ends by itself.

    Args:
        loop: The loop to live in.
        note: Takes what the user should know.
        broken: Called once with the reason when the volumes cannot be kept.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, note: Callable[[str], None], broken: Callable[[str], None]
    ) -> None:
        self._loop = loop
        self._note = note
        self._broken = broken
        self._process: subprocess.Popen[bytes] | None = None
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._asked = 0
        self._reading: asyncio.Task[None] | None = None

    async def ask(self, question: dict[str, Any]) -> dict[str, Any]:
        """
        Ask it something, and wait for the answer; it is started by the first question.

        Args:
            question: What `keeper` answers.

        Raises:
            ProvisionError: If it ends before it has answered.
        """
        process = self._process or self._start()
        self._asked += 1
        number, answer = self._asked, self._loop.create_future()
        self._answers[number] = answer
        assert process.stdin is not None
        # It reads all the time, so that this takes no longer than the pipe has no room.
        with contextlib.suppress(OSError, ValueError):
            process.stdin.write(json.dumps({"number": number, **question}).encode() + b"\n")
            process.stdin.flush()
        try:
            said: dict[str, Any] = await answer
            return said
        finally:
            del self._answers[number]

    def close(self) -> None:
        """End its input, so that it takes the volumes away and ends."""
        self._broken = lambda _: None
        if self._process is not None and self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()

    async def wait(self, within: float) -> None:
        """
        Wait until it has ended, for who reaps it; it goes on if that takes longer.

        Args:
            within: Seconds.
        """
        if self._process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                await asyncio.to_thread(self._process.wait, within)

    def reaped(self, pid: int) -> None:
        """Record that a child ended, which may be this one."""
        if self._process is not None and self._process.pid == pid:
            self._process.returncode = 0

    def _start(self) -> subprocess.Popen[bytes]:
        process = self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "skyward.node.volumes.keeper"],
            env={name: text for name, text in os.environ.items() if name != MARK} | {OUTLIVES: "1"},
            cwd=os.sep,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        self._reading = self._loop.create_task(self._read(process))
        return process

    async def _read(self, process: subprocess.Popen[bytes]) -> None:
        reader = asyncio.StreamReader(limit=_LIMIT)
        transport, _ = await self._loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), process.stdout)
        try:
            while line := await reader.readline():
                self._take(json.loads(line))
        finally:
            transport.close()
            for answer in self._answers.values():
                if not answer.done():
                    answer.set_exception(ProvisionError("The process that keeps the volumes ended."))
            self._broken("the process that keeps the volumes ended")

    def _take(self, said: dict[str, Any]) -> None:
        if "note" in said:
            self._note(str(said["note"]))
        elif "broken" in said:
            self._broken(str(said["broken"]))
        elif (answer := self._answers.get(int(said["number"]))) is not None and not answer.done():
            answer.set_result(said)
