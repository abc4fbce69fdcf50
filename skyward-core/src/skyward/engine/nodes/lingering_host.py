"""A machine over SSH that waits for the next pool: left, claimed by one pool alone, and taken over."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Literal

from skyward.errors import ProvisionError, SkywardError
from skyward.plan.bootstrap import node_scripts
from skyward.ssh.dial import dial
from skyward.ssh.shell import run
from skyward.ssh.visits import KeptVisit, visit

if TYPE_CHECKING:
    from asyncssh import SSHClientConnection

    from skyward.model.instances.machine import SSHAddress

_log = logging.getLogger(__name__)

CLAIMING = 20.0
"""Seconds in which a machine that lingers has to answer: it runs already."""

COMMAND_TIMEOUT = 30.0
"""Seconds for one of our own commands."""

Claim = Literal["claimed", "taken", "silent"]
"""What came of a claim: the machine is this pool's, or another pool's or its watchdog's, or it does not answer."""


async def linger(connection: SSHClientConnection, name: str, seconds: float) -> str:
    """
    Leave a machine waiting for the next pool, with nothing of its node but the watchdog.

    Args:
        connection: The machine.
        name: The node's own name there.
        seconds: How long it waits until its watchdog ends it.

    Returns:
        The machine's host key, as in a file of known hosts.

    Raises:
        ProvisionError: If nothing would end it.
        SkywardError: If it does not answer.
    """
    return await _left(connection, node_scripts.linger(name, seconds))


async def detach(connection: SSHClientConnection, name: str, seconds: float) -> str:
    """
    Leave a node to another client, with all that runs there.

    Args:
        connection: The machine.
        name: The node's own name there.
        seconds: How long it waits until its watchdog ends it.

    Returns:
        The machine's host key, as in a file of known hosts.

    Raises:
        ProvisionError: If nothing would end it.
        SkywardError: If it does not answer.
    """
    return await _left(connection, node_scripts.detach(name, seconds))


async def resume(connection: SSHClientConnection, name: str) -> None:
    """
    End the wait of a node that was left, because its next client is there.

    Args:
        connection: The machine.
        name: The node's own name there.

    Raises:
        ProvisionError: If it would end all the same.
        SkywardError: If it does not answer.
    """
    done = await run(connection, node_scripts.resume(name), timeout=COMMAND_TIMEOUT)
    if done.code:
        raise ProvisionError(f"It would end when its lease does: {(done.out or done.err).strip()[-200:]}.")


async def _left(connection: SSHClientConnection, script: str) -> str:
    done = await run(connection, script, timeout=COMMAND_TIMEOUT)
    key = connection.get_server_host_key()
    if done.code or key is None:
        raise ProvisionError(f"It cannot be left to a next client: {(done.out or done.err).strip()[-200:]}.")
    line: bytes = key.export_public_key()
    return line.decode().strip()


async def claim(address: SSHAddress, name: str, within: float, visits: KeptVisit) -> Claim:
    """
    Acquire a machine that lingers, for one pool alone.

    Args:
        address: The machine.
        name: The name of the node that it was.
        within: Seconds from now on after which it ends, unless a node was made of it.
        visits: Takes the connection to it, for what comes next.
    """
    try:
        async with asyncio.timeout(CLAIMING):
            connection = await dial(address, patience=CLAIMING)
            try:
                script = node_scripts.claim(name, within)
                made, done = await asyncio.gather(
                    visit(connection, timeout=CLAIMING), run(connection, script, timeout=CLAIMING)
                )
            except BaseException:
                connection.close()
                raise
    except (SkywardError, TimeoutError) as error:
        _log.info("lingering.silent address=%s reason=%s", address, error)
        return "silent"
    if not done.code:
        visits.put(address, made)
        return "claimed"
    connection.close()
    _log.info("lingering.not_claimed address=%s code=%d: %s", address, done.code, done.err.strip()[-200:])
    # Where it lingers no more, another pool has made a node of it, or it was started again.
    return "taken"


async def succeed(connection: SSHClientConnection, name: str) -> None:
    """
    Remove what is left of the node that a machine was, with its watchdog, once its next node's own is there.

    Args:
        connection: The machine.
        name: The name of the node that it was; empty if it was none.

    Raises:
        SkywardError: If the machine does not answer.
    """
    if name:
        await run(connection, node_scripts.succeed(name), timeout=COMMAND_TIMEOUT)
