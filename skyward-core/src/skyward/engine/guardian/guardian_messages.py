"""What a client and the guardian of its machines say to each other, and how."""

from __future__ import annotations

import asyncio
import os
import pickle
import struct
import sys
from typing import Any

import attrs
from attrs import frozen

from skyward.plan.instances.guardian_duty import Duty

__all__ = ["Client", "charge", "charged", "frame", "framed", "message", "packed", "sealed"]

_LENGTH = struct.Struct("!Q")


@frozen
class Client:
    """
    Say in what surroundings the client lives, so that its provider can live there too.

    Args:
        pid: Its process id.
        path: Where it imports from.
        environ: Its environment variables, in which clouds find credentials.
    """

    pid: int
    path: tuple[str, ...]
    environ: dict[str, str] = attrs.field(repr=False)

    @classmethod
    def here(cls) -> Client:
        """Describe this process."""
        path = tuple(os.path.abspath(entry) for entry in sys.path)
        return cls(os.getpid(), path, dict(os.environ))


def charge(provider: object, duty: Duty) -> bytes:
    """
    Return one message with all that a guardian has to know at its start.

    Args:
        provider: Where the machines come from.
        duty: What there is to guard.

    Raises:
        Exception: If it cannot be pickled.
    """
    return packed((Client.here(), sealed(provider, duty)))


def sealed(provider: object, duty: Duty) -> bytes:
    """
    Return what only opens where the client's modules are found.

    Args:
        provider: Where the machines come from.
        duty: What there is to guard.

    Raises:
        Exception: If it cannot be pickled.
    """
    return _dumped((_recipe(provider), duty))


def charged(inner: bytes) -> tuple[object, Duty]:
    """
    Return the provider and the duty that a client sent.

    Args:
        inner: What `sealed` gave.
    """
    (cls, keywords, value), duty = message(inner)
    return (value if cls is None else cls(**keywords)), duty


def packed(message: object) -> bytes:
    """
    Return a message as it is sent.

    Args:
        message: Anything that can be pickled.
    """
    return framed(_dumped(message))


def message(body: bytes) -> Any:
    """
    Return a message that was sent.

    Args:
        body: What `frame` gave.
    """
    # Both sides are one program, and the socket has no name.
    return pickle.loads(body)


def framed(body: bytes) -> bytes:
    """
    Return bytes with their length before them.

    Args:
        body: The bytes.
    """
    return _LENGTH.pack(len(body)) + body


async def frame(reader: asyncio.StreamReader) -> bytes:
    """
    Return the bytes that were sent next.

    Args:
        reader: Where they come from.

    Raises:
        EOFError: If the other side is gone.
    """
    try:
        (length,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
        return await reader.readexactly(length)
    except (asyncio.IncompleteReadError, OSError) as error:
        raise EOFError from error


def _dumped(value: Any) -> bytes:
    import cloudpickle

    dumped: bytes = cloudpickle.dumps(value)
    return dumped


def _recipe(provider: object) -> tuple[Any, dict[str, Any], object]:
    """Return how a provider is made: what it opened meanwhile, connections and locks, stays here."""
    cls: Any = type(provider)
    if not attrs.has(cls):
        return None, {}, provider
    made_of = {one.alias: getattr(provider, one.name) for one in attrs.fields(cls) if one.init and one.alias}
    return cls, made_of, None
