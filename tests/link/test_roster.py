"""The difference between two versions of the members leads from one to the other; what is malformed is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from skyward.errors import ProtocolError
from skyward.link.frames import MAX_BODY, Kind, Parser
from skyward.link.roster import (
    Change,
    Row,
    applied,
    decode_change,
    decode_peers,
    decode_question,
    difference,
    encode_change,
    encode_peers,
    encode_question,
)

_rows = st.dictionaries(
    st.integers(0, 50),
    st.builds(Row, st.sampled_from(["10.0.0.1", "10.0.0.2", "127.0.0.1"]), st.sampled_from([None, "1.2.3.4"])),
)


def _body(frame: bytes) -> bytes:
    [parsed] = Parser().feed(frame)
    assert Kind.PEERS == parsed.kind
    return parsed.body


@given(_rows, _rows)
def test_a_difference_leads_from_one_version_to_the_other(before: dict[int, Row], after: dict[int, Row]) -> None:
    """Also once it was sent; and the order is that of the places."""
    change = difference(before, after)
    version, base, told = decode_change(_body(encode_change(8, 7, change)))
    assert (8, 7, after) == (version, base, applied(before, told))
    assert sorted(after) == list(applied(before, told))


@given(_rows, _rows)
def test_a_difference_tells_nothing_that_is_the_same(before: dict[int, Row], after: dict[int, Row]) -> None:
    """So that rows which two versions have are one object in both."""
    change = difference(before, after)
    assert {place for place in after if before.get(place) != after[place]} == {place for place, _ in change.here}
    both = applied(before, change)
    assert all(both[place] is before[place] for place in before if before[place] == after.get(place))


def test_nothing_can_go_that_is_not_there() -> None:
    """A difference from another version than the one that is known."""
    with pytest.raises(ProtocolError, match="takes place 3 away"):
        applied({0: Row("10.0.0.1", None)}, Change((3,), ()))


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"version": 0},
        {"version": True},
        {"version": "1"},
        {"base": -1},
        {"base": None},
        {"gone": 1},
        {"gone": [-1]},
        {"gone": [1 << 31]},
        {"gone": [1.5]},
        {"here": {}},
        {"here": [[]]},
        {"here": [1]},
        {"here": [[0, "10.0.0.1"]]},
        {"here": [[0, None, None]]},
        {"here": [["0", "10.0.0.1", None]]},
        {"here": [[0, "x" * 256, None]]},
        {"here": [[0, "10.0.0.1", "x" * 256]]},
        {"here": [[0, "10.0.0.1", None, None]]},
    ],
    ids=str,
)
def test_a_malformed_change_is_refused(wrong: dict[str, Any]) -> None:
    """Whatever is wrong with it."""
    right = {"version": 2, "base": 1, "gone": [], "here": []}
    body = json.dumps({**right, **wrong} if wrong else {}).encode()
    with pytest.raises(ProtocolError, match="PEERS"):
        decode_change(body)


@pytest.mark.parametrize("body", [b'{"version": 0}', b'{"version": []}', b"{}", b"[]", b"x"])
def test_a_malformed_question_or_answer_is_refused(body: bytes) -> None:
    """At the client, and in a worker."""
    with pytest.raises(ProtocolError, match=r"PEERS|body"):
        decode_question(body)
    with pytest.raises(ProtocolError, match=r"PEERS|body"):
        decode_peers(body)


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(body: bytes) -> None:
    """With no other error than the one of the protocol."""
    for read in (decode_change, decode_peers, decode_question):
        try:
            read(body)
        except ProtocolError:
            continue


def test_ten_thousand_members_fit_into_a_frame() -> None:
    """With two addresses each; more than any frame holds are refused where they would be sent."""
    rows = [(place, Row("255.255.255.255", "255.255.255.255")) for place in range(50_000)]
    assert len(encode_change(1, 0, Change((), tuple(rows[:10_000])))) < MAX_BODY / 3
    with pytest.raises(ProtocolError, match="over the limit"):
        encode_change(1, 0, Change((), tuple(rows)))


def test_questions_and_answers_come_through() -> None:
    """As they were asked and given."""
    rows = (Row("10.0.0.1", None), Row("10.0.0.2", "1.2.3.4"))
    assert 7 == decode_question(_body(encode_question(7)))
    assert (7, rows) == decode_peers(_body(encode_peers(7, rows)))
