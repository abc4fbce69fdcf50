"""Pickles that are nearly right: of the corpus and of honest values, with some bytes changed."""

from __future__ import annotations

import random
from collections.abc import Callable

from tests.link.data import hostile
from tests.link.data.values import VALUES, pickled

SMALL = [data for data in hostile.all_of_them().values() if len(data) < 2000]
PIECES = [
    *SMALL,
    *map(pickled, VALUES),
    b"R",
    b"b",
    b"\x81",
    b"\x93",
    b"\x94",
    b"(",
    b"t",
    b"}",
]


def mutated(draw: random.Random, data: bytes) -> bytes:
    """Change some bytes: others, fewer, more, of another pickle."""
    found = bytearray(data[: 1 << 16])
    for _ in range(draw.randrange(1, 6)):
        at = draw.randrange(len(found) + 1)
        piece = draw.choice(PIECES)
        cut = draw.randrange(len(piece) + 1)
        changes: list[Callable[[], object]] = [
            lambda at=at: found.insert(at, draw.randrange(256)),  # type: ignore[misc]
            lambda at=at: found.__setitem__(slice(at, at + 1), bytes([draw.randrange(256)])),  # type: ignore[misc]
            lambda at=at: found.__delitem__(slice(at, at + draw.randrange(9))),  # type: ignore[misc]
            lambda at=at, piece=piece, cut=cut: found.__setitem__(slice(at, at), piece[cut : cut + 40]),  # type: ignore[misc]
        ]
        draw.choice(changes)()
    return bytes(found)
