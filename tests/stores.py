"""Real servers for the tests of a pool's store: one that is found here, run by the agent's own part for it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

from skyward.node.store.server_process import ServerProcess

PASSWORD = "a" * 64


@contextlib.contextmanager
def node_directory() -> Iterator[str]:
    """Make a directory as nodes have it, with a short name: those of Unix sockets are short."""
    with tempfile.TemporaryDirectory(prefix="node", dir="/tmp") as directory:
        yield directory


@contextlib.asynccontextmanager
async def reaping(reaped: Callable[[int, int], object]) -> AsyncIterator[None]:
    """Collect children as an agent does, and pass them on."""

    async def look() -> None:
        while True:
            with contextlib.suppress(ChildProcessError):
                pid, status = os.waitpid(-1, os.WNOHANG)  # noqa: ASYNC222  # it does not block
                if pid:
                    reaped(pid, status)
            await asyncio.sleep(0.01)

    looking = asyncio.create_task(look())
    try:
        yield
    finally:
        looking.cancel()


@contextlib.asynccontextmanager
async def server(directory: str, number: int = 1) -> AsyncIterator[tuple[ServerProcess, list[str]]]:
    """Run a server, and give it with a list of how it ended."""
    ended: list[str] = []
    process = ServerProcess(asyncio.get_running_loop(), directory, number, PASSWORD, ended.append)
    async with reaping(process.reaped):
        try:
            await process.start(tools=directory, packages=False)
            yield process, ended
        finally:
            process.kill()


def command(path: str, *words: Any, password: str = PASSWORD) -> Any:
    """Send a command to a store, and return what it answers."""
    import valkey

    with contextlib.closing(valkey.Valkey(unix_socket_path=path, password=password, socket_timeout=20.0)) as store:
        return store.execute_command(*words)


async def soon(condition: Callable[[], object], within: float = 20.0) -> None:
    """Wait until something holds, in an event loop."""
    async with asyncio.timeout(within):
        while not condition():  # noqa: ASYNC110  # whatever it is
            await asyncio.sleep(0.01)


def listening_ports(pid: int) -> list[str]:
    """List the TCP sockets that a process listens at."""
    sockets = set()
    for fd in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            sockets.add(os.readlink(fd))
    lines = [
        line.split() for name in ("tcp", "tcp6") for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]
    ]
    return [line[1] for line in lines if line[3] == "0A" and f"socket:[{line[9]}]" in sockets]
