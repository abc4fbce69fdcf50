"""Run commands on a machine, whatever the login shell is."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, NamedTuple

from skyward.errors import TransportError, UnreachableError

if TYPE_CHECKING:
    from asyncssh import SSHClientConnection


MOST = 1 << 20
"""Bytes that a command may print, on each of its streams; ours print some hundred."""

_PIECE = 64 << 10


class Done(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str


async def run(connection: SSHClientConnection, script: str, *, timeout: float, data: bytes = b"") -> Done:
    """
    Run a POSIX shell script and wait for its end.

    Args:
        connection: The machine.
        script: What to run.
        timeout: Seconds it may take.
        data: Its standard input; without it, the script itself is what the shell reads there.

    Raises:
        UnreachableError: If the connection is lost meanwhile.
        TransportError: If it does not end in time, or prints more than `MOST`.
    """
    import asyncssh

    command, sent = (f"exec sh -c {quoted(script)}", data) if data else ("exec sh -s", script.encode())
    try:
        async with asyncio.timeout(timeout):
            process = await connection.create_process(command, input=sent, encoding=None)
            out, err = await _output(process)
    except TimeoutError:
        raise TransportError(f"A command on the machine did not end within {timeout:g} s.") from None
    except (asyncssh.Error, OSError) as error:
        raise UnreachableError(f"The connection was lost while a command ran: {error}.") from error
    code = process.exit_status if process.exit_status is not None else 128
    return Done(code, out.decode("utf-8", "replace"), err.decode("utf-8", "replace"))


def quoted(script: str) -> str:
    """
    Quote a script of one line for any login shell.

    >>> quoted("echo 'a'")
    "'echo '\\\\''a'\\\\'''"
    """
    return "'" + script.replace("'", "'\\''") + "'"


async def _output(process: Any) -> tuple[bytes, bytes]:
    """Read both streams to their ends, side by side: either may wait for the other."""
    reading = [asyncio.ensure_future(_all_of(stream)) for stream in (process.stdout, process.stderr)]
    try:
        out, err = await asyncio.gather(*reading)
        await process.wait_closed()
    finally:
        for one in reading:
            one.cancel()
        process.close()
    return out, err


async def _all_of(stream: Any) -> bytes:
    data = bytearray()
    while piece := await stream.read(_PIECE):
        data += piece
        if len(data) > MOST:
            end = data[-100:].decode("utf-8", "replace")
            raise TransportError(
                f"A command on the machine printed more than {MOST} bytes, and was given up. It last printed {end!r}.",
                hint="Log in there: what runs at every login, such as ~/.bashrc, may print without end.",
            )
    return bytes(data)
