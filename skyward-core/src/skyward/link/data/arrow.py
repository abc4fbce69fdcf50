"""
Tables and arrays of Arrow in a pickle that is opened as data: as a stream of Arrow's own format, and checked as such.

Arrow's pickles hold buffers and lengths that it believes; its stream is read by what expects one from anywhere.
"""

from __future__ import annotations

import struct
from pickle import PickleBuffer
from typing import Any, Final

from skyward.link.data.maker import Maker, Refused, Shelf, malformed
from skyward.link.data.views import buffer_of

__all__ = ["reduce", "restore", "shelf"]

_TRUSTED_FROM: Final = 15
# What a message holds, as its format numbers it.
_DICTIONARY: Final = 2
_BATCH: Final = 3
_KINDS: Final = ("Table", "RecordBatch", "ChunkedArray", "Array", "Schema", "Scalar")


def reduce(obj: Any) -> tuple[Any, ...] | None:
    """
    Reduce a table, batch, array, scalar or schema to a stream; None for anything else of Arrow's.

    Args:
        obj: Something of Arrow's.
    """
    import pyarrow as pa

    kind = next((name for name in _KINDS if isinstance(obj, getattr(pa, name))), None)
    if kind is None:
        return None
    table = _table(pa, obj, kind)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return restore, (kind, PickleBuffer(sink.getvalue()))


def _table(pa: Any, obj: Any, kind: str) -> Any:
    match kind:
        case "Table":
            return obj
        case "RecordBatch":
            return pa.Table.from_batches([obj])
        case "Schema":
            return obj.empty_table()
        case "Scalar":
            return pa.table({"": pa.array([obj.as_py()], type=obj.type)})
        case _:
            return pa.table({"": obj})


def restore(kind: Any, stream: Any) -> Any:
    """
    Read what a stream holds; its buffers are not copied.

    Args:
        kind: What it is: one of Arrow's classes by name.
        stream: The stream.

    Raises:
        ValueError: If it is none, or holds something that is not valid.
    """
    import pyarrow as pa

    if int(pa.__version__.split(".")[0]) < _TRUSTED_FROM:
        # Older ones unpickle the metadata of an extension type.
        raise Refused(f"a value of pyarrow {pa.__version__}, which opens pickles inside its stream")
    if kind not in _KINDS:
        malformed("a value of Arrow's that is none")
    buffer = pa.py_buffer(buffer_of(stream))
    for message in pa.ipc.MessageReader.open_stream(buffer):
        if _compressed(memoryview(message.metadata)):
            raise Refused("a stream of Arrow's that is compressed")
    reader = pa.ipc.open_stream(buffer)
    for field in reader.schema:
        _no_extension(field.type)
    table = reader.read_all()
    table.validate(full=True)
    match kind:
        case "Table":
            return table
        case "Schema":
            return table.schema
        case "RecordBatch":
            batches = table.to_batches() or pa.RecordBatch.from_pylist([], schema=table.schema)
            return batches[0] if isinstance(batches, list) else batches
    column = table.column(0)
    if kind == "ChunkedArray":
        return column
    if kind == "Array":
        return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    return column[0]


def _compressed(metadata: memoryview) -> bool:
    """Return whether a message's body is compressed, and could become a thousand times as large."""
    kind, header = _field(metadata, _offset(metadata, 0), 1), _field(metadata, _offset(metadata, 0), 2)
    if not kind or not header or metadata[kind] not in (_DICTIONARY, _BATCH):
        return False
    batch = _offset(metadata, header)
    if metadata[kind] == _DICTIONARY:
        inside = _field(metadata, batch, 1)
        batch = _offset(metadata, inside) if inside else malformed("a dictionary of Arrow's without values")
    return bool(_field(metadata, batch, 3))


def _offset(metadata: memoryview, at: int) -> int:
    """Follow an offset of a flat buffer."""
    return at + int(struct.unpack_from("<I", metadata, at)[0])


def _field(metadata: memoryview, table: int, number: int) -> int:
    """Find where a field of a table in a flat buffer is; 0 if it is not there."""
    known = table - int(struct.unpack_from("<i", metadata, table)[0])
    if known < 0 or 4 + 2 * number >= int(struct.unpack_from("<H", metadata, known)[0]):
        return 0
    at = int(struct.unpack_from("<H", metadata, known + 4 + 2 * number)[0])
    return table + at if at else 0


def _no_extension(kind: Any) -> None:
    import pyarrow as pa

    if isinstance(kind, pa.BaseExtensionType):
        raise Refused(f"the Arrow extension type {kind.extension_name}")
    for at in range(kind.num_fields):
        _no_extension(kind.field(at).type)


def shelf() -> Shelf:
    """Return the name of what reads a stream."""
    return Shelf.of((__name__, "restore", None, Maker(restore)))
