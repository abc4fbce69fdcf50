"""
What workers ask their client to keep, and its answers: the bodies of KEEP frames.

    u64 number, which the answer repeats   payload of two parts: JSON, bytes

| `do` | what else the JSON of a request says | what the answer says |
|---|---|---|
| `list` | `address`, `named` | `versions`: their numbers, oldest first |
| `write` | `address`, `named`, `upload`, `at`; the bytes for that place | |
| `publish` | `upload`, `size`, `keep` | `version`: its number |
| `drop` | `upload`: what is not to be published | |
| `read` | `address`, `named`, `version`, `at` | `size` of the whole; bytes from that place on |
| `delete` | `address`, `named` | |

What fails is answered with `error`, a sentence, and the system's `errno` where there is one.
An upload is a random text; its bytes may arrive in any order, and are all there when it is published.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from skyward.errors import ProtocolError
from skyward.link.frames import Frame, decode_json
from skyward.link.messages import CALL
from skyward.link.order import sizes_of
from skyward.link.payload import Payload, decode, views
from skyward.link.payload_making import pack

__all__ = ["ADDRESS", "PIECE", "WINDOW", "KeepMessage", "check_announced", "decode_kept", "encode_kept"]

PIECE: Final = 960 << 10
"""Bytes of a file in one frame, at most; a segment with them stays below 1 MiB."""

WINDOW: Final = 4
"""Requests of one worker that may wait for their answers."""

ADDRESS: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")
"""What a checkpoint is called, in folders and in storage."""

_LARGEST: Final = 2 << 20
_LARGEST_HEAD: Final = 64 << 10


class KeepMessage(NamedTuple):
    """A request or an answer."""

    number: int
    head: dict[str, Any]
    data: memoryview | bytearray


def encode_kept(number: int, head: dict[str, Any], data: bytes = b"") -> tuple[bytes, Payload]:
    """
    Render a request or an answer, as a body and what travels with it.

    >>> body, payload = encode_kept(7, {"do": "list"}, b"bytes")
    >>> found = decode_kept(body, payload.fds)
    >>> found.number, found.head, bytes(found.data)
    (7, {'do': 'list'}, b'bytes')
    """
    payload = pack([json.dumps(head).encode(), data])
    return CALL.pack(number) + payload.encode(), payload


def decode_kept(body: bytes, fds: Sequence[int]) -> KeepMessage:
    """
    Read a request or an answer.

    Args:
        body: The frame's.
        fds: The descriptors that came with it; taken over.

    Raises:
        ProtocolError: If it is none.
    """
    payload = decode(body, CALL.size, fds)
    if payload.size > _LARGEST:
        raise ProtocolError(f"A KEEP frame carries {payload.size} bytes; {_LARGEST} are allowed.")
    parts = views(payload)
    if len(parts) != 2 or len(parts[0]) > _LARGEST_HEAD:
        raise ProtocolError("A KEEP frame does not consist of JSON and bytes.")
    return KeepMessage(CALL.unpack_from(body)[0], decode_json(bytes(parts[0])), parts[1])


def check_announced(frame: Frame) -> None:
    """
    Check a frame whose bytes are about to come.

    Raises:
        ProtocolError: If they are too many.
    """
    if (size := sum(sizes_of(frame))) > _LARGEST:
        raise ProtocolError(f"A KEEP frame of {size} bytes was announced; {_LARGEST} are allowed.")
