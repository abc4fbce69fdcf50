"""Functions are pickled again only when what they capture changed."""

from __future__ import annotations

import threading

import pytest

import skyward as sky
from skyward.engine.buffers import Buffers
from skyward.engine.outgoing import Captures


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
