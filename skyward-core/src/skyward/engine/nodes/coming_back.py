"""Go on with a node that another client has left."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING

from skyward.engine.nodes.host import LeavableHost
from skyward.errors import ProvisionError

if TYPE_CHECKING:
    from skyward.engine.nodes.node_shell import NodeShell
    from skyward.link.payload import Payload

__all__ = ["come_back"]

ANSWERING = 20.0
"""Seconds that an agent has to say which calls it has."""


async def come_back(shell: NodeShell, files: Iterable[Payload]) -> None:
    """
    Take over the link to a node's agent, which then sends what it has kept.

    Args:
        shell: The node; its machine was claimed.
        files: The user's modules, for the calls that it is given from now on.

    Raises:
        SkywardError: If it cannot be taken over.
    """
    host = shell.host
    if not isinstance(host, LeavableHost):
        raise ProvisionError(f"{shell.where} is not reached over SSH.", node=shell.index)
    await host.prepare()
    await shell.connect()
    try:
        async with asyncio.timeout(ANSWERING):
            calls = await shell.ask({"calls": True})
    except TimeoutError:
        raise ProvisionError(
            f"{shell.where} did not say within {ANSWERING:g} s which calls it has.", node=shell.index
        ) from None
    await host.resume()
    for payload in files:
        if shell.link is not None:
            shell.link.send_files(payload)
    shell.listener.came_back(shell, calls)
    shell.came_back()
