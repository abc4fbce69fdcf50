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


class SocketDialer:
    """
    Connect to Unix sockets of a machine: as its SSH server forwards them, or through a relay where it forwards none.

    Args:
        where: What messages call the machine.
    """

    def __init__(self, where: str) -> None:
        self._where = where
        self._forwards: bool | None = None

    async def dial(self, connection: SSHClientConnection, path: str, relay: str) -> tuple[Any, Any]:
        """
        Connect to a socket.

        Args:
            connection: The machine.
            path: The socket.
            relay: The command that joins its standard input and output with that socket.

        Returns:
            A reader and a writer, as those of asyncio. Behind a relay, it is the end of a first read that shows that
            nothing listens.

        Raises:
            ConnectionRefusedError: If nothing listens there.
            UnreachableError: If the connection is lost, or nothing is said in time.
        """
        import asyncssh

        try:
            async with asyncio.timeout(OPENING):
                try:
                    if self._forwards is not False:
                        stream = await connection.open_unix_connection(path, encoding=None)
                        self._forwards = True
                        return stream
                except asyncssh.ChannelOpenError:
                    # A connection that is lost fails its channels first.
                    await asyncio.sleep(0)
                    if self._forwards or connection.is_closed():
                        raise
                    # Servers say the same of a socket that they may not open and of one where nothing listens.
                    self._forwards = False
                process: Any = await connection.create_process(relay, encoding=None, stderr=asyncssh.DEVNULL)
                return process.stdout, process.stdin
        except TimeoutError:
            raise UnreachableError(f"{self._where} did not open {path} within {OPENING:g} s.") from None
        except asyncssh.ChannelOpenError as error:
            if not connection.is_closed():
                raise ConnectionRefusedError(error.reason) from error
            raise UnreachableError(f"{self._where} opens no socket: {error.reason}.") from error
        except (asyncssh.Error, OSError) as error:
            raise UnreachableError(f"The connection to {self._where} was lost: {error}.") from error
