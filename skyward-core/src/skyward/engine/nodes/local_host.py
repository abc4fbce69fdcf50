"""A node on this machine: a process tree with a directory and a socket of its own."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any

from skyward import private
from skyward.engine.nodes.host import OnClosed, OnFrame, Prepared
from skyward.engine.pool.event_loop import EngineLoop, in_thread
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
        # Without a name, so that it need not be removed.
        self._log = tempfile.TemporaryFile()  # noqa: SIM115  # closed by `end`

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

        Client and agent are born with the two ends of one Unix socket, which has no name and no other peer.
        The directory's name is in the environment, which no other user can read, so that no other user can make
        the directory first. The agent lives before the directory does: it removes it, also if the client is killed.

        Raises:
            ProvisionError: If the agent cannot be started.
            ConfigError: If another user could change the node's directory.
        """
        ours, theirs = socket.socketpair()
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "skyward.node.agent.agent_main", str(theirs.fileno())],
                env={**self._env, MARK: self._mark, DIRECTORY: str(self.directory)},
                cwd=os.sep,
                stdin=subprocess.DEVNULL,
                stdout=self._log,
                stderr=self._log,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
            # The agent makes it as well; here a refusal has its own words.
            private.directory(self.directory, hint="TMPDIR may name another directory.")
        except ConfigError:
            ours.close()
            raise
        except OSError as error:
            ours.close()
            failed = f"The agent of {self.directory} could not be started"
            if self._process is not None:
                failed = f"The directory {self.directory} could not be made"
            raise ProvisionError(f"{failed}: {error}.") from error
        finally:
            theirs.close()
        return ours

    async def answers(self) -> bool:
        """Return True: it is this machine."""
        return True

    def last_words(self) -> str:
        """Return the end of what the agent wrote, for messages."""
        if self._log.closed:
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
        self._log.close()
