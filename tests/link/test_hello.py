"""What both ends of a link say first is checked, and repeated in short."""

from __future__ import annotations

import json

import pytest

from skyward.errors import ProtocolError
from skyward.link.hello import read_hello, why_refused, write_hello


def test_what_one_end_writes_the_other_reads() -> None:
    """How much has arrived, and that compressed cells are unpacked."""
    assert (7, True) == read_hello(json.loads(write_hello("s", 7)), "s")
    assert ["before"] == json.loads(write_hello("s", 0, ["before"]))["succeeds"]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"session": "other"}, "this node belongs to another client"),
        ({"version": 1}, "the other end speaks protocol 1 and this one speaks"),
        ({"refused": "too late"}, "the other end refused us: too late"),
        ({"received": "7"}, "does not say how much has arrived"),
    ],
)
def test_another_is_refused(change: dict[str, object], why: str) -> None:
    """The error says why."""
    with pytest.raises(ProtocolError, match=why):
        read_hello({**json.loads(write_hello("s", 0)), **change}, "s")


def test_an_end_that_does_not_say_what_it_unpacks_gets_nothing_compressed() -> None:
    """Nor one that says nonsense."""
    hello = json.loads(write_hello("s", 0))
    assert [False, False] == [read_hello({**hello, "unpacks": each}, "s")[1] for each in (None, 5)]


def test_what_a_refusal_says_is_repeated_in_short() -> None:
    """However long and deep it is."""
    assert len(why_refused({"refused": "x" * 100_000}, "s")) < 400
    deep: object = []
    for _ in range(100_000):
        deep = [deep]
    assert "protocol list" in why_refused({"version": deep}, "s")
