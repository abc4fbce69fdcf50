"""A script that runs on a machine by itself: started once, and listened to from where we were."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import shlex
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING

from skyward.errors import UnreachableError
from skyward.ssh.shell import MachineShell, Process, begin

if TYPE_CHECKING:
    from asyncssh import SSHClientConnection


def start_command(node: str, packed: int, size: int) -> str:
    """
    Render what reads a script, writes it to a node's directory, and starts it apart from the connection.

    Args:
        node: Absolute path of the directory.
        packed: Bytes that are read, which are the script, compressed by gzip.
        size: Bytes of the script itself: what was cut off on the way is not run, and leaves nothing.
    """
    return (
        f"umask 077; node={shlex.quote(node)}; "
        # Byte by byte, because what comes after it belongs to others.
        f'mkdir -p "$node" && cd "$node" && dd bs=1 count={packed} 2>/dev/null | gzip -dc >bootstrap.new && '
        f'[ "$(wc -c <bootstrap.new)" -eq {size} ] && : >bootstrap.log || {{ rm -rf "$node"; return 1; }}; '
        "mv bootstrap.new bootstrap.sh; "
        "if command -v setsid >/dev/null 2>&1; then leader=setsid; else leader=nohup; fi; "
        "$leader sh bootstrap.sh >bootstrap.log 2>&1 </dev/null &"
    )


async def start(
    shell: MachineShell, node: str, script: str, token: str, interval: float
) -> AsyncGenerator[bytes, None]:
    """
    Start a script, and return what it writes, as `follow` does.

    Args:
        shell: A shell on the machine that listens; it is used up.
        node: Absolute path of the node's directory.
        script: The script.
        token: Begins the line that says that it could not be started, as it does the script's own.
        interval: Seconds between two heartbeats.

    Raises:
        UnreachableError: When the connection ends.
    """
    text = script.encode()
    packed = gzip.compress(text, mtime=0)
    command = start_command(node, len(packed), len(text))
    # What it has not read of the script must not be taken for scripts.
    failed = f"printf '\\n@@%s unstarted\\n' {shlex.quote(token)}; exit 1"
    shell.say(f"begin() {{ {command} }}\nif begin 2>&1; then {_follow_command(node, 0)}; else {failed}; fi", packed)
    async with contextlib.aclosing(_listen(shell.process, interval)) as listening:
        async for data in listening:
            yield data


async def follow(
    connection: SSHClientConnection, node: str, offset: int, interval: float
) -> AsyncGenerator[bytes, None]:
    """
    Return what a script has written from an offset on, as it comes; keeps the watchdog quiet meanwhile.

    Args:
        connection: The machine.
        node: Absolute path of the node's directory.
        offset: Bytes to leave out.
        interval: Seconds between two heartbeats.

    Raises:
        UnreachableError: When the connection ends.
    """
    import asyncssh

    command = "exec sh -c " + shlex.quote(_follow_command(node, offset))
    try:
        process = await begin(connection, command, ends=False)
    except (asyncssh.Error, OSError) as error:
        raise UnreachableError(f"The connection was lost while the machine was made ready: {error}.") from error
    async with contextlib.aclosing(_listen(process, interval)) as listening:
        async for data in listening:
            yield data


def _follow_command(node: str, offset: int) -> str:
    """Render what prints a script's words from an offset on, and writes down each line that it reads as a lease."""
    log, lease = shlex.quote(f"{node}/bootstrap.log"), shlex.quote(f"{node}/lease")
    return (
        f"tail -c +{offset + 1} -f {log} & reader=$!; "
        f'while read -r beat; do echo "$beat" >{lease}; done; kill $reader 2>/dev/null'
    )


async def _listen(process: Process, interval: float) -> AsyncGenerator[bytes, None]:
    import asyncssh

    beating = asyncio.create_task(_beat(process, interval))
    try:
        while data := await process.stdout.read(65536):
            yield data
    except (asyncssh.Error, OSError) as error:
        raise UnreachableError(f"The connection was lost while the machine was made ready: {error}.") from error
    finally:
        beating.cancel()
        process.close()
    raise UnreachableError("The connection was lost while the machine was made ready.")


async def _beat(process: Process, interval: float) -> None:
    beats = 0
    while True:
        beats += 1
        # What reads notices that the connection is gone.
        with contextlib.suppress(OSError):
            process.channel.write(f"bootstrap {beats}\n".encode())
        await asyncio.sleep(interval)
