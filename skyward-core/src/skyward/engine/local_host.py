"""A node on this machine: a process tree with a directory and a socket of its own."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from skyward.errors import ProvisionError
from skyward.node.descendants import MARK, end_group, end_marked


class LocalHost:
    """
    Start and end an agent on this machine.

    Args:
        directory: The node's own; removed at the end.
        mark: What every process of the node carries in its environment.
    """

    def __init__(self, directory: Path, mark: str) -> None:
        self.directory = directory
        self.files = directory / "files"
        self._mark = mark
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, env: Mapping[str, str]) -> socket.socket:
        """
        Start the agent, and connect to it.

        The socket listens before the agent lives, so that nobody waits for it to appear.

        Args:
            env: What the agent and its workers find in their environment.

        Raises:
            ProvisionError: If the agent cannot be started.
        """
        for directory in (self.directory.parent, self.directory, self.files):
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = str(self.directory / "agent.sock")
        listener = socket.socket(socket.AF_UNIX)
        try:
            listener.bind(path)
            os.chmod(path, 0o600)
            listener.listen(1)
            connection = socket.socket(socket.AF_UNIX)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
            connection.connect(path)
            with open(self.directory / "agent.log", "wb") as log:
                self._process = subprocess.Popen(
                    [sys.executable, "-P", "-m", "skyward.node.agent", str(listener.fileno()), str(self.directory)],
                    env={**env, MARK: self._mark},
                    cwd=self.directory,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    pass_fds=[listener.fileno()],
                    start_new_session=True,
                )
        except OSError as error:
            raise ProvisionError(f"The agent could not be started in {self.directory}: {error}.") from error
        finally:
            listener.close()
        return connection

    def last_words(self) -> str:
        """Give the end of what the agent wrote, for messages."""
        with contextlib.suppress(OSError):
            return (self.directory / "agent.log").read_text(errors="replace")[-2000:].strip()
        return ""

    async def end(self, patience: float) -> None:
        """
        End the agent and all that it started, and remove the directory.

        Args:
            patience: Seconds that the agent has to leave by itself.
        """
        await asyncio.to_thread(self._end, patience)

    def _end(self, patience: float) -> None:
        process = self._process
        if process is not None:
            try:
                process.wait(patience)
            except subprocess.TimeoutExpired:
                end_group(process.pid)
                process.wait()
        end_marked(self._mark)
        shutil.rmtree(self.directory, ignore_errors=True)
