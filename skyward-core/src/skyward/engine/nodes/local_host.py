"""A node on this machine: a process tree with a directory and a socket of its own."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from skyward import private
from skyward.blocking import in_thread
from skyward.engine.nodes.host import OnClosed, OnFrame, Prepared
from skyward.engine.nodes.waiting_agents import start_agent, waiting_agents
from skyward.engine.pool.event_loop import EngineLoop
from skyward.errors import ConfigError, ProvisionError
from skyward.link.channel import Channel, Link
from skyward.link.joining import READ, Stream
from skyward.node.agent.descendants import DIRECTORY, MARK, end_group, end_marked

_WORDS = 2000


class LocalHost:
    """
    Start and end an agent on this machine.

    Args:
        engine: The loop.
        directory: The node's own; removed at the end.
        mark: What every process of the node carries in its environment.
        env: What the agent and its workers find in their environment.
        prepare: Makes the image's environment, for all nodes at once.
    """

    def __init__(
        self,
        engine: EngineLoop,
        directory: Path,
        mark: str,
        *,
        env: Mapping[str, str],
        prepare: Callable[[], Coroutine[Any, Any, Prepared]],
    ) -> None:
        self.directory = directory
        self._prepare = prepare
        self._engine = engine
        self._env = env
        self.files = directory / "files"
        self._mark = mark
        self._process: subprocess.Popen[bytes] | None = None
        self._log: IO[bytes] | None = None

    async def prepare(self) -> Prepared:
        """Return the interpreter of the image's environment."""
        return await self._prepare()

    async def open(self, on_frame: OnFrame, on_closed: OnClosed) -> Link:
        """Start the agent, and speak to it over a socket that has no name."""
        connection = await in_thread(self.start)
        return Channel(self._engine.loop, self._engine.batch, connection, on_frame, on_closed)

    async def dial_port(self, port: int) -> Stream:
        """Connect to a port of this machine."""
        return await asyncio.open_connection("127.0.0.1", port, limit=READ)

    async def dial_socket(self, path: str) -> Stream:
        """Connect to a Unix socket of this machine."""
        return await asyncio.open_unix_connection(path, limit=READ)

    async def flush(self) -> None:
        """Flush all that was written to this machine's disk."""
        await in_thread(os.sync)

    async def unmount(self, folders: Sequence[str]) -> str:
        """Do nothing: no disk is attached to this machine."""
        return ""

    def start(self) -> socket.socket:
        """
        Start the agent, and connect to it.

        It may wait already. The directory's name is in its environment or comes over its socket, which no other user
        can read, so that no other user can make the directory first. The agent lives before the directory does: it
        removes it, also if the client is killed.

        Raises:
            ProvisionError: If the agent cannot be started.
            ConfigError: If another user could change the node's directory.
        """
        directory = str(self.directory)
        try:
            agent = waiting_agents.take(self._env, directory, self._mark)
            if agent is None:
                agent = start_agent({**self._env, MARK: self._mark, DIRECTORY: directory})
        except OSError as error:
            raise ProvisionError(f"The agent of {directory} could not be started: {error}.") from error
        self._process, self._log = agent.process, agent.log
        try:
            # The agent makes it as well; here a refusal has its own words.
            private.directory(self.directory, hint="TMPDIR may name another directory.")
        except ConfigError:
            agent.connection.close()
            raise
        except OSError as error:
            agent.connection.close()
            raise ProvisionError(f"The directory {directory} could not be made: {error}.") from error
        return agent.connection

    async def answers(self) -> bool:
        """Return True: it is this machine."""
        return True

    def last_words(self) -> str:
        """Return the end of what the agent wrote, for messages."""
        if self._log is None or self._log.closed:
            return ""
        size = os.fstat(self._log.fileno()).st_size
        return os.pread(self._log.fileno(), _WORDS, max(0, size - _WORDS)).decode(errors="replace").strip()

    def leaving(self, patience: float) -> None:
        """Do nothing: the end of a process is found out at once."""

    async def end(self, patience: float) -> None:
        """
        End the agent and all that it started, and remove the directory.

        Args:
            patience: Seconds that the agent has to leave by itself.
        """
        await in_thread(self._end, patience)

    async def end_machine(self) -> bool:
        """Return False: this machine is not terminated."""
        return False

    async def close(self) -> None:
        """Do nothing: there is no connection."""

    def _end(self, patience: float) -> None:
        process = self._process
        if process is not None:
            try:
                process.wait(patience)
            except subprocess.TimeoutExpired:
                end_group(process.pid)
                process.wait()
        end_marked(self._mark)
        private.remove(self.directory)
        if self._log is not None:
            self._log.close()
