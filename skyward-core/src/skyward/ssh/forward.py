"""Connections to ports of a machine, inside its SSH connection."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from skyward.errors import TransportError, UnreachableError

if TYPE_CHECKING:
    from asyncssh import SSHClientConnection

OPENING = 20.0
"""Seconds in which a machine has to say whether anything listens."""


async def forwarded(connection: SSHClientConnection, port: int, where: str) -> tuple[Any, Any]:
    """
    Connect to a port of a machine's own 127.0.0.1.

    Args:
        connection: The machine.
        port: The port.
        where: What messages call the machine.

    Returns:
        A reader and a writer, as those of asyncio.

    Raises:
        ConnectionRefusedError: If nothing listens there.
        TransportError: If the server forwards nothing.
        UnreachableError: If the connection is lost, or nothing is said in time.
    """
    import asyncssh

    try:
        async with asyncio.timeout(OPENING):
            return await connection.open_connection("127.0.0.1", port, encoding=None)
    except TimeoutError:
        raise UnreachableError(f"{where} did not open port {port} within {OPENING:g} s.") from None
    except asyncssh.ChannelOpenError as error:
        # A connection that is lost fails its channels first.
        await asyncio.sleep(0)
        if error.code == asyncssh.OPEN_ADMINISTRATIVELY_PROHIBITED:
            raise TransportError(
                f"The SSH server of {where} forwards no ports: {error.reason}.",
                hint="Set AllowTcpForwarding there.",
            ) from error
        if error.code == asyncssh.OPEN_CONNECT_FAILED and not connection.is_closed():
            raise ConnectionRefusedError(error.reason) from error
        raise UnreachableError(f"{where} opens no port: {error.reason}.") from error
    except (asyncssh.Error, OSError) as error:
        raise UnreachableError(f"The connection to {where} was lost: {error}.") from error
