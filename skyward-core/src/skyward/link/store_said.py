"""
What travels about the store of a pool's collections, in STORE frames.

| from | body |
|---|---|
| worker, agent | `where`: where is it |
| agent | `ended`: the server of that number has ended, and why |
| client | `at`: its socket, its password and its generation |
| client | `none`: why there is no store |
| client | `lost`: the store of that generation is gone |
"""

from __future__ import annotations

import json
from typing import Any, Final, NamedTuple

from skyward import errors
from skyward.errors import ProtocolError, SkywardError
from skyward.link.frames import decode_json

__all__ = ["STARTS_WITHIN", "ServerEnded", "StoreGone", "StorePlace", "Where", "decode", "encode_refusal"]

STARTS_WITHIN: Final = 300.0
"""Seconds in which a store has to be there: a server that a machine lacks is installed meanwhile."""

_REFUSALS: Final = ("UsageError", "PoolClosedError", "PoolEndedError", "NodeLostError", "ProvisionError")
"""Errors that a client answers with; of any other, its nearest base among these travels, or the last one."""


class Where(NamedTuple):
    """The question where the store is."""

    def encode(self) -> bytes:
        """
        Render it as a body.

        >>> decode(Where().encode())
        Where()
        """
        return b'{"said": "where"}'


class StorePlace(NamedTuple):
    """
    Where a node finds the store.

    Args:
        path: Its Unix socket on this machine.
        password: What it asks for.
        generation: Its name; a store that took the place of a lost one has another.
    """

    path: str
    password: str
    generation: str

    def __repr__(self) -> str:
        return f"StorePlace(path={self.path!r}, generation={self.generation!r})"

    def encode(self) -> bytes:
        """
        Render it as a body.

        >>> decode(StorePlace("/run/s.sock", "secret", "g1").encode())
        StorePlace(path='/run/s.sock', generation='g1')
        """
        return json.dumps({"said": "at", **self._asdict()}).encode()


class StoreGone(NamedTuple):
    """The notice that a store is gone, with its generation."""

    generation: str

    def encode(self) -> bytes:
        """Render it as a body."""
        return json.dumps({"said": "lost", **self._asdict()}).encode()


class ServerEnded(NamedTuple):
    """The notice that a server has ended, with its number and the reason."""

    number: int
    why: str

    def encode(self) -> bytes:
        """Render it as a body."""
        return json.dumps({"said": "ended", "number": self.number, "why": self.why[-1000:]}).encode()


def encode_refusal(error: SkywardError) -> bytes:
    """
    Render why there is no store, for the task that asks.

    Args:
        error: The reason.

    >>> raise decode(encode_refusal(errors.UsageError("No collections here.", hint="Open another pool.")))
    Traceback (most recent call last):
        ...
    skyward.errors.UsageError: No collections here. Open another pool.
    """
    names = [kind.__name__ for kind in type(error).__mro__]
    name = next((name for name in names if name in _REFUSALS), _REFUSALS[-1])
    return json.dumps({"said": "none", "error": name, "message": error.message, "hint": error.hint}).encode()


def decode(body: bytes) -> Where | StorePlace | StoreGone | ServerEnded | SkywardError:
    """
    Read the body of a STORE frame.

    Raises:
        ProtocolError: If it says something else.

    >>> decode(b'{"said": "at", "path": 7}')
    Traceback (most recent call last):
        ...
    skyward.errors.ProtocolError: A STORE frame has no text path.
    """
    said = decode_json(body)
    match said.get("said"):
        case "where":
            return Where()
        case "at":
            return StorePlace(_text(said, "path"), _text(said, "password"), _text(said, "generation"))
        case "lost":
            return StoreGone(_text(said, "generation"))
        case "ended":
            number = said.get("number")
            if type(number) is not int:
                raise ProtocolError("A STORE frame names no server.")
            return ServerEnded(number, _text(said, "why"))
        case "none" if said.get("error") in _REFUSALS:
            kind = getattr(errors, said["error"])
            hint = said.get("hint")
            error: SkywardError = kind(_text(said, "message"), hint=hint if isinstance(hint, str) else None)
            return error
        case other:
            raise ProtocolError(f"A STORE frame says {str(other)[:100]!r}, which nothing says of a store.")


def _text(said: dict[str, Any], name: str) -> str:
    value = said.get(name)
    if not isinstance(value, str):
        raise ProtocolError(f"A STORE frame has no text {name}.")
    return value
