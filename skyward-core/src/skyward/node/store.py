"""What a node keeps between calls: functions and large buffers, each under its digest."""

from __future__ import annotations

from skyward.errors import ProtocolError
from skyward.link.frames import Kind, encode
from skyward.link.messages import BLOB, FUNCTION, FUNCTION_DIGEST, FunctionFlag
from skyward.link.payload import Place, read_parts
from skyward.link.segment import Segment


class Store:
    """Keep what was sent once; the client says what to forget, so that both ends agree."""

    def __init__(self) -> None:
        self._functions: dict[bytes, tuple[bytes, list[Segment]]] = {}
        self._blobs: dict[bytes, Segment] = {}

    def add_function(self, body: bytes, fds: tuple[int, ...]) -> None:
        """Take a FUNCTION frame's body and the descriptor of its segment."""
        digest, flags = FUNCTION.unpack_from(body)
        segments = [Segment(fd, 0) for fd in fds]
        if flags & FunctionFlag.STORED:
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
        self._blobs[digest] = Segment(fds[0], size)

    def stored(self, body: bytes, at: int) -> list[Segment]:
        """
        Find the segments of a payload's stored parts.

        Raises:
            ProtocolError: If the client never sent one of them.
        """
        parts, _ = read_parts(body, at)
        try:
            return [self._blobs[part.digest] for part in parts if part.place == Place.STORED]
        except KeyError as error:
            raise ProtocolError(f"A payload names a buffer that was never sent, {error.args[0].hex()}.") from None

    def drop(self, digest: bytes) -> None:
        """Forget a function or a buffer."""
        if len(digest) == FUNCTION_DIGEST:
            self._functions.pop(digest, None)
        else:
            self._blobs.pop(digest, None)
