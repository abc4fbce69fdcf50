"""A node's report of a failure is plain data: read whole or refused, and a headline that costs nothing."""

from __future__ import annotations

import contextlib
import json
import pickle
import struct
import time
from typing import Any

import pytest
from hypothesis import example, given, strategies as st

from skyward.link.described import shortened
from skyward.link.envelope import CHAIN_LIMIT, LIMIT, Envelope, Record, headline_of
from skyward.link.failure import dump_failure, load_failure

HEAD = struct.Struct("<BHI")

ROW = Record("KeyError", "'gone'", "", ("a note",), None, 0, True, b"pickled", "")

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
records = st.builds(
    Record,
    texts, texts, texts, st.lists(texts, max_size=3).map(tuple), st.none() | st.just(0), st.none() | st.just(0),
    st.booleans(), st.none() | st.binary(max_size=50), texts,
)  # fmt: skip


def bombs() -> list[bytes]:
    """Return pickles that would take for ever to open: nested pairs of one tuple, as the key of a dict."""
    nested = b"".join(b"0h" + bytes([at]) + b"h" + bytes([at]) + b"\x86q" + bytes([at + 1]) for at in range(40))
    return [b"\x80\x04)q\x00" + nested + b"}" + b"h\x28" + b"N" + b"s."]


def forged(facts: Any, *, headline: bytes = b"", rest: bytes = b"") -> bytes:
    text = facts if isinstance(facts, bytes) else json.dumps(facts).encode()
    return HEAD.pack(2, len(headline), len(text)) + headline + text + rest


@given(texts, st.lists(records, min_size=1, max_size=4))
def test_an_envelope_comes_out_as_it_went_in(text: str, rows: list[Record]) -> None:
    """Texts, places and pickles, in their order."""
    envelope = Envelope(text, tuple(rows))
    assert envelope == Envelope.decode(envelope.encode())


@given(st.binary(max_size=200))
@example(dump_failure(KeyError(1))[:-5])
@example(pickle.dumps((1, "text", ())))
def test_any_bytes_are_an_envelope_or_a_value_error(data: bytes) -> None:
    """Never another exception, and the headline is a line of text whatever they are."""
    with contextlib.suppress(ValueError):
        Envelope.decode(data)
    assert "\n" not in headline_of(data)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"\x02", "cut off"),
        (b"\x01" + bytes(20), "version 2 of a failure was expected, not 1"),
        (HEAD.pack(2, 0, 500) + b"[]", "cut off"),
        (forged(b"[" * 100_000), "nested too deep|no pair"),
        (forged({"text": []}), "no pair"),
        (forged(["t", []]), "has 0 exceptions"),
        (forged(["t", [[]] * (CHAIN_LIMIT + 1)]), "has 101 exceptions"),
        (forged(["t", [["A", "m"]]]), "other columns"),
        (forged(["t", [["A", "m", "", [], 7, None, False, None, ""]]]), "an exception that is not there"),
        (forged(["t", [["A", "m", "", [], -1, None, False, None, ""]]]), "an exception that is not there"),
        (forged(["t", [["A", "m", "", [], True, None, False, None, ""]]]), "holds a bool"),
        (forged(["t", [["A", "m", "", [1], None, None, False, None, ""]]]), "notes"),
        (forged(["t", [["A", "m", "", ["n"] * 101, None, None, False, None, ""]]]), "notes"),
        (forged(["t", [["A", "m", "", [], None, None, False, 5, ""]]]), "a pickle is cut off"),
        (forged(["t", [["A", "m", "", [], None, None, False, -5, ""]]]), "shorter than nothing"),
        (forged(["t", [["A", "m", "", [], None, None, False, None, ""]]], rest=b"more"), "4 bytes are left over"),
        (forged(b'["t", [["A", "m", "", [], 1e5, null, false, null, ""]]]'), "not whole"),
        (forged(b'["t", [["A", "m", "", [], NaN, null, false, null, ""]]]'), "not whole"),
        (forged(b'["t", [["A", "m", "", [], ' + b"1" * 5000 + b', null, false, null, ""]]]'), "too long"),
    ],
)
def test_what_is_no_envelope_is_refused(data: bytes, why: str) -> None:
    """With what is wrong with it; the client's error is still an error about the function."""
    with pytest.raises(ValueError, match=why):
        Envelope.decode(data)
    assert "cannot be read" in str(load_failure(data, note="n"))


@pytest.mark.parametrize("bomb", bombs())
def test_a_headline_opens_no_pickle(bomb: bytes) -> None:
    """It is cut out of the bytes: what would keep a pickle busy for ever is not looked at."""
    began = time.thread_time()
    assert "a failure that cannot be read" == headline_of(bomb)
    envelope = Envelope("", (ROW._replace(pickled=bomb),)).encode()
    assert "KeyError: 'gone'" == headline_of(envelope)
    assert time.thread_time() - began < 1.0


def test_a_headline_is_one_short_line() -> None:
    """Whatever the message; one that is forged as well."""
    long = Envelope("", (ROW._replace(message="x" * 10_000 + "\nsecond line"),)).encode()
    assert 500 == len(headline_of(long))
    assert "one" == headline_of(forged([], headline=b"one\ntwo"))
    assert "a failure that cannot be read" == headline_of(forged([], headline=b"x" * 501))


def test_what_has_no_room_is_left_out() -> None:
    """Pickles first, those of inner exceptions before that of the raised one; then the ends of texts."""
    half = ROW._replace(pickled=bytes(LIMIT // 2))
    kept = Envelope.decode(Envelope("text", (half, half, ROW)).encode())
    assert [True, False, True] == [record.pickled is not None for record in kept.records]
    assert "too large to travel" in kept.records[1].reason
    huge = ROW._replace(message="\0" * LIMIT, notes=("\0" * LIMIT,) * 50, type_name="x" * 10_000)
    for text in ("\0" * LIMIT, "\0" * (LIMIT // 4)):
        data = Envelope(text, (huge,) * CHAIN_LIMIT).encode()
        assert len(data) <= LIMIT
        assert CHAIN_LIMIT == len(Envelope.decode(data).records)
    tight = ROW._replace(message="\0" * (LIMIT // 5))
    assert len(Envelope("", (tight,) * 4).encode()) <= LIMIT


def test_a_short_text_stays_whole() -> None:
    """Of a long one the middle is left out, and how much that is."""
    assert "short" == shortened("short", 100)
    assert "936 bytes left out" in shortened("x" * 1000, 128)
