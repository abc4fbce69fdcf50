"""A machine that is visited: logged in to, looked at, and kept for what is done there next."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from attrs import define

from skyward.ssh import probe
from skyward.ssh.shell import Done, MachineShell, open_shell

if TYPE_CHECKING:
    from asyncssh import SSHClientConnection

    from skyward.model.instances.machine import SSHAddress

__all__ = ["KEPT", "KeptVisit", "Visit", "keep", "keeping", "visit"]

KEPT = 20.0
"""Seconds for which a machine that was looked at stays logged in to; what was found there may be true no longer."""


LEFT_WITHIN = 2.0
"""Seconds in which machines see that they are left."""


@define(eq=False)
class Visit:
    """
    Hold what a look at a machine leaves.

    Args:
        connection: The machine.
        shell: A shell there that listens.
        found: What it has.
        said: What it was read from.
    """

    connection: SSHClientConnection
    shell: MachineShell
    found: probe.Findings
    said: Done


async def visit(connection: SSHClientConnection, *, timeout: float) -> Visit:
    """
    Look at a machine.

    Args:
        connection: The machine.
        timeout: Seconds that it has to say what it has.

    Raises:
        SkywardError: If it does not.
    """
    shell, said = await open_shell(connection, probe.script(), timeout=timeout)
    return Visit(connection, shell, probe.read(said.out), said)


class KeptVisit:
    """Keep visits from the moment a pool's offers are looked at until its nodes are made of them."""

    def __init__(self) -> None:
        self._visits: dict[SSHAddress, tuple[Visit, asyncio.TimerHandle]] = {}

    def put(self, address: SSHAddress, made: Visit) -> None:
        """Keep a visit, for `KEPT` seconds at most."""
        self._drop(address)
        timer = asyncio.get_running_loop().call_later(KEPT, self._drop, address)
        self._visits[address] = (made, timer)

    def take(self, address: SSHAddress) -> Visit | None:
        """Return the visit of a machine, once, if the connection is still there."""
        made, timer = self._visits.pop(address, (None, None))
        if timer is not None:
            timer.cancel()
        return None if made is None or made.connection.is_closed() else made

    async def close(self) -> None:
        """Leave all machines that nothing was made of, and wait until they have seen it, for `LEFT_WITHIN` at most."""
        left = [made.connection for made in map(self.take, tuple(self._visits)) if made is not None]
        for connection in left:
            connection.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LEFT_WITHIN):
                await asyncio.gather(*(connection.wait_closed() for connection in left), return_exceptions=True)

    def _drop(self, address: SSHAddress) -> None:
        made = self.take(address)
        if made is not None:
            made.connection.close()


_keeper: ContextVar[KeptVisit | None] = ContextVar("keeper", default=None)


@contextmanager
def keeping(kept: KeptVisit) -> Iterator[None]:
    """Have the machines that are looked at in this block kept."""
    token = _keeper.set(kept)
    try:
        yield
    finally:
        _keeper.reset(token)


def keep(address: SSHAddress, made: Visit) -> None:
    """Keep a visit where something keeps them; leave the machine otherwise."""
    keeper = _keeper.get()
    if keeper is None:
        made.connection.close()
    else:
        keeper.put(address, made)
