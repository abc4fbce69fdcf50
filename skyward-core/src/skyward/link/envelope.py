"""
A node's report of a failure: plain data, and the pickle of each exception beside it, unopened.

    u8 version   u16 length of the headline   u32 length of the facts   headline   facts   the pickles

The headline is text.
The facts are JSON: the traceback as text, and for each exception of the chain a row as `Record` names its columns, with
the length of its pickle in place of the pickle.
The engine's loop reads the headline alone, and nothing there takes longer than to cut a few hundred bytes.
"""

from __future__ import annotations

import json
from struct import Struct
from typing import Any, Final, NamedTuple, NoReturn

from skyward.link.described import shortened
from skyward.link.frames import MAX_BODY

__all__ = ["CHAIN_LIMIT", "LIMIT", "NOTE_LIMIT", "Envelope", "Record", "headline_of"]

LIMIT: Final = MAX_BODY - 1024
"""Bytes of a whole envelope, which travels in one frame."""

CHAIN_LIMIT: Final = 100
"""Exceptions of one chain."""

NOTE_LIMIT: Final = 100
"""Notes of one exception."""

_VERSION: Final = 2
_HEAD: Final = Struct("<BHI")
_HEADLINE_LIMIT: Final = 500
# What has room in an envelope whose facts alone are too large, in bytes of each text.
_SCANT: Final = 1000
_DIGITS: Final = 12


class Record(NamedTuple):
    """
    The plain-text facts of one exception of a chain.

    Args:
        type_name: Qualified name of its class.
        message: Its text.
        did: What it did where it is no `Exception`, such as "called sys.exit(3)".
        notes: Its notes.
        cause: Place of its cause in the chain.
        context: Place of its context in the chain.
        suppress_context: Whether the context is not printed.
        pickled: Its pickle, in which others of the chain are named by their places; None where there is none.
        reason: Why there is no pickle.
    """

    type_name: str
    message: str
    did: str
    notes: tuple[str, ...]
    cause: int | None
    context: int | None
    suppress_context: bool
    pickled: bytes | None
    reason: str


class Envelope(NamedTuple):
    """
    A failure as it travels.

    Args:
        text: The traceback on the node.
        records: The exceptions of the chain, the raised one first.

    >>> record = Record("KeyError", "'gone'", "", (), None, None, False, None, "it was not asked for")
    >>> Envelope.decode(Envelope("Traceback ...", (record,)).encode()).records[0].message
    "'gone'"
    """

    text: str
    records: tuple[Record, ...]

    def encode(self) -> bytes:
        """
        Render it, with as much as a frame has room for.

        Pickles that have no room are left out, those of the outermost exceptions last; then texts are cut.
        """
        if self._characters() > LIMIT:
            return self._scant()._rendered()
        envelope = self._lighter()
        data = envelope._rendered()
        return data if len(data) <= LIMIT else envelope._scant()._rendered()

    @staticmethod
    def decode(data: bytes) -> Envelope:
        """
        Read one; nothing in it is opened.

        Raises:
            ValueError: If the bytes are no envelope.
        """
        if len(data) < _HEAD.size:
            raise ValueError("it is cut off")
        version, headline, facts = _HEAD.unpack_from(data)
        if version != _VERSION:
            raise ValueError(f"version {_VERSION} of a failure was expected, not {version}")
        at = _HEAD.size + headline
        if at + facts > len(data):
            raise ValueError("it is cut off")
        try:
            parsed: Any = json.loads(data[at : at + facts], parse_int=_whole, parse_float=_none, parse_constant=_none)
        except RecursionError:
            raise ValueError("it is nested too deep") from None
        if (
            not isinstance(parsed, list)
            or len(parsed) != 2
            or not isinstance(parsed[0], str)
            or not isinstance(parsed[1], list)
        ):
            raise ValueError("it is no pair of a text and rows")
        text, rows = parsed
        if not 1 <= len(rows) <= CHAIN_LIMIT:
            raise ValueError(f"it has {len(rows)} exceptions, not of 1 to {CHAIN_LIMIT}")
        at += facts
        records = []
        for row in rows:
            size = _checked(row, len(rows))
            if size is not None and at + size > len(data):
                raise ValueError("a pickle is cut off")
            name, message, did, notes, cause, context, suppressed, _, reason = row
            pickled = None if size is None else data[at : at + size]
            records.append(Record(name, message, did, tuple(notes), cause, context, suppressed, pickled, reason))
            at += size or 0
        if at != len(data):
            raise ValueError(f"{len(data) - at} bytes are left over")
        return Envelope(text, tuple(records))

    def _characters(self) -> int:
        texts = (self.text, *(text for row in self.records for text in (row.message, row.did, row.reason, *row.notes)))
        return sum(map(len, texts))

    def _lighter(self) -> Envelope:
        """Leave out the pickles for which there is no room beside the texts."""
        facts = len(_facts(self))
        room = LIMIT - _HEAD.size - _HEADLINE_LIMIT - facts - 100 * len(self.records)
        records = []
        for record in self.records:
            size = len(record.pickled or b"")
            if size <= room:
                records.append(record)
                room -= size
            else:
                reason = f"it is too large to travel ({size} bytes pickled, {max(room, 0)} are left in a frame)"
                records.append(record._replace(pickled=None, reason=reason))
        return Envelope(self.text, tuple(records))

    def _scant(self) -> Envelope:
        """Keep of every text what has room for certain, and of the pickles none."""
        why = "the text of its chain is too large to travel"
        return Envelope(
            shortened(self.text, LIMIT // 16),
            tuple(
                record._replace(
                    type_name=shortened(record.type_name, _SCANT // 4),
                    message=shortened(record.message, _SCANT),
                    did=shortened(record.did, _SCANT // 4),
                    notes=(),
                    pickled=None,
                    reason=record.reason if record.pickled is None and len(record.reason) < _SCANT // 4 else why,
                )
                for record in self.records[:CHAIN_LIMIT]
            ),
        )

    def _rendered(self) -> bytes:
        facts, headline = _facts(self), _headline(self.records[0])
        pickles = (record.pickled for record in self.records if record.pickled is not None)
        return b"".join((_HEAD.pack(_VERSION, len(headline), len(facts)), headline, facts, *pickles))


def headline_of(data: bytes) -> str:
    """
    Return what a failure says in one line; nothing else of it is read.

    Args:
        data: What `Envelope.encode` gave, or anything.

    >>> headline_of(b"anything")
    'a failure that cannot be read'
    """
    if len(data) < _HEAD.size:
        return "a failure that cannot be read"
    version, size, _ = _HEAD.unpack_from(data)
    if version != _VERSION or size > _HEADLINE_LIMIT or len(data) < _HEAD.size + size:
        return "a failure that cannot be read"
    # A forged one may hold any text, but no more than a line.
    return data[_HEAD.size : _HEAD.size + size].decode("utf-8", "backslashreplace").partition("\n")[0]


def _headline(record: Record) -> bytes:
    said = f"{record.type_name}: {record.message}" if record.message else record.type_name
    # Cut at its end, where it says least.
    return said.partition("\n")[0].encode("utf-8", "backslashreplace")[:_HEADLINE_LIMIT]


def _facts(envelope: Envelope) -> bytes:
    rows = [(*record[:7], None if record.pickled is None else len(record.pickled), record.reason) for record in
            envelope.records]  # fmt: skip
    return json.dumps([envelope.text, rows], ensure_ascii=False).encode("utf-8", "backslashreplace")


def _checked(row: Any, count: int) -> int | None:
    """Return the size of the pickle of a row, whose columns are what they have to be."""
    kinds: tuple[Any, ...] = (str, str, str, list, int | None, int | None, bool, int | None, str)
    if not isinstance(row, list) or len(row) != len(kinds):
        raise ValueError("a row of it has other columns")
    for value, kind in zip(row, kinds, strict=True):
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise ValueError(f"a row of it holds a {type(value).__name__} where none may be")
    notes, cause, context, size = row[3], row[4], row[5], row[7]
    if len(notes) > NOTE_LIMIT or not all(isinstance(note, str) for note in notes):
        raise ValueError("its notes are no notes")
    if any(place is not None and not 0 <= place < count for place in (cause, context)):
        raise ValueError("it names an exception that is not there")
    if size is not None and size < 0:
        raise ValueError("a pickle of it is shorter than nothing")
    return size if size is None else int(size)


def _whole(digits: str) -> int:
    if len(digits) > _DIGITS:
        raise ValueError("a number of it is too long")
    return int(digits)


def _none(text: str) -> NoReturn:
    raise ValueError("it holds a number that is not whole")
