"""Functions are pickled again only when what they capture changed."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import skyward as sky
from skyward.engine.calls import captured_functions
from skyward.engine.calls.buffers import Buffers
from skyward.engine.calls.captured_functions import Captures
from skyward.link.written import WORTH_IT


def test_function_is_pickled_again_only_when_what_it_captures_changed() -> None:
    """The same capture is the same object."""
    captures, offset = Captures(Buffers()), 1

    def shifted(x: int) -> int:
        return x + offset

    function = sky.function(shifted)
    first = captures.capture(function, "shifted")
    assert captures.capture(function, "shifted") is first
    offset = 2
    assert captures.capture(function, "shifted").digest != first.digest


def test_function_that_cannot_be_pickled_is_told_by_its_variable() -> None:
    """In the caller's line."""
    lock = threading.Lock()
    with pytest.raises(sky.SerializationError, match="`lock`"):
        Captures(Buffers()).capture(sky.function(lambda: lock), "locked")


@pytest.mark.parametrize("far", [False, True])
def test_large_capture_is_hashed_only_on_its_way_to_another_machine(far: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """There a function with the same content is known under the same digest; here it is sooner handed over again."""
    hashed: list[int] = []
    digest_of = captured_functions.digest_of
    monkeypatch.setattr(
        captured_functions, "digest_of", lambda *parts: hashed.append(sum(map(len, parts))) or digest_of(*parts)
    )
    # One buffer of what is kept at once would get a name, and not be in the function's own segment.
    monkeypatch.setattr("skyward.engine.calls.buffers._KEPT_AT_ONCE", 0)
    buffers, array = Buffers(), np.ones(WORTH_IT, np.uint8)
    if far:
        buffers.go_far()
    first = Captures(buffers).capture(lambda: array, "first")
    assert (hashed[0] > WORTH_IT) == far
    assert first.payload.segment is not None


def test_large_capture_of_another_function_is_found_where_it_was_copied_to() -> None:
    """As an argument is that comes again."""
    buffers, array = Buffers(), np.random.default_rng(0).integers(0, 255, 2 * WORTH_IT, dtype=np.uint8)
    captures = Captures(buffers)
    first = captures.capture(lambda: array, "first")
    second = captures.capture(lambda: len(array), "second")
    assert first.payload.segment is not None
    assert second.payload.segment is None
    (kept,) = second.payload.stored
    assert np.array_equal(np.frombuffer(kept.map(), np.uint8)[: len(array)], array)
