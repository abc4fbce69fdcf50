"""Where the client reaches the store of its pool: at a Unix socket of its own, or at the server's, if that is here."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import stat
import tempfile
from collections.abc import Awaitable, Callable

from skyward import private
from skyward.blocking import in_thread
from skyward.engine.nodes.forwarding import OPENING
from skyward.errors import ProvisionError, SkywardError
from skyward.link.joining import READ, Stream, join, reset, reset_cancelled

__all__ = ["ClientDoor"]

_log = logging.getLogger(__name__)


class ClientDoor:
    """
    Listen at a Unix socket on this machine, and lead its connections to the store; lives in the engine's loop.

    Args:
        dial: Connects to the store.
    """

    def __init__(self, dial: Callable[[], Awaitable[Stream]]) -> None:
        self._dial = dial
        self._directory = ""
        self._server: asyncio.AbstractServer | None = None
        self._joined: set[asyncio.Task[None]] = set()
        self._closed = False

    async def open(self) -> str:
        """
        Listen, and return the socket's path.

        Raises:
            ProvisionError: If that cannot be done here.
        """
        # This user's alone, whatever the umask.
        self._directory = tempfile.mkdtemp(prefix="skyward-store-")
        path = os.path.join(self._directory, "store.sock")
        try:
            self._server = await asyncio.start_unix_server(self._accepted, path, limit=READ)
            os.chmod(path, stat.S_IRUSR | stat.S_IWUSR)
        except OSError as error:
            await self.close()
            raise ProvisionError(
                f"This machine cannot listen at {path}: {error}.",
                hint="Have TMPDIR name a directory with a short path.",
            ) from error
        if self._closed:
            await self.close()
        return path

    async def close(self) -> None:
        """Stop listening, and break every connection off."""
        self._closed = True
        if self._server is not None:
            self._server.close()
        for task in self._joined:
            task.cancel()
        while self._joined:
            await asyncio.wait(list(self._joined))
        if self._directory:
            await in_thread(private.remove, self._directory)

    def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(self._lead((reader, writer)))
        self._joined.add(task)
        task.add_done_callback(self._joined.discard)
        task.add_done_callback(lambda task: reset_cancelled(task, (reader, writer)))

    async def _lead(self, here: Stream) -> None:
        try:
            async with asyncio.timeout(OPENING):
                there = await self._dial()
        except (OSError, SkywardError) as error:
            # What connected reads the end, and is answered when it asks where the store is.
            _log.info("store.not_reached reason=%s", error)
            reset(here[1])
            return
        except BaseException:
            reset(here[1])
            raise
        with contextlib.suppress(OSError):
            await join(here, there)
