"""Events of tasks: Skyward's own as plain data, the user's as a pickle under the names of its classes."""

from __future__ import annotations

import contextlib
import json
import struct
from dataclasses import dataclass

import pytest
from hypothesis import given, strategies as st

from skyward.engine.events.callbacks import emit
from skyward.errors import ProtocolError
from skyward.link.emitted import class_name, decode_event, encode_event
from skyward.link.payload import load
from skyward.model.events.event import CostFinal, Error, Log, Metric, Progress, SkywardEvent


@dataclass(frozen=True)
class Loss(SkywardEvent):
    """An event as a user would write it."""

    value: float = 0.0


class Steep(Loss):
    """One that extends it."""


def framed(head: object, payload: bytes = b"\0\0") -> bytes:
    text = head if isinstance(head, bytes) else json.dumps(head).encode()
    return struct.pack("<QH", 7, len(text)) + text + payload


@pytest.mark.parametrize(
    "event",
    [
        Progress(at=1.5, label="epochs", done=3, total=10),
        Progress(at=1.5, label="epochs", done=3),
        Metric(at=1.5, name="loss", value=0.5, node=1),
        Log(at=1.5, line="ü\n\x1b", stream="stderr", node=0, task_id="7"),
        Error(at=1.5, message="worse"),
    ],
)
def test_an_event_of_ours_is_plain_data(event: SkywardEvent) -> None:
    """It is made anew of its fields, and there is no pickle."""
    body, _ = encode_event(7, event)
    emitted = decode_event(body, ())
    assert (7, event, ()) == emitted[:3]
    assert b"" == emitted.payload.inline


def test_an_event_of_the_users_names_its_classes() -> None:
    """Its own first, its bases after it; its pickle is opened on demand only."""
    event = Steep(value=2.0)
    emit(event)
    body, _ = encode_event(7, event)
    emitted = decode_event(body, ())
    assert emitted.event is None
    assert tuple(map(class_name, (Steep, Loss, SkywardEvent))) == emitted.names
    assert event == load(emitted.payload)


@pytest.mark.parametrize(
    "event",
    [
        CostFinal(total_cost=1.0, total_seconds=1.0),
        Error(message="the pool is over", fatal=True),
        Progress(label="epochs", done=[1]),  # type: ignore[arg-type]
        Log(line="x" * 100_000, node=0),
        Log(line="x", node=0, stream="other"),  # type: ignore[arg-type]
        Metric(name="loss", value=10**400, unit="", node=0),
    ],
)
def test_what_is_not_plain_is_pickled(event: SkywardEvent) -> None:
    """Then only a handler of the user's hears it."""
    body, _ = encode_event(7, event)
    assert decode_event(body, ()).event is None


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"short", "cut off"),
        (framed(b"[]"), "not an object"),
        (framed(b"[" * 20_000), "no JSON"),
        (framed({"of": []}), "does not name"),
        (framed({"of": ["x"] * 33}), "does not name"),
        (framed({"of": "text"}), "does not name"),
        (framed({"event": "CostFinal", "fields": {}}), "no event that tasks emit"),
        (framed({"event": "Progress", "fields": {"label": "x"}}), "no event that tasks emit"),
        (framed({"event": "Progress", "fields": {"at": 1, "label": 3, "done": 1, "total": None}}), "other fields"),
        (framed({"event": "Progress", "fields": {"at": "x", "label": "", "done": 1, "total": None}}), "other fields"),
        (framed({"event": "Error", "fields": {"at": 1.0, "message": "", "fatal": True}}), "no event that tasks emit"),
        (framed(b"x" * 40_000), "a head of 40000 bytes"),
        (struct.pack("<QH", 7, 500) + b"{}", "cut off"),
    ],
)
def test_what_is_no_event_is_refused(body: bytes, why: str) -> None:
    """Before anything is done with it."""
    with pytest.raises(ProtocolError, match=why):
        decode_event(body, ())


@given(st.binary(max_size=100))
def test_any_bytes_are_an_event_or_a_protocol_error(body: bytes) -> None:
    """Never anything else."""
    with contextlib.suppress(ProtocolError):
        decode_event(body, ())
