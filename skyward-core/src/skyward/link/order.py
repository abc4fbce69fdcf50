"""Which frames must not overtake each other when large ones are cut into pieces."""

from __future__ import annotations

from typing import NamedTuple

from skyward.link.frames import Frame, Kind
from skyward.link.messages import BLOB, CALL, EMIT, FETCH, FUNCTION, ITEM, RESULT, TASK, FunctionFlag, TaskFlag
from skyward.link.payload_parts import Place, read_parts
from skyward.link.segment import aligned

_FILES = b"files"
_TABLES = {
    Kind.TASK: TASK.size,
    Kind.RESULT: RESULT.size,
    Kind.ITEM: ITEM.size,
    Kind.FUNCTION: FUNCTION.size,
    Kind.FILES: 0,
    Kind.KEEP: CALL.size,
}


class Keys(NamedTuple):
    """
    What a frame is about.

    Args:
        changes: It arrives after every earlier frame that names one of these, and before every later one.
        needs: It arrives after every earlier frame that changes one of these, and before every later one that does.
    """

    changes: tuple[bytes, ...] = ()
    needs: tuple[bytes, ...] = ()


def keys_of(frame: Frame) -> Keys:
    """
    Name what a frame is about.

    A task comes after its function, its stored buffers and the files of its modules, and before these are dropped;
    what belongs to one call stays in order.

    Raises:
        ProtocolError: If the frame's body is torn.
    """
    kind, body = frame.kind, frame.body
    match kind:
        case Kind.TASK:
            call, _, _, _, flags, digest = TASK.unpack_from(body)
            stored = _stored(body, TASK.size) if flags & TaskFlag.STORED else ()
            return Keys((CALL.pack(call),), (digest, _FILES, *stored))
        case Kind.FUNCTION:
            digest, flags = FUNCTION.unpack_from(body)
            stored = _stored(body, FUNCTION.size) if flags & FunctionFlag.STORED else ()
            return Keys((digest,), (_FILES, *stored))
        case Kind.BLOB:
            return Keys((BLOB.unpack(body)[0],))
        case Kind.DROP | Kind.GIVE:
            return Keys((body,))
        case Kind.FETCH:
            return Keys((FETCH.unpack_from(body)[0],))
        case Kind.FILES | Kind.START | Kind.REFRESH:
            return Keys((_FILES,))
        case Kind.RESULT | Kind.ITEM | Kind.END | Kind.CREDIT | Kind.CANCEL:
            return Keys((body[: CALL.size],))
    return Keys()


def sizes_of(frame: Frame) -> list[int]:
    """
    Return how many bytes each descriptor of a frame stands for, where they travel as bytes.

    Raises:
        ProtocolError: If the frame's body is torn.
    """
    if frame.kind == Kind.BLOB:
        return [aligned(BLOB.unpack(frame.body)[1])]
    # The payload of an event follows a header that names the event.
    at = EMIT.size + EMIT.unpack_from(frame.body)[1] if frame.kind == Kind.EMIT else _TABLES[Kind(frame.kind)]
    parts, _ = read_parts(frame.body, at)
    segment = sum(aligned(part.size) for part in parts if part.place == Place.SEGMENT)
    return [segment] if segment else []


def _stored(body: bytes, at: int) -> tuple[bytes, ...]:
    return tuple(part.digest for part in read_parts(body, at)[0] if part.place == Place.STORED)
