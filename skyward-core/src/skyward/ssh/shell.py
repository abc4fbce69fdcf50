"""Run commands on a machine, whatever the login shell is."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

from skyward.errors import TransportError, UnreachableError

if TYPE_CHECKING:
    from asyncssh import SSHClientConnection


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
        TransportError: If it does not end in time.
    """
    import asyncssh

    command, sent = (f"exec sh -c {quoted(script)}", data) if data else ("exec sh -s", script.encode())
    try:
        async with asyncio.timeout(timeout):
            done = await connection.run(command, input=sent, encoding=None)
    except TimeoutError:
        raise TransportError(f"A command on the machine did not end within {timeout:g} s.") from None
    except (asyncssh.Error, OSError) as error:
        raise UnreachableError(f"The connection was lost while a command ran: {error}.") from error
    code = done.exit_status if done.exit_status is not None else 128
    return Done(code, _text(done.stdout), _text(done.stderr))


def quoted(script: str) -> str:
    """
    Quote a script of one line for any login shell.

    >>> quoted("echo 'a'")
    "'echo '\\\\''a'\\\\'''"
    """
    return "'" + script.replace("'", "'\\''") + "'"


def _text(data: object) -> str:
    return data.decode("utf-8", "replace") if isinstance(data, bytes) else str(data or "")
