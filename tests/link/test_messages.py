"""Log lines come out as they went in, and anything else is refused."""

from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given, strategies as st

from skyward.errors import ProtocolError
from skyward.link.messages import CALL, LogLine, decode_calls, decode_facts, decode_lines, decode_start, encode_lines

_lines = st.builds(LogLine, st.integers(0, 2**64 - 1), st.text(max_size=50).filter(lambda text: text.isprintable()))


@given(st.sampled_from([1, 2]), st.lists(_lines, max_size=20))
def test_lines_come_out_as_they_went_in(stream: int, lines: list[LogLine]) -> None:
    """With their stream and calls."""
    assert decode_lines(encode_lines(stream, lines)) == (stream, lines)


@given(st.binary(max_size=200))
def test_hostile_bytes_are_a_protocol_error_or_lines(body: bytes) -> None:
    """Never anything else."""
    with contextlib.suppress(ProtocolError):
        decode_lines(body)


@pytest.mark.parametrize("body", [b"", b"\x00", b"\x03"])
def test_lines_of_no_stream_are_refused(body: bytes) -> None:
    """There are two."""
    with pytest.raises(ProtocolError, match="stream, 1 or 2"):
        decode_lines(body)


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        (b"\x01\x01", "is cut off"),
        (b"\x01\x02\0\0\0" + encode_lines(1, [LogLine(0, "x")])[5:], "is cut off"),
        (b"\x01\0\0\0\0" + encode_lines(1, [LogLine(0, "x")])[5:], "more lines than it says"),
    ],
)
def test_a_wrong_number_of_lines_is_refused(body: bytes, complaint: str) -> None:
    """The window counts them by that number."""
    with pytest.raises(ProtocolError, match=complaint):
        decode_lines(body)


@given(st.lists(st.integers(0, 2**64 - 1), max_size=20), st.binary(min_size=1, max_size=7))
def test_calls_come_out_as_they_went_in_or_are_refused(calls: list[int], rest: bytes) -> None:
    """A torn list is none."""
    body = b"".join(CALL.pack(call) for call in calls)
    assert decode_calls(body) == calls
    with pytest.raises(ProtocolError, match="cut off"):
        decode_calls(body + rest)


def test_facts_are_complete() -> None:
    """Whatever the node left out has a value that says nothing."""
    facts = decode_facts(b'{"error": "WorkerDiedError", "signal": "SIGSEGV", "output": ["last", 3]}')
    assert facts["signal"] == "SIGSEGV"
    assert facts["output"] == ["last", "3"]
    assert (facts["exit_code"], facts["out_of_memory"], facts["among"]) == (None, False, 1)


def test_unknown_facts_are_left_out() -> None:
    """What only the client knows is not the node's to say."""
    facts = decode_facts(b'{"error": "ResultError", "blame": "; you did it", "timeout": "x", "memory": {"more": 1}}')
    assert not {"blame", "timeout"} & facts.keys()
    assert {} == facts["memory"]


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({}, "does not name its error"),
        ({"error": 3}, "does not name its error"),
        ({"error": "X"}, "'X', which no node reports"),
        ({"error": "BudgetExceededError"}, "which no node reports"),
        ({"error": "ResultError", "output": "text"}, "reports output="),
        ({"error": "ResultError", "exit_code": "1"}, "reports exit_code="),
        ({"error": "ResultError", "message": None}, "reports message="),
        ({"error": "WorkerDiedError", "memory": 5}, "reports memory="),
        ({"error": "WorkerDiedError", "memory": {"peak": "much"}}, "of memory peak="),
        ({"error": "WorkerDiedError", "memory": {"peak": float("nan")}}, "of memory peak="),
        ({"error": "WorkerDiedError", "memory": {"ran_out": 1}}, "of memory ran_out="),
        ({"error": "ResultError", "message": "x" * 600_000}, "600039 bytes"),
    ],
)
def test_facts_that_are_none_are_refused(facts: dict[str, object], message: str) -> None:
    """Before anything is done with them."""
    with pytest.raises(ProtocolError, match=message):
        decode_facts(json.dumps(facts).encode())


LANE = {"argv": ["python"], "env": {"A": "b"}, "facts": {}}
START = {"mark": "node", "slots": 1, "reuse_processes": True, "lanes": [LANE], "app_host": None}


def start(**changes: object) -> bytes:
    text = json.dumps(START | changes).encode()
    return len(text).to_bytes(4, "little") + text + b"plugins"


def test_what_is_to_be_started_is_read() -> None:
    """With the plugins behind it."""
    assert (START, b"plugins") == decode_start(start())


@pytest.mark.parametrize(
    "changes",
    [
        {"slots": 0.5},
        {"slots": True},
        {"slots": 0},
        {"mark": None},
        {"reuse_processes": 1},
        {"lanes": []},
        {"lanes": [1]},
        {"lanes": [LANE | {"argv": "python"}]},
        {"app_host": []},
        {"app_host": {"argv": ["python"]}},
    ],
    ids=str,
)
def test_a_start_of_anything_else_is_refused(changes: dict[str, object]) -> None:
    """Before a process is started: one with half a slot raised only when its processes were counted."""
    with pytest.raises(ProtocolError, match=r"A START frame (says|asks for)"):
        decode_start(start(**changes))
