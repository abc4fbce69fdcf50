"""
The members of a version, as the difference from another version: pure.

A roster holds a row for each place of the pool that a ready node has: the address at which the others reach it, and
the one at which the client does. Ranks are not sent: both ends number the rows in the order of their places.

A PEERS frame holds, as JSON:

| from → to | body |
|---|---|
| worker → agent → client | `version`, whose members are asked for |
| client → agent | `version`, `base` (0: none), `gone`: places, `here`: `[place, private address, public address]` |
| agent → worker | `version`, `peers`: `[private address, public address]`, in the order of their ranks |
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

from skyward.errors import ProtocolError
from skyward.link.frames import Kind, decode_json, encode

LARGEST_PLACE: Final = 1 << 31
"""Places of a pool are numbers below it."""

_ADDRESS: Final = 255
_COMPACT: Final = (",", ":")


class Row(NamedTuple):
    """What the members of a pool know of one of them."""

    private: str
    public: str | None


Rows: TypeAlias = Mapping[int, Row]
"""The members by their places; what is equal in two versions is one object in both."""


class Change(NamedTuple):
    """What makes one version of the members of another."""

    gone: tuple[int, ...]
    here: tuple[tuple[int, Row], ...]


def difference(before: Rows, after: Rows) -> Change:
    """
    Return what changed between two versions.

    >>> one, two = Row("10.0.0.1", None), Row("10.0.0.2", None)
    >>> difference({0: one, 1: two}, {0: one, 2: two})
    Change(gone=(1,), here=((2, Row(private='10.0.0.2', public=None)),))
    """
    return Change(
        gone=tuple(place for place in before if place not in after),
        here=tuple((place, row) for place, row in after.items() if before.get(place) != row),
    )


def applied(before: Rows, change: Change) -> dict[int, Row]:
    """
    Return the version that a change leads to, in the order of places.

    Raises:
        ProtocolError: If a member is to go that is not there.

    >>> applied({0: Row("10.0.0.1", None)}, Change(gone=(), here=((1, Row("10.0.0.2", None)),)))[1].private
    '10.0.0.2'
    """
    after = dict(before)
    for place in change.gone:
        if after.pop(place, None) is None:
            raise ProtocolError(f"A change of the members takes place {place} away, where no member is.")
    after.update(change.here)
    return dict(sorted(after.items()))


def encode_question(version: int) -> bytes:
    """Render the question for the members of a version."""
    return _frame({"version": version})


def decode_question(body: bytes) -> int:
    """
    Read which version's members are asked for.

    Raises:
        ProtocolError: If it is no version.

    >>> decode_question(encode_question(7)[8:])
    7
    """
    return _number(decode_json(body), "version", least=1)


def encode_change(version: int, base: int, change: Change) -> bytes:
    """
    Render the answer for an agent.

    Args:
        version: Whose members they are.
        base: The version that the change is from; 0 for no members at all.
        change: The difference.

    Raises:
        ProtocolError: If it is larger than a frame.
    """
    here = [(place, *row) for place, row in change.here]
    return _frame({"version": version, "base": base, "gone": change.gone, "here": here})


def decode_change(body: bytes) -> tuple[int, int, Change]:
    """
    Read a client's answer: its version, what it is based on, and the difference.

    Raises:
        ProtocolError: If it is malformed.

    >>> change = Change((4,), ((1, Row("10.0.0.2", "1.2.3.4")),))
    >>> decode_change(encode_change(7, 3, change)[8:]) == (7, 3, change)
    True
    """
    sent = decode_json(body)
    version, base = _number(sent, "version", least=1), _number(sent, "base", least=0)
    gone = tuple(_place(one) for one in _list(sent, "gone"))
    here = tuple((_place(place), _row(row)) for place, *row in map(_tuple, _list(sent, "here")))
    return version, base, Change(gone, here)


def encode_peers(version: int, rows: Iterable[Row]) -> bytes:
    """
    Render the answer for a worker.

    Args:
        version: Whose members they are.
        rows: The members, in the order of their places.

    Raises:
        ProtocolError: If it is larger than a frame.
    """
    return _frame({"version": version, "peers": list(rows)})


def decode_peers(body: bytes) -> tuple[int, tuple[Row, ...]]:
    """
    Read an agent's answer: its version, and the members in the order of their ranks.

    Raises:
        ProtocolError: If it is malformed.

    >>> decode_peers(encode_peers(7, [Row("10.0.0.2", None)])[8:])
    (7, (Row(private='10.0.0.2', public=None),))
    """
    sent = decode_json(body)
    return _number(sent, "version", least=1), tuple(_row(_tuple(row)) for row in _list(sent, "peers"))


def _frame(value: Any) -> bytes:
    return encode(Kind.PEERS, json.dumps(value, separators=_COMPACT).encode())


def _number(sent: dict[str, Any], name: str, *, least: int) -> int:
    value = sent.get(name)
    # True is an int in Python, and no version.
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise ProtocolError(f"A PEERS frame says {name}={str(value)[:100]!r}.")
    return value


def _list(sent: dict[str, Any], name: str) -> list[Any]:
    value = sent.get(name)
    if not isinstance(value, list):
        raise ProtocolError(f"A PEERS frame says {name}={str(value)[:100]!r}, which is no list.")
    return value


def _tuple(value: Any) -> tuple[Any, ...]:
    if not isinstance(value, list) or not value:
        raise ProtocolError(f"A PEERS frame has {str(value)[:100]!r} in the place of a member.")
    return tuple(value)


def _place(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < LARGEST_PLACE:
        raise ProtocolError(f"A PEERS frame has a member at the place {str(value)[:100]!r}.")
    return value


def _row(value: Iterable[Any]) -> Row:
    match tuple(value):
        case (str(private), None | str() as public) if len(private) <= _ADDRESS and len(public or "") <= _ADDRESS:
            return Row(private, public)
        case other:
            raise ProtocolError(f"A PEERS frame has a member: {str(other)[:100]}.")
