"""A node keeps what it has memory for, and says what it has not."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest

from skyward.errors import ProtocolError
from skyward.link.frames import Frame, Kind, Parser, encode
from skyward.link.messages import BLOB, FUNCTION, RESULT, TASK, FunctionFlag, Status, TaskFlag
from skyward.link.payload import Payload
from skyward.link.payload_making import Keep, dump
from skyward.link.payload_parts import Part, Place
from skyward.link.segment import write_segment
from skyward.node.data.node_store import RESERVE, NodeStore

SIZE = 1 << 20


class Machine:
    """Count memory, and keep what the client hears."""

    def __init__(self, free: int | None) -> None:
        self.free = free
        self.heard: list[Frame] = []
        self.store = NodeStore(lambda frame: self.heard.extend(Parser().feed(frame)), lambda: self.free)

    def take(self, name: bytes, size: int = SIZE) -> bool:
        """Have a buffer arrive, if it is wanted."""
        [frame] = Parser().feed(encode(Kind.BLOB, BLOB.pack(name.ljust(32, b"."), size), fds=1))
        if not self.store.wanted(frame):
            return False
        segment = write_segment([[bytes(size)]])
        self.store.add_blob(frame.body, (os.dup(segment.fd),))
        if self.free is not None:
            self.free -= size
        return True

    def dropped(self) -> list[bytes]:
        """Name what the client heard is gone."""
        return [frame.body.rstrip(b".") for frame in self.heard if frame.kind == Kind.DROP]


def task(*names: bytes, digest: bytes = b"f" * 16) -> Frame:
    """Make a task that names buffers."""
    parts = tuple(Part(Place.STORED, SIZE, name.ljust(32, b".")) for name in names)
    payload = Payload((Part(Place.INLINE, 1), *parts), b".")
    return Frame(Kind.TASK, 3, 0, TASK.pack(7, 0.0, 1, 0, TaskFlag.STORED, digest) + payload.encode())


def test_what_there_is_memory_for_is_kept() -> None:
    """And given to tasks."""
    machine = Machine(RESERVE + 3 * SIZE)
    assert all(machine.take(name) for name in (b"a", b"b"))
    assert len(machine.store.stored(task(b"a", b"b").body, TASK.size)) == 2
    assert not machine.store.refused
    assert machine.heard == []


def test_where_memory_is_short_what_is_kept_goes_first() -> None:
    """What was not used for longest; the client hears of it."""
    machine = Machine(RESERVE + 2 * SIZE)
    for name in (b"a", b"b"):
        assert machine.take(name)
    machine.store.stored(task(b"a").body, TASK.size)
    tell = machine.store._tell
    machine.store._tell = lambda frame: (setattr(machine, "free", (machine.free or 0) + SIZE), tell(frame))
    assert machine.take(b"c")
    assert machine.dropped() == [b"b"]
    assert len(machine.store.stored(task(b"a", b"c").body, TASK.size)) == 2


def test_a_call_fails_whose_buffer_has_no_room() -> None:
    """The node goes on; another call has its turn when there is memory again."""
    machine = Machine(RESERVE)
    assert not machine.take(b"a")
    assert machine.dropped() == [b"a"]
    [answer] = Parser().feed(machine.store.refusal(task(b"a")))
    call, status, _, _ = RESULT.unpack_from(answer.body)
    facts = json.loads(answer.body[RESULT.size :])
    assert (answer.kind, answer.lane, call, status) == (Kind.RESULT, 3, 7, Status.FAILED)
    assert facts["error"] == "SerializationError"
    assert "1 MiB are needed for it and 64 MiB are free" in facts["message"]
    assert machine.store.refusal(task(b"b")) == b""
    machine.free = RESERVE + SIZE
    assert machine.take(b"a")
    assert machine.store.refusal(task(b"a")) == b""


def test_a_function_whose_buffer_has_no_room_fails_too() -> None:
    """Until it is sent again."""
    machine = Machine(RESERVE)
    machine.take(b"a")
    payload = dump(np.zeros(SIZE, np.uint8), lambda buffer: Keep(b"a".ljust(32, b"."), write_segment([[buffer]])))
    digest = b"g" * 16
    machine.store.add_function(FUNCTION.pack(digest, FunctionFlag.STORED) + payload.encode(), ())
    assert machine.dropped() == [b"a", digest]
    assert machine.store.refusal(task(digest=digest))


def test_where_memory_is_unknown_everything_is_wanted() -> None:
    """As on systems that do not tell."""
    assert Machine(None).take(b"a")


def test_a_buffer_that_was_never_sent_is_the_clients_mistake() -> None:
    """Unlike one that was refused."""
    with pytest.raises(ProtocolError, match="never sent"):
        Machine(None).store.stored(task(b"a").body, TASK.size)


def test_more_buffers_than_descriptors_fit_are_refused() -> None:
    """A frame would not hold them on its last way."""
    with pytest.raises(ProtocolError, match="more than a frame may carry"):
        Machine(None).store.stored(task(*[b"%d" % number for number in range(64)]).body, TASK.size)
