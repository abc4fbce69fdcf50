"""A script that runs on a machine by itself: started once, and listened to from where we were."""

from __future__ import annotations

import asyncio
import contextlib
import shlex
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any

from skyward.errors import UnreachableError

if TYPE_CHECKING:
    from asyncssh import SSHClientConnection


def start_command(node: str, size: int) -> str:
    """
    Render what writes its input to a node's directory as a script and starts that, apart from the connection.

    Args:
        node: Absolute path of the directory.
        size: Bytes of the script: what was cut off on the way is not run, and leaves nothing.
    """
    return (
        f"umask 077; node={shlex.quote(node)}; "
        'mkdir -p "$node" && cd "$node" && cat >bootstrap.new && : >bootstrap.log || { rm -rf "$node"; exit 1; }; '
        f'[ "$(wc -c <bootstrap.new)" -eq {size} ] || {{ rm -rf "$node"; exit 1; }}; '
        "mv bootstrap.new bootstrap.sh; "
        "if command -v setsid >/dev/null 2>&1; then leader=setsid; else leader=nohup; fi; "
        "$leader sh bootstrap.sh >bootstrap.log 2>&1 </dev/null &"
    )


async def follow(
    connection: SSHClientConnection, node: str, offset: int, interval: float
) -> AsyncGenerator[bytes, None]:
    """
    Give what a script has written from an offset on, as it comes; keeps the watchdog quiet meanwhile.

    Args:
        connection: The machine.
        node: Absolute path of the node's directory.
        offset: Bytes to leave out.
        interval: Seconds between two signs of life.

    Raises:
        UnreachableError: When the connection ends.
    """
    import asyncssh

    log, lease = shlex.quote(f"{node}/bootstrap.log"), shlex.quote(f"{node}/lease")
    command = (
        f"tail -c +{offset + 1} -f {log} & reader=$!; "
        f'while read -r beat; do echo "$beat" >{lease}; done; kill $reader 2>/dev/null'
    )
    beating: asyncio.Task[None] | None = None
    try:
        process: Any = await connection.create_process("exec sh -c " + shlex.quote(command), encoding=None)
        beating = asyncio.create_task(_beat(process, interval))
        while data := await process.stdout.read(65536):
            yield data
    except (asyncssh.Error, OSError) as error:
        raise UnreachableError(f"The connection was lost while the machine was made ready: {error}.") from error
    finally:
        if beating is not None:
            beating.cancel()
            with contextlib.suppress(OSError, asyncssh.Error):
                process.stdin.write_eof()
            process.close()
    raise UnreachableError("The connection was lost while the machine was made ready.")


async def _beat(process: Any, interval: float) -> None:
    beats = 0
    while True:
        beats += 1
        process.stdin.write(f"bootstrap {beats}\n".encode())
        await asyncio.sleep(interval)
