"""An agent passes on versions of the membership, and asks the client once for what its workers ask."""

from __future__ import annotations

import json
from typing import Any

import pytest

from skyward.errors import ProtocolError
from skyward.link.frames import Frame, Kind, Parser
from skyward.link.roster import (
    Change,
    Row,
    decode_peers,
    decode_question,
    difference,
    encode_change,
    encode_question,
)
from skyward.node.agent.members import MEMBERSHIPS, ROSTERS, Members

ONE, TWO, THREE = (Row(f"10.0.0.{number}", None) for number in (1, 2, 3))


class _Worker:
    """Keep what it is sent on its control socket."""

    def __init__(self) -> None:
        self.control = self
        self.frames: list[Frame] = []

    def send(self, frame: bytes) -> None:
        self.frames += Parser().feed(frame)

    @property
    def told(self) -> list[tuple[int, tuple[Row, ...]]]:
        return [decode_peers(frame.body) for frame in self.frames]


class _Bench:
    """Hold the members of an agent, and what it asked its client."""

    def __init__(self) -> None:
        self.asked: list[int] = []
        self.members = Members(lambda frame: self.asked.append(decode_question(_body(frame))))

    def ask(self, worker: Any, version: int) -> None:
        self.members.asked(worker, _body(encode_question(version)))

    def answer(self, version: int, base: int, change: Change) -> None:
        self.members.answered(_body(encode_change(version, base, change)))


def _body(frame: bytes) -> bytes:
    return Parser().feed(frame)[0].body


def _members(version: object) -> bytes:
    return json.dumps({"version": version}).encode()


def test_a_process_that_starts_hears_of_the_latest_versions() -> None:
    """In their order, and not of all that ever were."""
    members = _Bench().members
    for version in range(1, MEMBERSHIPS + 11):
        assert Kind.MEMBERS == Parser().feed(members.received(_members(version)))[0].kind
    known = [json.loads(_body(frame))["version"] for frame in members.versions()]
    assert list(range(11, MEMBERSHIPS + 11)) == known


@pytest.mark.parametrize("body", [b"{}", b"[]", b"x", _members("1"), _members([])])
def test_a_version_that_is_none_is_refused(body: bytes) -> None:
    """The client is believed no more than a node is."""
    with pytest.raises(ProtocolError, match=r"version|body"):
        _Bench().members.received(body)


def test_workers_that_ask_the_same_are_answered_by_one_question() -> None:
    """Those that ask later from what is known here: a worker that was replaced asks anew."""
    bench, first, second, later = _Bench(), _Worker(), _Worker(), _Worker()
    bench.ask(first, 7)
    bench.ask(second, 7)
    bench.answer(7, 0, Change((), ((4, TWO), (0, ONE))))
    bench.ask(later, 7)
    assert [7] == bench.asked
    assert [[(7, (ONE, TWO))]] * 3 == [first.told, second.told, later.told]


def test_a_later_version_is_told_as_a_difference() -> None:
    """From the last one that was asked for."""
    bench, worker = _Bench(), _Worker()
    bench.ask(worker, 7)
    bench.answer(7, 0, difference({}, {0: ONE, 1: TWO}))
    bench.ask(worker, 9)
    bench.answer(9, 7, difference({0: ONE, 1: TWO}, {1: TWO, 2: THREE}))
    assert [(7, (ONE, TWO)), (9, (TWO, THREE))] == worker.told


def test_a_difference_from_an_unknown_version_is_refused() -> None:
    """Rather than to tell of members that are none."""
    bench = _Bench()
    with pytest.raises(ProtocolError, match="based on version 3, which is not known here"):
        bench.answer(7, 3, Change((), ()))


def test_versions_share_the_rows_that_are_the_same() -> None:
    """A thousand peers in many versions are a thousand rows, and only so many versions are kept."""
    bench, worker, nodes = _Bench(), _Worker(), 1000
    rows = {place: Row(f"10.0.{place >> 8}.{place & 255}", None) for place in range(nodes)}
    bench.answer(1, 0, difference({}, rows))
    for version in range(2, 3 * ROSTERS):
        changed = {**rows, version: Row(f"10.9.0.{version}", None)}
        bench.answer(version, version - 1, difference(rows, changed))
        rows = changed
    kept = bench.members._rosters
    assert list(range(2 * ROSTERS, 3 * ROSTERS)) == list(kept)
    assert len({id(row) for roster in kept.values() for row in roster.values()}) == nodes + ROSTERS - 1
    bench.ask(worker, 3 * ROSTERS - 1)
    assert tuple(rows.values()) == worker.told[0][1]
