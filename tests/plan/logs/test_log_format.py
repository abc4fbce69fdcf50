"""Lines of a stored log are read as they were written, and what is damaged is no line."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, strategies as st

from skyward.plan.logs.log_format import (
    STREAMS,
    VERSION,
    LogSegment,
    calls_of,
    head,
    line_record,
    parse,
    record,
    segment_of,
    segment_version,
)


@given(st.text(), st.booleans(), st.integers(0, 10**6))
def test_a_line_of_output_is_read_as_it_was_printed(text: str, err: bool, node: int) -> None:
    """Whatever is in it, on one line of ASCII."""
    written = line_record(3, 1.5, node, "12", text, err=err)
    assert written.isascii()
    assert 1 == written.count("\n")
    found = parse(written.encode())
    assert found is not None
    assert (3, 1.5, "line", node, "12", text) == tuple(found[name] for name in ("n", "t", "k", "node", "task", "text"))
    assert err == bool(found.get("err"))


@given(st.text(), st.integers(0, 200))
def test_a_torn_line_is_no_line(text: str, length: int) -> None:
    """It may be cut off anywhere."""
    written = record(7, 1.0, "lost", {"why": text}).encode()
    assert parse(written[: min(length, len(written) - 2)]) is None


@pytest.mark.parametrize(
    "line", [b"", b"[1]", b"7", b'{"n":1}', b'{"n":"1","t":0,"k":"x"}', b"\xff\xfe", b'{"n":1,"t":0,"k":4}']
)
def test_what_is_no_record_is_no_line(line: bytes) -> None:
    """JSON of another shape neither."""
    assert parse(line) is None


def test_kinds_and_keys_of_later_programs_are_passed_on() -> None:
    """A reader passes over what it does not know, as long as the version is the same."""
    found = parse(b'{"n":1,"t":2.0,"k":"later","more":[1]}')
    assert found is not None
    assert "later" == found["k"]
    assert [] == list(calls_of(found))


@pytest.mark.parametrize("stream", STREAMS)
def test_a_segment_is_named_and_found(stream: str) -> None:
    """By stream, run and number; its head says the same."""
    segment = LogSegment(stream, 2, 31)  # type: ignore[arg-type]
    assert segment == segment_of(segment.file)
    facts = json.loads(head("3fa9c1d2", segment))
    assert {"skyward_log": VERSION, "pool": "3fa9c1d2", "stream": stream, "run": 2, "segment": 31} == facts
    assert VERSION == segment_version(head("3fa9c1d2", segment).encode())


@pytest.mark.parametrize("name", ["pool.json", "end.001.json", "lock", "calls.1.2.jsonl", "other.001.000001.jsonl"])
def test_other_files_are_no_segments(name: str) -> None:
    """They are left out of what is read."""
    assert segment_of(name) is None


def test_a_failed_call_has_its_times_and_its_error() -> None:
    """It is a line of its own."""
    facts = {"task": 5, "attempt": 2, "fn": "f", "node": -1, "sent": 3_000_000, "waited": 0, "ran": 0, "error": "no"}
    found = parse(record(1, 10.0, "failed", facts | {"again": True}).encode())
    assert found is not None
    [call] = calls_of(found)
    assert ("5", 2, "f", None, 7.0, "again", "no") == (
        call.task, call.attempt, call.function, call.node, call.sent, call.outcome, call.error,
    )  # fmt: skip
