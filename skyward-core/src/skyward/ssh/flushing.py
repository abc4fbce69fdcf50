"""Flush what was written on a machine, to its own disk and to those of the user."""

from __future__ import annotations

import shlex
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from skyward.errors import ProvisionError, SkywardError
from skyward.plan.offers.cloud_disk import unmount_disks
from skyward.ssh.shell import run

if TYPE_CHECKING:
    from asyncssh import SSHClientConnection

__all__ = ["UNMOUNTING", "flush", "unmount"]

UNMOUNTING = 120.0
"""Seconds in which a machine has to have flushed and unmounted the user's disks."""

_LONGEST = 300


async def flush(connection: SSHClientConnection, node: str, timeout: float, where: str) -> None:
    """
    Flush all that was written to a machine's disk, but for the script, which holds the image's variables.

    Args:
        connection: The machine.
        node: The node's directory there.
        timeout: Seconds it may take.
        where: What errors call the machine.

    Raises:
        ProvisionError: If it fails.
    """
    done = await run(connection, f"rm -f {shlex.quote(node)}/bootstrap.sh; sync", timeout=timeout)
    if done.code:
        raise ProvisionError(f"{where}: sync failed: {done.err.strip()[-200:]}")


async def unmount(connect: Callable[[], Awaitable[SSHClientConnection]], folders: Sequence[str]) -> str:
    """
    Flush disks and unmount them, within `UNMOUNTING` seconds.

    Args:
        connect: Connects to the machine.
        folders: Where the disks are.

    Returns:
        What failed; empty if nothing did.
    """
    try:
        done = await run(await connect(), unmount_disks(folders), timeout=UNMOUNTING)
    except SkywardError as error:
        return str(error)
    return done.err.strip()[-_LONGEST:] or f"exit code {done.code}" if done.code else ""
