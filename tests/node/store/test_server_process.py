"""A server runs as the agent's child: at a Unix socket, behind a password, bounded, and gone with the agent."""

from __future__ import annotations

import asyncio
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from skyward.errors import ProvisionError
from skyward.node.store.server_search import NAMED
from tests.stores import PASSWORD, command, listening_ports, node_directory, server
from tests.waiting import until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


async def _pid(path: str) -> int:
    said = await asyncio.to_thread(command, path, "INFO", "server")
    return int(said["process_id"])


def test_it_listens_at_a_socket_of_this_user_alone() -> None:
    """It has mode 0600, and there is no port."""

    async def look() -> tuple[int, list[str]]:
        with node_directory() as directory:
            async with server(directory) as (process, _):
                mode = stat.S_IMODE(os.stat(process.path).st_mode)
                return mode, listening_ports(await _pid(process.path))

    assert (0o600, []) == asyncio.run(look())


def test_the_password_is_in_no_command_line_and_no_file() -> None:
    """The server reads it from a pipe."""

    async def look() -> list[bytes]:
        with node_directory() as directory:
            async with server(directory) as (process, _):
                return await asyncio.to_thread(_shown, await _pid(process.path), directory)

    assert PASSWORD.encode() not in b"".join(asyncio.run(look()))


def _shown(pid: int, directory: str) -> list[bytes]:
    """Return what others may see of a process, and what lies in a directory."""
    files = [path for path in Path(directory).iterdir() if path.is_file()]
    return [path.read_bytes() for path in (Path(f"/proc/{pid}/cmdline"), Path(f"/proc/{pid}/environ"), *files)]


def test_what_does_not_know_the_password_gets_nothing() -> None:
    """Neither a wrong one nor none opens it."""
    from valkey import exceptions

    async def look() -> None:
        with node_directory() as directory:
            async with server(directory) as (process, _):
                with pytest.raises(exceptions.AuthenticationError):
                    await asyncio.to_thread(command, process.path, "GET", "a", password="wrong")
                with pytest.raises(exceptions.AuthenticationError):
                    await asyncio.to_thread(command, process.path, "GET", "a", password=None)

    asyncio.run(look())


@pytest.mark.parametrize(
    "words",
    [
        ("CONFIG", "SET", "dir", "/tmp"),
        ("SAVE",),
        ("SHUTDOWN",),
        ("MODULE", "LIST"),
        ("REPLICAOF", "127.0.0.1", "1"),
        ("MONITOR",),
        ("MIGRATE", "127.0.0.1", "1", "a", "0", "1"),
        ("ACL", "LIST"),
    ],
    ids=lambda words: words[0],
)
def test_a_task_reaches_nothing_of_the_machine_through_it(words: tuple[str, ...]) -> None:
    """It writes no file, loads no code and connects nowhere, whatever a node that was taken over sends."""
    from valkey import exceptions

    async def look() -> None:
        with node_directory() as directory:
            async with server(directory) as (process, _):
                with pytest.raises(exceptions.NoPermissionError):
                    await asyncio.to_thread(command, process.path, *words)

    asyncio.run(look())


def test_it_is_full_before_the_machine_is() -> None:
    """It refuses more, drops nothing, and stores nothing on a disk."""

    async def look() -> tuple[dict[str, Any], list[str]]:
        with node_directory() as directory:
            async with server(directory) as (process, _):
                said = await asyncio.to_thread(command, process.path, "INFO")
                return said, os.listdir(directory)

    said, files = asyncio.run(look())
    assert 0 < said["maxmemory"]
    assert "noeviction" == said["maxmemory_policy"]
    assert (0, 0) == (said["aof_enabled"], said["rdb_bgsave_in_progress"])
    assert {"store-1.sock", "store-1.log"} == {*files}


def test_the_end_of_one_that_was_there_is_reported() -> None:
    """With the signal that ended it."""

    async def look() -> list[str]:
        with node_directory() as directory:
            async with server(directory) as (process, ended):
                os.kill(await _pid(process.path), signal.SIGKILL)
                await asyncio.to_thread(until, lambda: ended)
                return ended

    (why,) = asyncio.run(look())
    assert why.startswith("SIGKILL")


def test_where_none_is_found_the_reasons_are_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """The variable names the only one that is looked at."""
    monkeypatch.setenv(NAMED, "/nowhere/valkey-server")

    async def look() -> None:
        with node_directory() as directory:
            async with server(directory):
                pass

    with pytest.raises(ProvisionError, match=r"/nowhere/valkey-server does not run here"):
        asyncio.run(look())


def test_one_that_ends_at_once_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its last words are in the error."""
    program = tmp_path / "valkey-server"
    program.write_text('#!/bin/sh\n[ "$1" != --version ] || { echo v=8.1.1; exit; }\necho no luck >&2\nexit 3\n')
    program.chmod(0o755)
    monkeypatch.setenv(NAMED, str(program))

    async def look() -> None:
        with node_directory() as directory:
            async with server(directory):
                pass

    with pytest.raises(ProvisionError, match=r"The server ended \(exit code 3; no luck\)"):
        asyncio.run(look())


_AGENT = """
import asyncio, os, sys
from skyward.node.store.server_process import ServerProcess

async def main():
    process = ServerProcess(asyncio.get_running_loop(), sys.argv[1], 1, "secret", print)
    await process.start(tools=sys.argv[1], packages=False)
    print(process._process.pid, flush=True)
    await asyncio.sleep(1000)

asyncio.run(main())
"""


def test_it_ends_with_an_agent_that_is_killed() -> None:
    """The kernel kills it."""
    with node_directory() as directory:
        agent = subprocess.Popen([sys.executable, "-c", _AGENT, directory], stdout=subprocess.PIPE, text=True)
        assert agent.stdout is not None
        pid = int(agent.stdout.readline())
        agent.kill()
        agent.wait()
        agent.stdout.close()
        until(lambda: not _lives(pid))


def _lives(pid: int) -> bool:
    try:
        return ") Z" not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False


def test_it_is_there_soon() -> None:
    """A start that finds a server takes no second."""

    async def look() -> float:
        with node_directory() as directory:
            began = time.monotonic()
            async with server(directory):
                return time.monotonic() - began

    assert 5.0 > asyncio.run(look())


def test_a_second_one_has_a_socket_of_its_own() -> None:
    """The store that takes the place of a lost one is never taken for that."""

    async def look() -> tuple[str, str]:
        with node_directory() as directory:
            async with server(directory, 1) as (first, _), server(directory, 2) as (second, _):
                return os.path.basename(first.path), os.path.basename(second.path)

    assert ("store-1.sock", "store-2.sock") == asyncio.run(look())
