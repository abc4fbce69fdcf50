"""`sky cp`: files and folders to a node, or from one."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from attrs import frozen

from skyward.errors import UsageError
from skyward.model.cli_command import Command

if TYPE_CHECKING:
    from skyward.cli.node_access import NodePlace


@frozen
class Remote:
    """A path on a node."""

    pool: str
    node: int | None
    path: str


def arguments(parser: ArgumentParser) -> None:
    """Add what is copied, and to where."""
    parser.add_argument("source", metavar="SRC", help="a file or a folder: a path, or POOL[:NODE]:PATH")
    parser.add_argument("target", metavar="DST", help="where it is to be: POOL[:NODE]:PATH, or a path")


def place_of(text: str) -> Remote | str:
    """
    Return what is typed as `POOL[:NODE]:PATH`, or the path of this machine that it is.

    A path of this machine with a colon has a slash before it.

    Args:
        text: What is typed.

    >>> place_of("train:1:/data"), place_of("train:data"), place_of("./a:b")
    (Remote(pool='train', node=1, path='/data'), Remote(pool='train', node=None, path='data'), './a:b')
    """
    pool, colon, path = text.partition(":")
    if not colon or not pool or "/" in pool:
        return text
    node, colon, rest = path.partition(":")
    if colon and node.isascii() and node.isdigit():
        return Remote(pool, int(node), rest or ".")
    return Remote(pool, None, path or ".")


def run(options: Namespace) -> int:
    """
    Copy.

    Raises:
        UsageError: If not exactly one of both is on a node.
    """
    import asyncio

    from skyward.cli.node_access import find_node

    match place_of(options.source), place_of(options.target):
        case str() as source, Remote() as target:
            asyncio.run(_send(source, find_node(target.pool, target.node), target.path))
        case Remote() as source, str() as target:
            asyncio.run(_fetch(find_node(source.pool, source.node), source.path, target))
        case _:
            raise UsageError(
                "One of both has to be on a node, and the other here.", hint="Write sky cp FILE POOL:FILE."
            )
    return 0


async def _send(source: str, place: NodePlace, path: str) -> None:
    from skyward.cli.node_access import PATIENCE
    from skyward.ssh.copying import send
    from skyward.ssh.dial import dial

    async with await dial(place.address, patience=PATIENCE) as connection:
        await send(connection, source, path, place.name)


async def _fetch(place: NodePlace, path: str, target: str) -> None:
    from skyward.cli.node_access import PATIENCE
    from skyward.ssh.copying import fetch
    from skyward.ssh.dial import dial

    async with await dial(place.address, patience=PATIENCE) as connection:
        await fetch(connection, path, target, place.name)


COMMAND = Command(run, summary="Copy files to a node of an open or detached pool, or from one.", arguments=arguments)
