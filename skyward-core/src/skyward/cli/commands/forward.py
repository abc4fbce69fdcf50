"""`sky forward`: a port of a node, reached on this machine's 127.0.0.1."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from skyward.cli.terminal import say
from skyward.errors import ConfigError, UnreachableError, UsageError
from skyward.model.cli_command import Command

if TYPE_CHECKING:
    from skyward.cli.node_access import NodePlace

HERE = "127.0.0.1"
MOST = 65535


def arguments(parser: ArgumentParser) -> None:
    """Add which node and ports are meant."""
    parser.add_argument("node", metavar="POOL[:NODE]", help="a pool that is open or detached, and its node; the head")
    parser.add_argument("port", metavar="PORT[:LOCAL]", help="the port there, and the one here; 0 is any that is free")


def run(options: Namespace) -> int:
    """
    Forward connections until the program is interrupted.

    Raises:
        UsageError: If what is typed is no port.
    """
    import asyncio

    from skyward.cli.node_access import find_node, split_node

    remote, local = ports(options.port)
    return asyncio.run(_forward(find_node(*split_node(options.node)), remote, local))


def ports(text: str) -> tuple[int, int]:
    """
    Return the port there and the one here that are typed as `PORT[:LOCAL]`.

    Args:
        text: What is typed.

    Raises:
        UsageError: If one is no port.

    >>> ports("8888"), ports("8888:0")
    ((8888, 8888), (8888, 0))
    """
    words = text.split(":")
    good = len(words) <= 2 and all(word.isascii() and word.isdigit() and int(word) <= MOST for word in words)
    if not good or not int(words[0]):
        raise UsageError(f"{text!r} is no port.", hint="Write PORT, or PORT:LOCAL as in 8888:18888.")
    return int(words[0]), int(words[-1])


async def _forward(place: NodePlace, remote: int, local: int) -> int:
    from skyward.cli.node_access import PATIENCE
    from skyward.ssh.dial import dial

    async with await dial(place.address, patience=PATIENCE) as connection:
        try:
            listener = await connection.forward_local_port(HERE, local, HERE, remote)
        except OSError as error:
            raise ConfigError(
                f"Port {local} of this machine cannot be used: {error.strerror or error}.",
                hint=f"Give another one, as in {remote}:0 for any that is free.",
            ) from error
        say(f"{place.name}: port {remote} is http://{HERE}:{listener.get_port()} here, until Ctrl-C.")
        sys.stdout.flush()
        await connection.wait_closed()
    raise UnreachableError(f"The connection to {place.name} was lost.")


COMMAND = Command(run, summary="Reach a port of a node on this machine.", arguments=arguments)
