"""Large arguments are pieces of the pickle by themselves, and are sent once, whatever stands beside them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from skyward.engine.calls.arguments import Arguments
from skyward.engine.calls.buffers import Buffers
from skyward.errors import SerializationError
from skyward.link.payload import Payload, load
from skyward.link.payload_making import PIECE
from skyward.link.payload_parts import Place


def function(*args: Any, **kwargs: Any) -> None:
    """Take anything."""


def iter_of(count: int) -> Any:
    """Make what does not travel."""
    return (number for number in range(count))


def far() -> Arguments:
    """Make what pickles for another machine."""
    buffers = Buffers()
    buffers.go_far()
    return Arguments(buffers)


def records(count: int = 40_000) -> list[dict[str, Any]]:
    """Make what JSON is read into."""
    return [{"id": number, "name": f"name {number}", "tags": ["a", "b"]} for number in range(count)]


class Line:
    """Count what would cross the line to one node."""

    def __init__(self) -> None:
        self.known: set[bytes] = set()
        self.sent = 0

    def send(self, payload: Payload) -> int:
        """Send a payload, and count its bytes that the node does not have."""
        crossed = 0 if payload.parts else len(payload.inline)
        for part in payload.parts:
            if part.place != Place.STORED or part.digest not in self.known:
                crossed += part.size
            self.known.add(part.digest)
        self.sent += crossed
        return crossed


VALUES: dict[str, Any] = {
    "records": records(),
    "text": "x" * (2 << 20),
    "text of the world": "äöü\ud800€" * (1 << 18),
    "bytes": bytes(range(256)) * (8 << 10),
    "bytearray": bytearray(range(256)) * (8 << 10),
    "array": np.arange(1 << 18),
    "bytes in a dict": {"data": b"y" * (2 << 20), "rest": list(range(100))},
    "objects": np.array([f"text {number % 7}" for number in range(400_000)], object),
}


@pytest.mark.parametrize("name", VALUES)
def test_a_large_argument_crosses_once(name: str) -> None:
    """Whatever it is, wherever it stands, and whatever else there is."""
    value, arguments, line = VALUES[name], far(), Line()
    for number in range(3):
        calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
            ((number, value), {}),
            ((value, number), {}),
            (({"rate": f"{number}", "names": ["a"] * number}, value), {}),
            ((), {"data": value, "number": number}),
        ]
        for args, kwargs in calls:
            payload = arguments.dump(function, "f", args, kwargs)
            line.send(payload)
            if not number:
                found, named = load(payload)
                assert repr(found) == repr(args)
                assert repr(named) == repr(kwargs)
    size = arguments.dump(function, "f", (value,), {}).size
    assert size >= PIECE
    assert line.sent < 1.1 * size
    before = line.sent
    for number in range(10):
        line.send(arguments.dump(function, "f", (number, value), {}))
    assert line.sent - before < 0.01 * size


def test_the_second_call_sends_nothing_large() -> None:
    """Also where what stood before it differs."""
    arguments, value = far(), records()
    line = Line()
    first = line.send(arguments.dump(function, "f", ({"a": 1}, value), {}))
    second = line.send(arguments.dump(function, "f", ({"b": 2, "c": ["x", "y"]}, value), {}))
    assert first > PIECE
    assert second < 1000


def test_what_arguments_share_is_shared_by_what_is_read() -> None:
    """Large or not."""
    shared, big = [1], records()
    big[0]["shared"] = shared
    arguments = far()
    for _ in range(2):
        (one, other, rest), kwargs = load(arguments.dump(function, "f", (big, shared, big[5]), {"again": big}))
        assert one[0]["shared"] is other
        assert one[5] is rest
        assert kwargs["again"] is one


@given(
    st.lists(
        st.recursive(
            st.none() | st.integers() | st.text(max_size=5) | st.binary(max_size=5) | st.just("z" * 2000),
            lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
            max_leaves=10,
        ),
        max_size=4,
    ),
    st.integers(200, 3000),
)
@settings(deadline=None)
def test_any_arguments_survive(args: list[Any], piece: int) -> None:
    """Whatever counts as large."""
    with pytest.MonkeyPatch.context() as patch:
        for room in ("skyward.link.payload_making", "skyward.engine.calls.arguments"):
            patch.setattr(f"{room}.PIECE", piece)
        patch.setattr("skyward.engine.calls.buffers._WORTH_KEEPING", piece)
        arguments = far()
        for _ in range(3):
            found, kwargs = load(arguments.dump(function, "f", tuple(args), {"args": args}))
            assert found == tuple(args)
            assert kwargs == {"args": args}


def test_small_arguments_stay_one_pickle() -> None:
    """Within their frame, without a table."""
    payload = far().dump(function, "f", (1, {"a": 2}), {"b": [3]})
    assert payload.parts == ()


def test_many_arguments_that_are_large_together_are_tried_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pickling them a second time each time would be for nothing."""
    arguments, calls = Arguments(Buffers()), []
    apart = Arguments._apart
    monkeypatch.setattr(Arguments, "_apart", lambda *args, **kwargs: calls.append(1) or apart(*args, **kwargs))
    args = tuple({"numbers": list(range(30_000))} for _ in range(20))
    for _ in range(5):
        assert load(arguments.dump(function, "f", args, {})) == (args, {})
    assert len(calls) == 1


def test_an_argument_that_cannot_be_pickled_is_named() -> None:
    """Beside a large one too."""
    arguments = far()
    for _ in range(2):
        with pytest.raises(SerializationError, match=r"args\[1\]. is a generator"):
            arguments.dump(function, "f", (records(), iter_of(3)), {})


class Pickled:
    """A kilobyte of text that counts how often it is pickled."""

    def __init__(self, count: list[int]) -> None:
        self._count = count

    def __reduce__(self) -> tuple[Any, ...]:
        self._count.append(1)
        return str, (f"{len(self._count):01024}",)


def test_a_large_argument_is_pickled_once_and_a_mebibyte_of_it_twice() -> None:
    """The first call of a function gives up when its arguments are large, and sends the large one on its own."""
    counted: list[int] = []
    argument = [Pickled(counted) for _ in range(8 << 10)]
    arguments = far()
    payload = arguments.dump(function, "f", (1, argument), {})
    assert len(counted) <= len(argument) + PIECE // 1024 + 64
    assert payload.parts[0].place == Place.STORED
    counted.clear()
    arguments.dump(function, "f", (1, argument), {})
    assert len(counted) == len(argument)
