"""What a node is sent, and that nothing is sent to it twice."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial

import pytest
from hypothesis import given, strategies as st

from skyward.engine.calls.call import Call, CapturedFunction
from skyward.engine.nodes import node_link
from skyward.engine.nodes.node_link import ASKED_AGAIN, UNREAD, NodeLink
from skyward.errors import ProtocolError
from skyward.link.frames import Frame, Kind, Parser
from skyward.link.messages import BLOB, FUNCTION, FUNCTION_DIGEST, TASK, TaskFlag
from skyward.link.order import keys_of, sizes_of
from skyward.link.outbox import Outbox
from skyward.link.payload import Payload
from skyward.link.payload_making import Keep, dump
from skyward.link.roster import Change, encode_change
from skyward.link.segment import write_segment


class Recorder:
    """Be a link that keeps what it is given."""

    closed, on_drained, connected = False, None, True

    def __init__(self) -> None:
        self.queued = self.backlog = 0
        self.frames: list[Frame] = []
        self.held: list[object] = []

    def send(self, frame: bytes, fds: Sequence[int] = (), hold: object = None, receipt: object = None) -> None:
        """Take a frame; its descriptors are open as long as it is held."""
        [parsed] = Parser().feed(frame)
        self.queued += len(frame) + sum(sizes_of(parsed) if fds else ())
        assert parsed.fds == len(fds)
        assert all(os.fstat(fd) for fd in fds)
        self.frames.append(parsed)
        self.held.append(hold)

    def flush(self) -> None:
        """Do nothing."""

    def end(self) -> None:
        """Do nothing."""

    def close(self, error: Exception | None = None) -> None:
        """Be closed."""
        self.closed = True

    def kinds(self) -> list[str]:
        """Name what came since this was last asked."""
        names = [Kind(frame.kind).name for frame in self.frames]
        self.frames.clear()
        return names


@pytest.fixture
def recorder() -> Recorder:
    """A link that keeps what it is given."""
    return Recorder()


def function(name: str, payload: Payload | None = None) -> CapturedFunction:
    """Make a function whose digest is its name."""
    digest = name.encode().ljust(FUNCTION_DIGEST, b".")
    return CapturedFunction(name, digest, FUNCTION.pack(digest, 0), payload or Payload((), b""))


def call(name: str = "f", payload: Payload | None = None, **options: object) -> Call:
    """Make a call of a function."""
    return Call(function(name), payload or dump(((), {})), None, **options)  # type: ignore[arg-type]  # no caller waits


def kept(size: int, name: bytes) -> Payload:
    """Make a payload with one buffer that is kept at the node."""
    digest = name.ljust(32, b".")
    return dump(memoryview(bytearray(size)), lambda buffer: Keep(digest, write_segment([[buffer]])))


def test_a_function_is_sent_once(recorder: Recorder) -> None:
    """Before the first call of it."""
    link = NodeLink(recorder)
    for name in ("f", "g", "f", "g"):
        link.send_task(call(name))
    assert ["FUNCTION", "TASK", "FUNCTION", "TASK", "TASK", "TASK"] == recorder.kinds()


def test_functions_that_were_not_used_for_long_are_dropped(recorder: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    """The node hears of it; when they are called again they are sent again."""
    monkeypatch.setattr(node_link, "KEPT_FUNCTIONS", 2)
    link = NodeLink(recorder)
    for name in ("f", "g", "f"):
        link.send_task(call(name))
    recorder.kinds()
    link.send_task(call("h"))
    assert function("g").digest == recorder.frames[1].body
    assert ["FUNCTION", "DROP", "TASK"] == recorder.kinds()
    link.send_task(call("f"))
    assert ["TASK"] == recorder.kinds()
    link.send_task(call("g"))
    assert ["FUNCTION", "DROP", "TASK"] == recorder.kinds()


def test_a_task_says_all_that_its_node_needs(recorder: Recorder) -> None:
    """Its id, limit, members, broadcast, flags and function; the lane is in the frame."""
    one = call(timeout=2.5, streams=True, broadcast=7)
    one.members, one.lane = 3, 2
    NodeLink(recorder).send_task(one)
    frame = recorder.frames[-1]
    assert (one.id, 2.5, 3, 7, TaskFlag.STREAM, function("f").digest) == TASK.unpack_from(frame.body)
    assert 2 == frame.lane


def test_large_arguments_travel_beside_the_frame(recorder: Recorder) -> None:
    """Their memory is held until the frame is written."""
    NodeLink(recorder).send_task(call(payload=dump(bytes(1 << 20))))
    assert (1, True) == (recorder.frames[-1].fds, recorder.held[-1] is not None)


def test_a_kept_buffer_is_sent_once(recorder: Recorder) -> None:
    """From then on its digest is enough; the task says that it names some."""
    link = NodeLink(recorder)
    for name in (b"a", b"b", b"a"):
        link.send_task(call(payload=kept(1 << 20, name)))
    blobs = [BLOB.unpack(frame.body) for frame in recorder.frames if frame.kind == Kind.BLOB]
    assert [(b"a".ljust(32, b"."), 1 << 20), (b"b".ljust(32, b"."), 1 << 20)] == blobs
    assert TaskFlag.STORED == TASK.unpack_from(recorder.frames[-1].body)[4]
    assert ["FUNCTION", "BLOB", "TASK", "BLOB", "TASK", "TASK"] == recorder.kinds()


def test_what_the_node_forgot_is_sent_again(recorder: Recorder) -> None:
    """A buffer or a function; what it never had is passed over."""
    link, payload = NodeLink(recorder), kept(1 << 20, b"a")
    link.send_task(call(payload=payload))
    link.forgot(b"a".ljust(32, b"."))
    link.forgot(function("f").digest)
    link.forgot(b"x" * 32)
    recorder.kinds()
    link.send_task(call(payload=payload))
    assert ["FUNCTION", "BLOB", "TASK"] == recorder.kinds()


def test_buffers_that_a_function_holds_are_kept_too(recorder: Recorder) -> None:
    """They go before it."""
    one = call()
    one.function = function("f", kept(1 << 20, b"a"))
    NodeLink(recorder).send_task(one)
    assert ["BLOB", "FUNCTION", "TASK"] == recorder.kinds()


def test_members_are_sent_once_a_version(recorder: Recorder) -> None:
    """Also an older one, which a broadcast still has."""
    link = NodeLink(recorder)
    for version in (1, 1, 2, 2):
        link.send_members(version, {"version": version})
    assert ["MEMBERS", "MEMBERS"] == recorder.kinds()


def test_a_task_that_is_too_large_is_refused(recorder: Recorder) -> None:
    """Nothing of it is sent but its function."""
    with pytest.raises(ProtocolError, match="over the limit"):
        NodeLink(recorder).send_task(call(payload=Payload((), bytes(3 << 20))))
    assert ["FUNCTION"] == recorder.kinds()


def test_a_node_that_answers_what_it_never_took_is_refused(recorder: Recorder) -> None:
    """Each answer lets another call be sent, whose arguments would wait for it here."""
    link = NodeLink(recorder)
    calls = [call(payload=dump(((bytes(1000),), {}))) for _ in range(2)]
    for one in calls:
        link.send_task(one)
    recorder.backlog = recorder.queued
    for _ in range(UNREAD // calls[0].sent):
        link.answered(calls[0])
    with pytest.raises(ProtocolError, match=r"answered f\(\) with \d+ bytes of its calls yet to take"):
        link.answered(calls[1])


class Line(Recorder):
    """A link whose other end takes what it is sent piece by piece, small frames before large ones."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[Call] = []
        """Those that were sent, and"""
        self.taken: list[Call] = []
        """those that the other end has."""
        self._outbox = Outbox()
        self._cells = 0

    def send(self, frame: bytes, fds: Sequence[int] = (), hold: object = None, receipt: object = None) -> None:
        """Queue a frame as a link does."""
        [parsed] = Parser().feed(frame)
        buffers = [memoryview(bytes(size)) for size in (sizes_of(parsed) if fds else ())]
        whole = partial(self.taken.append, self.calls[-1]) if parsed.kind == Kind.TASK else None
        self._outbox.add(frame, buffers, keys_of(parsed), None, whole)
        self.queued, self.backlog = self._outbox.queued, self._outbox.backlog

    def take(self, room: int) -> None:
        """Have the other end take so many bytes."""
        self._outbox.next(room, 0.0)
        self._cells += len(self._outbox._sent)
        self._outbox.acknowledged(self._cells, 0.0)
        self.backlog = self._outbox.backlog


@pytest.mark.parametrize("of", ["argument", "function"])
def test_a_node_that_answers_before_it_took_what_a_call_needs_is_refused(recorder: Recorder, of: str) -> None:
    """What is kept under a name goes before the call, which says little more than that name."""
    link = NodeLink(recorder)
    one = call(payload=kept(UNREAD + 1, b"a") if of == "argument" else None)
    if of == "function":
        one.function = function("f", kept(UNREAD + 1, b"a"))
    link.send_task(one)
    recorder.backlog = recorder.queued
    with pytest.raises(ProtocolError, match=r"answered f\(\) with \d+ bytes of its calls yet to take"):
        link.answered(one)


SIZES = st.sampled_from([0, 100, 70_000, 3 << 20])


@given(st.lists(st.tuples(SIZES, st.sampled_from([b"", b"a", b"b"]), st.integers(0, 4 << 20), st.booleans())))
def test_a_node_that_answers_what_it_has_is_never_refused(steps: list[tuple[int, bytes, int, bool]]) -> None:
    """However large calls and what they need are overtaken by small ones, and whichever it answers first."""
    line = Line()
    link = NodeLink(line)
    for size, name, room, last in steps:
        # The same name stands for the same bytes.
        payload = kept(size, b"%s%d" % (name, size)) if name and size else dump(((bytes(size),), {}))
        line.calls.append(call(payload=payload))
        link.send_task(line.calls[-1])
        line.take(room)
        while line.taken:
            link.answered(line.taken.pop(-1 if last else 0))


def test_a_node_that_asks_who_the_members_are_is_told_what_changed_since(recorder: Recorder) -> None:
    """From the version that it asked for last; from none at first."""
    link = NodeLink(recorder)
    asked: list[tuple[int, int]] = []

    def since(base: int, version: int) -> bytes:
        asked.append((base, version))
        return encode_change(version, base, Change((), ()))

    for version in (3, 7, 5):
        link.send_peers(version, since)
    assert [(0, 3), (3, 7), (7, 5)] == asked
    assert ["PEERS"] * 3 == recorder.kinds()


def test_a_node_that_asks_on_and_on_who_the_members_are_is_refused(recorder: Recorder) -> None:
    """It may ask once for each version that it was told, and some times more."""
    link = NodeLink(recorder)
    link.send_members(1, {"version": 1})
    for _ in range(ASKED_AGAIN + 1):
        link.send_peers(1, lambda base, version: encode_change(version, base, Change((), ())))
    with pytest.raises(ProtocolError, match="asked 66 times for the members, and was sent 1 versions"):
        link.send_peers(1, lambda base, version: encode_change(version, base, Change((), ())))
