"""What a node keeps between calls: functions and large buffers, each under its digest."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from skyward.errors import ProtocolError
from skyward.link.frames import MAX_FDS, Frame, Kind, encode, encode_json
from skyward.link.messages import BLOB, FUNCTION, FUNCTION_DIGEST, RESULT, TASK, FunctionFlag, Status, TaskFlag
from skyward.link.payload_parts import Place, read_parts
from skyward.link.segment import Segment
from skyward.node.data.memory_share import free_memory

RESERVE = 64 << 20
"""Bytes of memory that are left free for the node itself when a large buffer is taken."""

_REFUSED = 4096


class NodeStore:
    """
    Keep what was sent once; the client says what to forget, so that both ends agree.

    Where memory runs short, what is kept is dropped, and the client notified. A buffer that has no room even then is
    refused, and so are the calls that need it; the client sends it again with the next one.

    Args:
        tell: Sends a frame to the client.
        free: Counts the bytes of memory that can be taken.
    """

    def __init__(
        self, tell: Callable[[bytes], None] = lambda _: None, free: Callable[[], int | None] = free_memory
    ) -> None:
        self._functions: dict[bytes, tuple[bytes, list[Segment]]] = {}
        self._blobs: OrderedDict[bytes, Segment] = OrderedDict()
        self._put: dict[bytes, Segment] = {}
        self._tell = tell
        self._free = free
        self.refused: dict[bytes, str] = {}
        # Called with the name of each buffer that the client sends or drops.
        self.on_said: Callable[[bytes], None] = lambda _: None

    def wanted(self, frame: Frame) -> bool:
        """Make room for a buffer that is about to arrive as bytes, and return whether there is; others are wanted."""
        return frame.kind != Kind.BLOB or self.make_room(*BLOB.unpack(frame.body))

    def make_room(self, name: bytes, size: int) -> bool:
        """Release what was not used for longest until a buffer has room, and return whether it has."""
        self.refused.pop(name, None)
        while (free := self._free()) is not None and free < size + RESERVE and self._blobs:
            oldest, _ = self._blobs.popitem(last=False)
            self._forgot(oldest, "it gave way to a newer one")
        if free is None or free >= size + RESERVE:
            return True
        self._forgot(name, f"{size >> 20} MiB are needed for it and {free >> 20} MiB are free")
        return False

    def refusal(self, frame: Frame) -> bytes:
        """Answer a task that needs what there is no memory for; nothing for any other."""
        call, _, _, _, flags, digest = TASK.unpack_from(frame.body)
        parts = read_parts(frame.body, TASK.size)[0] if flags & TaskFlag.STORED else ()
        why = next(
            (self.refused[name] for name in (digest, *(part.digest for part in parts)) if name in self.refused), ""
        )
        if not why:
            return b""
        message = (
            f"the node has no memory for an argument that it was to keep: {why}. "
            "Take a machine with more memory, run fewer calls side by side, or send the data in parts."
        )
        facts = {"error": "SerializationError", "message": message}
        body = RESULT.pack(call, Status.FAILED, 0.0, 0.0) + encode_json(0, facts)[8:]
        return encode(Kind.RESULT, body, lane=frame.lane)

    def _forgot(self, name: bytes, why: str) -> None:
        self.refused[name] = why
        while len(self.refused) > _REFUSED:
            del self.refused[next(iter(self.refused))]
        self._tell(encode(Kind.DROP, name))

    def add_function(self, body: bytes, fds: tuple[int, ...]) -> None:
        """Take a FUNCTION frame's body and the descriptor of its segment."""
        digest, flags = FUNCTION.unpack_from(body)
        segments = [Segment(fd, 0) for fd in fds]
        self.refused.pop(digest, None)
        if flags & FunctionFlag.STORED:
            parts, _ = read_parts(body, FUNCTION.size)
            if why := next((self.refused[part.digest] for part in parts if part.digest in self.refused), ""):
                self._forgot(digest, why)
                return
            segments += self.stored(body, FUNCTION.size)
        self._functions[digest] = (body, segments)

    def function_frame(self, digest: bytes) -> tuple[bytes, list[Segment]]:
        """
        Render the FUNCTION frame for a worker.

        Raises:
            ProtocolError: If the client never sent it.
        """
        try:
            body, segments = self._functions[digest]
        except KeyError:
            raise ProtocolError(f"A task names a function that was never sent, {digest.hex()}.") from None
        return encode(Kind.FUNCTION, body, fds=len(segments)), segments

    def add_blob(self, body: bytes, fds: tuple[int, ...]) -> None:
        """Take a BLOB frame."""
        if len(fds) != 1:
            raise ProtocolError(f"A BLOB frame carries {len(fds)} descriptors, not one.")
        digest, size = BLOB.unpack(body)
        self.on_said(digest)
        self._blobs[digest] = Segment(fds[0], size)

    def keep_blob(self, name: bytes, segment: Segment) -> None:
        """Keep a buffer that came from another node."""
        self._blobs[name] = segment

    def keep_put(self, put: dict[bytes, Segment]) -> None:
        """Keep what tasks put, until the client drops it: it is nowhere else, and is never evicted."""
        self._put.update(put)

    def blob(self, name: bytes) -> Segment | None:
        """Find a buffer; from any thread."""
        return self._blobs.get(name) or self._put.get(name)

    def stored(self, body: bytes, at: int) -> list[Segment]:
        """
        Find the segments of a payload's stored parts.

        Raises:
            ProtocolError: If the client never sent one of them, or it names too many.
        """
        parts, _ = read_parts(body, at)
        names = [part.digest for part in parts if part.place == Place.STORED]
        if len(names) >= MAX_FDS:
            raise ProtocolError(f"A payload names {len(names)} buffers, more than a frame may carry.")
        try:
            found = [self._put[name] if name in self._put else self._blobs[name] for name in names]
        except KeyError as error:
            raise ProtocolError(f"A payload names a buffer that was never sent, {error.args[0].hex()}.") from None
        for name in names:
            if name in self._blobs:
                self._blobs.move_to_end(name)
        return found

    def drop(self, digest: bytes) -> None:
        """Drop a function or a buffer."""
        if len(digest) == FUNCTION_DIGEST:
            self._functions.pop(digest, None)
        else:
            self.on_said(digest)
            self._blobs.pop(digest, None)
            self._put.pop(digest, None)
