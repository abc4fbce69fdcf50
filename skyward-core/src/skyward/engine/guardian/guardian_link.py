"""The client's end of one guardian: its process, and the socket between the two."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
import threading
from collections import deque

from skyward.blocking import in_thread
from skyward.engine.guardian.guardian_messages import frame, packed
from skyward.errors import PluginError
from skyward.plan.instances.guardian_duty import Message

START = 60.0
"""Seconds that a guardian has to come up, and to answer."""

KILLED = 5.0
"""Seconds that a process has to be gone after it was killed."""

_LOOK = 0.01
_BUFFER = 4 << 20

# What Python needs to start; all the rest, in which there may be secrets, goes through the socket.
_VISIBLE = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH")


class GuardianLink:
    """
    Speak to one guardian; lives in the engine's loop.

    Args:
        process: The guardian.
        reader: What it says.
        writer: The way to it.
    """

    def __init__(
        self, process: subprocess.Popen[bytes], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._process = process
        self._writer = writer
        self._asked: deque[asyncio.Future[str | None] | None] = deque()
        self.lost = asyncio.ensure_future(self._listen(reader))

    @classmethod
    async def start(cls, pool_id: str, charge: bytes) -> GuardianLink:
        """
        Start a guardian, and wait until it has taken its charge over.

        Args:
            pool_id: What it is called in lists of processes.
            charge: What it has to know.

        Raises:
            OSError: If it cannot be started, dies, or does not answer.
            PluginError: If it can do nothing with its charge.
        """
        process, connection, rest = await in_thread(_spawn, pool_id, charge)
        reader, writer = await asyncio.open_connection(sock=connection)
        link = cls(process, reader, writer)
        try:
            if trouble := await link.ask(rest):
                raise PluginError(trouble)
        except BaseException:
            await link.end(0.0)
            raise
        return link

    @property
    def pid(self) -> int:
        """Return its process id."""
        return self._process.pid

    def send(self, message: Message) -> None:
        """Send a message whose answer does not matter."""
        if not self.lost.done():
            self._asked.append(None)
            self._writer.write(packed(message))

    async def ask(self, data: bytes) -> str:
        """
        Send it something, and wait for its answer.

        Args:
            data: A message as it is sent.

        Returns:
            Why it can do nothing with it; empty if it can.

        Raises:
            OSError: If it is dead, or does not answer; it is dead then, too.
        """
        if self.lost.done():
            raise ConnectionError(self.lost.result())
        answer: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        self._asked.append(answer)
        self._writer.write(data)
        try:
            trouble = await asyncio.wait_for(answer, START)
        except TimeoutError:
            await self.end(0.0)
            raise TimeoutError(f"guardian (process {self.pid}) did not answer within {START:g} s") from None
        if trouble is None:
            raise ConnectionError(f"guardian (process {self.pid}) died")
        return trouble

    async def end(self, patience: float) -> None:
        """
        Wait until it has gone, or end it.

        Args:
            patience: Seconds that it has to go by itself.
        """
        if not await self._gone(patience):
            self._process.kill()
            await self._gone(KILLED)
        self.lost.cancel()
        self._writer.close()

    def leave(self) -> None:
        """Leave it running alone."""
        self.lost.cancel()
        self._writer.close()
        # Something has to wait for the process, or its number would stay taken; no thread starts when Python ends.
        with contextlib.suppress(RuntimeError):
            threading.Thread(target=self._process.wait, name="skyward-guardian", daemon=True).start()

    async def _gone(self, patience: float) -> bool:
        """Wait for its end, and return whether it came; without a thread, because none starts when Python ends."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + patience
        while self._process.poll() is None:
            if loop.time() >= deadline:
                return False
            await asyncio.sleep(_LOOK)
        return True

    async def _listen(self, reader: asyncio.StreamReader) -> str:
        """Pass its answers to what waits for them; return at its end how it ended."""
        try:
            with contextlib.suppress(EOFError):
                while True:
                    trouble = await frame(reader)
                    _settle(self._asked.popleft(), trouble.decode())
        finally:
            for waiting in self._asked:
                _settle(waiting, None)
            self._writer.close()
        return f"guardian (process {self.pid}) died"


def _settle(answer: asyncio.Future[str | None] | None, text: str | None) -> None:
    if answer is not None and not answer.done():
        answer.set_result(text)


def _spawn(pool_id: str, charge: bytes) -> tuple[subprocess.Popen[bytes], socket.socket, bytes]:
    """
    Start a guardian that has nothing in common with this process but a socket.

    A session of its own keeps Ctrl-C and the end of the terminal away from it.

    Returns:
        The process, our end of the socket, and what of the charge did not fit into it.
    """
    ours, theirs = socket.socketpair()
    try:
        # Before it lives, so that it knows all even if this process dies at this moment.
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER)
        ours.setblocking(False)
        sent = ours.send(charge)
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "skyward.engine.guardian.guardian_process", pool_id],
            env={name: os.environ[name] for name in _VISIBLE if name in os.environ},
            stdin=theirs.fileno(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except BaseException:
        ours.close()
        raise
    finally:
        theirs.close()
    return process, ours, charge[sent:]
