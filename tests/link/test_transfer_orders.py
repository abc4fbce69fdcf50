"""What a client and an agent say about transfers between nodes is checked to the last byte."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given, strategies as st

from skyward.errors import ProtocolError
from skyward.link.frames import Kind, Parser
from skyward.link.messages import FETCHED
from skyward.link.order import keys_of
from skyward.link.transfer_orders import (
    Report,
    TransferOrder,
    decode_report,
    decode_transfer_order,
    encode_report,
    encode_transfer_order,
)
from skyward.model.instances.transfer import TransferOutcome

ORDER = TransferOrder(b"n" * 32, 7, 1 << 28, b"c" * 32, "10.0.0.7", 40_000, 10.0)


def body(frame: bytes) -> bytes:
    """Take a frame apart."""
    [parsed] = Parser().feed(frame)
    return parsed.body


def test_an_order_stays_in_order_with_what_else_is_said_of_its_buffer() -> None:
    """It overtakes neither the buffer nor its end."""
    [frame] = Parser().feed(encode_transfer_order(ORDER))
    assert ((b"n" * 32,), ()) == keys_of(frame)


@pytest.mark.parametrize(
    "changes",
    [{"size": 0}, {"size": 1 << 41}, {"port": 0}, {"port": 65536}, {"stall": 0.0}, {"host": 7}, {"port": "x"}],
)
def test_an_order_that_cannot_be_is_refused(changes: dict[str, object]) -> None:
    """Nothing is connected to for it."""
    with pytest.raises(ProtocolError):
        decode_transfer_order(body(encode_transfer_order(ORDER._replace(**changes))))  # type: ignore[arg-type]


@pytest.mark.parametrize("outcome", TransferOutcome)
def test_a_report_arrives_as_it_was_sent(outcome: TransferOutcome) -> None:
    """But for a reason that is too long."""
    report = Report(7, outcome, 2.5, "why")
    assert report == decode_report(body(encode_report(report)))
    assert 500 == len(decode_report(body(encode_report(report._replace(why="x" * 10_000)))).why)


@pytest.mark.parametrize(
    "wrong", [b"", FETCHED.pack(7, 200, 1.0), FETCHED.pack(7, 0, -1.0), FETCHED.pack(7, 0, float("nan"))]
)
def test_a_report_that_cannot_be_is_refused(wrong: bytes) -> None:
    """The node's link ends then."""
    with pytest.raises(ProtocolError):
        decode_report(wrong)


@given(st.binary(max_size=300), st.sampled_from([Kind.FETCH, Kind.FETCHED]))
def test_any_bytes_are_read_or_refused(data: bytes, kind: Kind) -> None:
    """With the one error that ends a link."""
    with contextlib.suppress(ProtocolError):
        decode_transfer_order(data) if kind == Kind.FETCH else decode_report(data)
