"""Pickling with large buffers beside the stream, which cloudpickle's picklers leave to their callers."""

from __future__ import annotations

import copyreg
import sys
from pickle import PickleBuffer
from typing import Any, Protocol

import cloudpickle

from skyward.link.cached import reduce_cached
from skyward.link.data.reducing import reduce_as_data
from skyward.link.opened import refuse_file
from skyward.link.payload_parts import MOST_BUFFERS

OUT_OF_BAND = 64 << 10
"""Buffers from this size on, in bytes, are not copied into the pickle."""

MANY = 256 << 10
"""Once so many bytes of smaller buffers were copied into one pickle, the rest of them are not."""

OUT_OF_BAND_OF_MANY = 16 << 10
"""Buffers from this size on, in bytes, are not copied into the pickle where there are many."""


class PickleStream(Protocol):
    """What a pickle is written to."""

    def append(self, piece: bytes, /) -> None:
        """Take the next piece."""


class TooLargeError(Exception):
    """A stream that was given up, because it has more bytes than it may have."""


class Pickler(cloudpickle.Pickler):  # type: ignore[misc]  # cloudpickle has no types
    """
    A cloudpickle pickler that leaves large buffers out of the stream.

    Args:
        stream: Takes what the pickle consists of, piece by piece; large bytes objects uncopied.
        buffers: Takes the buffers.
        refs: Which pool's Refs may be in it; None has them refused.
        most: Bytes beyond which the stream is given up, with a TooLargeError; None for any number.
    """

    def __init__(
        self, stream: PickleStream, buffers: list[memoryview], refs: object = None, most: int | None = None
    ) -> None:
        room = MANY

        def out_of_band(buffer: PickleBuffer) -> bool:
            nonlocal room
            raw = buffer.raw()
            size = raw.nbytes
            if size < OUT_OF_BAND and (size < OUT_OF_BAND_OF_MANY or room > 0):
                room -= size
                return True
            # What a Ref refers to is never copied: it may be no memory at all.
            if len(buffers) >= MOST_BUFFERS and getattr(raw.obj, "kept", None) is None:
                return True
            buffers.append(raw)
            return False

        self._refs = refs
        self._arrays = _Arrays()
        writer = _Writer(stream) if most is None else _BoundedWriter(stream, most)
        super().__init__(writer, protocol=5, buffer_callback=out_of_band)

    def reducer_override(self, obj: Any) -> Any:
        kind = type(obj)
        if kind.__name__ == "ndarray" and kind.__module__ == "numpy" and kind not in copyreg.dispatch_table:
            # There may be thousands in one argument. Nothing below concerns them, and the tables that cloudpickle would
            # look into first take as long as the rest.
            return self._arrays.reduce(obj)
        if kind is memoryview:
            return _reduce_memoryview(obj)
        if kind.__module__ == "torch" and kind.__name__ == "Tensor":
            reduced = _reduce_tensor(obj)
            if reduced is not None:
                return reduced
        if kind.__module__ == "skyward.link.refs" and kind.__name__ == "Ref":
            return obj._reduced(self._refs)
        refuse_file(obj)
        return reduce_cached(obj) or super().reducer_override(obj)


class DataPickler(Pickler):
    """A pickler whose output is opened as data."""

    def reducer_override(self, obj: Any) -> Any:
        return reduce_as_data(obj) or super().reducer_override(obj)


class _Writer:
    """The least of a file that a pickler asks for; large bytes objects arrive here uncopied."""

    __slots__ = ("write",)

    def __init__(self, stream: PickleStream) -> None:
        self.write = stream.append


class _BoundedWriter:
    """A writer for a stream that is given up where it gets too large."""

    __slots__ = ("_append", "_room")

    def __init__(self, stream: PickleStream, most: int) -> None:
        self._append = stream.append
        self._room = most

    def write(self, piece: bytes) -> None:
        """Take a piece of the stream."""
        self._room -= len(piece)
        if self._room < 0:
            raise TooLargeError
        self._append(piece)


class _Arrays:
    """
    Reduce numpy's arrays as numpy does, one after the other.

    What it does for a contiguous array is the same for each of a dtype, and takes it as long as all the rest of the
    pickle, as it looks up for each by which function that is read again.
    """

    __slots__ = ("_dtype", "_order", "_restore")

    def __init__(self) -> None:
        self._dtype: object = None
        self._restore: Any = None
        self._order: tuple[object, ...] = ()

    def reduce(self, array: Any) -> Any:
        """Return what an array is read again with."""
        if array.dtype is self._dtype and array.flags.c_contiguous:
            return self._restore, (PickleBuffer(array), self._dtype, array.shape, *self._order)
        reduced = array.__reduce_ex__(5)
        if array.flags.c_contiguous and isinstance(reduced[1][0], PickleBuffer):
            self._restore, (_, self._dtype, _, *order) = reduced
            self._order = tuple(order)
        return reduced


def _reduce_memoryview(view: memoryview) -> tuple[Any, ...]:
    if not view.c_contiguous:
        return (memoryview, (view.tobytes(),))
    return (_restore_memoryview, (PickleBuffer(view), view.format, view.shape))


def _restore_memoryview(buffer: Any, code: str, shape: tuple[int, ...]) -> memoryview:
    flat = memoryview(buffer).cast("B")
    return flat if code == "B" and len(shape) == 1 else flat.cast(code, shape)  # type: ignore[call-overload]


def _reduce_tensor(tensor: Any) -> tuple[Any, ...] | None:
    """Reduce a plain CPU tensor to its memory; None leaves it to torch's own pickling."""
    torch = sys.modules["torch"]
    if tensor.device.type != "cpu" or tensor.layout is not torch.strided or tensor.is_quantized or tensor.dim() == 0:
        return None
    if tensor.requires_grad or tensor.numel() * tensor.element_size() < OUT_OF_BAND or not tensor.is_contiguous():
        return None
    flat = tensor.detach().view(-1).view(torch.uint8)
    return (_restore_tensor, (PickleBuffer(flat.numpy()), str(tensor.dtype), tuple(tensor.shape)))


def _restore_tensor(buffer: Any, dtype: str, shape: tuple[int, ...]) -> Any:
    import torch

    flat = torch.frombuffer(buffer, dtype=torch.uint8)
    return flat.view(getattr(torch, dtype.removeprefix("torch."))).view(shape)
