"""Each kind of frame has its window, and what an honest node sends fits into it."""

from __future__ import annotations

import pytest

from skyward.errors import ProtocolError
from skyward.link.frames import Frame, Kind
from skyward.link.messages import LogLine, encode_lines
from skyward.link.windows import LARGEST_EVENT, LINE_OVERHEAD, OUTPUT_WINDOW, OVERHEAD, Life, OutputWindow, cost


def frame(kind: Kind, size: int = 2) -> Frame:
    """Make a frame of such a size."""
    return Frame(kind, 0, 0, bytes(size))


@pytest.mark.parametrize(
    ("kind", "most"),
    [
        (Kind.NOTICE, 4096),
        (Kind.READY, 16),
        (Kind.WELCOME, 16),
        (Kind.SERVING, 16),
        (Kind.WORKER, 4096),
        (Kind.FAILED, 4096),
    ],
)
def test_some_frames_come_a_few_times_in_a_life(kind: Kind, most: int) -> None:
    """One more is refused by its name; those of other kinds are counted apart."""
    life = Life()
    for _ in range(most):
        life.arrived(frame(kind))
    life.arrived(frame(Kind.METRIC))
    with pytest.raises(ProtocolError, match=rf"more than {most} {kind.name} frames"):
        life.arrived(frame(kind))


@pytest.mark.parametrize(
    ("kind", "largest"),
    [(Kind.NOTICE, 8 << 10), (Kind.METRIC, 256 << 10), (Kind.WELCOME, 64 << 10), (Kind.FETCHED, 4 << 10)],
)
def test_some_frames_are_never_large(kind: Kind, largest: int) -> None:
    """What they tell is short."""
    Life().arrived(frame(kind, largest))
    with pytest.raises(ProtocolError, match=rf"sent a {kind.name} frame of {largest + 1} bytes; {largest} are allowed"):
        Life().arrived(frame(kind, largest + 1))


def test_measurements_have_no_number() -> None:
    """A node that was away for hours sends all of them at once; handlers that are behind miss some."""
    life = Life()
    for _ in range(100_000):
        life.arrived(frame(Kind.METRIC))


def test_an_honest_end_never_meets_the_window() -> None:
    """It sends while no more than the window waits, so one frame of any size may go beyond."""
    window = OutputWindow()
    waiting = 0
    for size in (1, OUTPUT_WINDOW // 2, OUTPUT_WINDOW // 2 - 1000, 1 << 20):
        assert waiting <= OUTPUT_WINDOW
        waiting += window.arrived(frame(Kind.LOG, size))
    assert waiting > OUTPUT_WINDOW
    with pytest.raises(ProtocolError, match="sent a EMIT frame beyond its window"):
        window.arrived(frame(Kind.EMIT))
    window.waiting -= waiting - OUTPUT_WINDOW
    window.arrived(frame(Kind.EMIT))


def test_short_frames_count_for_what_it_takes_to_hold_them() -> None:
    """Or a window of bytes would hold a million of them."""
    assert OVERHEAD + 2 == cost(frame(Kind.LOG))
    empty = encode_lines(1, [LogLine(0, "")] * 1000)
    assert OVERHEAD + len(empty) + 1000 * LINE_OVERHEAD == cost(Frame(Kind.LOG, 0, 0, empty))
    assert OUTPUT_WINDOW // OVERHEAD < 20_000
    assert LARGEST_EVENT >= OUTPUT_WINDOW
