"""What both ends of a link say first on each connection: who they are, how much has arrived, what they unpack."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from skyward.errors import ProtocolError
from skyward.link.frames import VERSION
from skyward.link.packed import NAME

__all__ = ["brief", "read_hello", "why_refused", "write_hello"]

_LONGEST = 300


def write_hello(session: str, received: int, succeeds: Sequence[str] = ()) -> bytes:
    """
    Write the body of a `HELLO`.

    Args:
        session: The name that both ends know.
        received: How many numbered cells have arrived.
        succeeds: Sessions of clients before, one of which this one takes a node over from.
    """
    hello: dict[str, Any] = {"version": VERSION, "session": session, "received": received, "unpacks": [NAME]}
    if succeeds:
        hello["succeeds"] = list(succeeds)
    return json.dumps(hello).encode()


def read_hello(hello: Mapping[str, Any], session: str) -> tuple[int, bool]:
    """
    Return how many cells the other end has, and whether it unpacks compressed ones.

    Args:
        hello: What it said.
        session: The name that it has to say.

    Raises:
        ProtocolError: If it is none of ours, or does not say how much it has.

    >>> import json
    >>> read_hello(json.loads(write_hello("s", 7)), "s")
    (7, True)
    """
    if refused := why_refused(hello, session):
        raise ProtocolError(refused)
    received, unpacks = hello.get("received"), hello.get("unpacks")
    if not isinstance(received, int):
        raise ProtocolError("A link's HELLO does not say how much has arrived.")
    return received, isinstance(unpacks, list) and NAME in unpacks


def why_refused(hello: Mapping[str, Any], session: str) -> str:
    """
    Return why a connection that begins like this is none of ours; nothing if it is.

    Args:
        hello: What the other end said.
        session: The name that it has to say.

    >>> why_refused({"version": VERSION, "session": "s"}, "s")
    ''
    """
    if "refused" in hello:
        return f"the other end refused us: {brief(hello['refused'])}"
    if hello.get("version") != VERSION:
        return f"the other end speaks protocol {brief(hello.get('version'))} and this one speaks {VERSION}"
    if hello.get("session") != session:
        return "this node belongs to another client"
    return ""


def brief(said: object) -> str:
    """
    Repeat what the other end said, which may be anything of any length.

    >>> brief("no"), brief({})
    ('no', 'dict')
    """
    return str(said)[:_LONGEST] if isinstance(said, (str, int)) else type(said).__name__
