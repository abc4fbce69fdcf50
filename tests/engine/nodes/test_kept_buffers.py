"""What a node keeps of this client's buffers, and what it is ordered to drop."""

from __future__ import annotations

import gc
from collections.abc import Callable

import pytest

from skyward.engine.nodes import kept_buffers
from skyward.engine.nodes.node_link import NodeLink
from skyward.link.frames import Kind
from tests.engine.nodes.test_node_link import Recorder, call, kept


@pytest.fixture
def recorder() -> Recorder:
    """A link that keeps what it is given."""
    return Recorder()


def test_what_the_client_lets_go_of_is_dropped(recorder: Recorder) -> None:
    """Once no call needs it; the node is told with what comes next, or at once where there is a loop."""
    posted: list[Callable[[], None]] = []
    link = NodeLink(recorder, post=posted.append)
    first, second = kept(1 << 20, b"a"), kept(1 << 20, b"b")
    for payload in (first, second):
        link.send_task(call(payload=payload))
    recorder.kinds()
    recorder.held.clear()
    del first, second, payload
    gc.collect()
    assert len(posted) == 1
    posted[0]()
    dropped = {frame.body[:1] for frame in recorder.frames if frame.kind == Kind.DROP}
    assert {b"a", b"b"} == dropped
    link.send_task(call(payload=kept(1 << 20, b"a")))
    assert ["DROP", "DROP", "BLOB", "TASK"] == recorder.kinds()


def test_a_client_without_a_loop_drops_with_the_next_call(recorder: Recorder) -> None:
    """So what it keeps is what nodes keep."""
    link = NodeLink(recorder)
    link.send_task(call(payload=kept(1 << 20, b"a")))
    recorder.kinds()
    recorder.held.clear()
    gc.collect()
    link.send_task(call(payload=kept(1 << 20, b"b")))
    assert ["DROP", "BLOB", "TASK"] == recorder.kinds()


@pytest.mark.parametrize(
    ("told", "expected"),
    [(5 << 19, 5 << 19), (0, 0), (1 << 60, kept_buffers.MOST_KEPT_BYTES)]
    + [(told, kept_buffers.KEPT_BYTES) for told in (None, -1, True, 1.5, "9", [1], float("nan"))],
)
def test_a_node_tells_how_much_it_keeps(recorder: Recorder, told: object, expected: int) -> None:
    """What is no number of bytes is passed over, and no number is believed beyond reason."""
    link = NodeLink(recorder)
    link.buffers.keeps(told)
    assert expected == link.buffers.limit


def test_kept_buffers_are_bounded_by_their_bytes(recorder: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    """The one that was not used for longest goes, and never one that the call needs."""
    monkeypatch.setattr(kept_buffers, "KEPT_BYTES", 5 << 19)
    link = NodeLink(recorder)
    for name in (b"a", b"b", b"a", b"c"):
        link.send_task(call(payload=kept(1 << 20, name)))
    dropped = [frame.body[:1] for frame in recorder.frames if frame.kind == Kind.DROP]
    assert [b"b"] == dropped
    recorder.kinds()
    link.send_task(call(payload=kept(4 << 20, b"d")))
    assert [b"a", b"c"] == [frame.body[:1] for frame in recorder.frames if frame.kind == Kind.DROP]
    recorder.kinds()
    link.send_task(call(payload=kept(4 << 20, b"d")))
    assert ["TASK"] == recorder.kinds()
