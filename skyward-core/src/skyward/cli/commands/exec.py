"""`sky exec`: a command on a node."""

from __future__ import annotations

import argparse
import shlex
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from skyward.errors import UsageError
from skyward.model.cli_command import Command

if TYPE_CHECKING:
    from skyward.cli.node_access import NodePlace


def arguments(parser: ArgumentParser) -> None:
    """Add which node is meant, and what it runs."""
    parser.add_argument("--tty", action="store_true", help="give the command a terminal, for what draws on one")
    parser.add_argument("node", metavar="POOL[:NODE]", help="a pool that is open or detached, and its node; the head")
    parser.add_argument("words", nargs=argparse.REMAINDER, metavar="-- COMMAND ...", help="the command, as it is")


def run(options: Namespace) -> int:
    """
    Run the command with the streams that there are here, and return its exit code.

    Raises:
        UsageError: If there is no command, or no terminal for one.
    """
    import asyncio
    import sys

    from skyward.cli.node_access import find_node, split_node

    words = options.words[1:] if options.words[:1] == ["--"] else options.words
    if not words:
        raise UsageError("Nothing says what to run.", hint="Write sky exec POOL -- COMMAND, or sky ssh POOL.")
    if options.tty and not sys.stdin.isatty():
        raise UsageError("There is no terminal here for --tty.", hint="Leave it out.")
    place = find_node(*split_node(options.node))
    return asyncio.run(_command(place, f"cd && exec {shlex.join(words)}", terminal=options.tty))


async def _command(place: NodePlace, script: str, *, terminal: bool) -> int:
    from skyward.cli.node_access import PATIENCE
    from skyward.ssh.attached_command import Streams, attached
    from skyward.ssh.dial import dial
    from skyward.ssh.shell import script_line

    connection = await dial(place.address, patience=PATIENCE)
    try:
        return await attached(connection, script_line(script), Streams(terminal=terminal))
    finally:
        connection.close()
        await connection.wait_closed()


COMMAND = Command(run, summary="Run a command on a node of an open or detached pool.", arguments=arguments)
