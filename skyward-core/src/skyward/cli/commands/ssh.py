"""`sky ssh`: a shell on a node."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from skyward.cli.terminal import complain
from skyward.model.cli_command import Command

if TYPE_CHECKING:
    from skyward.cli.node_access import NodePlace


def arguments(parser: ArgumentParser) -> None:
    """Add which node is meant."""
    parser.add_argument("node", metavar="POOL[:NODE]", help="a pool that is open or detached, and its node; the head")


def run(options: Namespace) -> int:
    """Open the login shell of the node's user there, with a terminal if there is one here; return its exit code."""
    import asyncio

    from skyward.cli.node_access import find_node, split_node

    place = find_node(*split_node(options.node))
    if sys.stdin.isatty():
        complain(f"{place.name}: {place.address}")
    return asyncio.run(_shell(place))


async def _shell(place: NodePlace) -> int:
    from skyward.cli.node_access import PATIENCE
    from skyward.ssh.attached_command import Streams, attached
    from skyward.ssh.dial import dial

    connection = await dial(place.address, patience=PATIENCE)
    try:
        return await attached(connection, None, Streams(terminal=sys.stdin.isatty()))
    finally:
        connection.close()
        await connection.wait_closed()


COMMAND = Command(run, summary="Open a shell on a node of an open or detached pool.", arguments=arguments)
