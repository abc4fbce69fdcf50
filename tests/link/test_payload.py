"""Values come out as they went in, their large buffers beside them."""

from __future__ import annotations

import contextlib
import gc
import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from skyward.errors import ProtocolError
from skyward.link.digest import digest_of
from skyward.link.payload import INLINE, Payload, decode, load, views
from skyward.link.payload_making import MAX_STORED, Keep, dump, pack, packed, pickled
from skyward.link.payload_parts import Part, Place, read_parts
from skyward.link.pickling import OUT_OF_BAND
from skyward.link.segment import write_segment
from skyward.model.spec.trust_setting import Data


def _sent(payload: Payload) -> Payload:
    """Take a payload through its bytes and descriptors, as a socket does."""
    fds = [os.dup(fd) for fd in (*payload.fds, *(kept.fd for kept in payload.stored))]
    return decode(payload.encode(), 0, fds)


@pytest.mark.parametrize("size", [0, 1, OUT_OF_BAND - 1, OUT_OF_BAND, INLINE, INLINE + 1, 3 * INLINE, 9 << 20])
@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview, np.ndarray])
def test_buffers_of_any_size_survive(kind: Any, size: int) -> None:
    """Inside the frame or in shared memory."""
    data = bytes(range(256)) * (size // 256) + bytes(size % 256)
    value = np.frombuffer(data, np.uint8) if kind is np.ndarray else kind(data)
    found = load(_sent(dump({"x": [value, value]})))
    assert [type(item) for item in found["x"]] == [kind, kind]
    assert all(bytes(item) == data for item in found["x"])


def test_shaped_memoryview_keeps_its_shape() -> None:
    """Format and dimensions too."""
    view = memoryview(np.arange(60_000.0).reshape(200, 300))
    found = load(_sent(dump(view)))
    assert (found.format, found.shape) == (view.format, view.shape)
    assert found == view


def test_received_arrays_are_writable_and_private() -> None:
    """Two receivers of the same payload do not see each other."""
    payload = dump(np.zeros(1_000_000))
    one, other = load(_sent(payload)), load(_sent(payload))
    one[:] = 7
    assert other.sum() == 0


def test_buffer_may_change_as_soon_as_it_is_dumped() -> None:
    """The payload has its own copy."""
    array = np.zeros(1_000_000)
    payload = dump(array)
    array[:] = 1
    assert load(payload).sum() == 0


def test_received_array_outlives_its_payload() -> None:
    """The mapping is its own."""
    array = load(_sent(dump(np.arange(1_000_000))))
    gc.collect()
    assert int(array.sum()) == 499_999_500_000


def test_kept_buffers_travel_by_their_digest() -> None:
    """Their memory is named in the table, not copied."""
    array = np.arange(1_000_000)
    digest = digest_of(memoryview(array).cast("B"))
    segment = write_segment([[memoryview(array).cast("B")]])
    payload = dump(array, lambda buffer: Keep(digest, segment))
    assert [part.place for part in payload.parts] == [Place.INLINE, Place.STORED]
    assert payload.parts[1].digest == digest
    assert (load(_sent(payload)) == array).all()


def _kept() -> Callable[..., Keep]:
    return lambda buffer, fresh=False: Keep(digest_of(buffer), write_segment([[buffer]]))


@pytest.mark.parametrize("keep", [None, _kept()], ids=["sent", "kept"])
@pytest.mark.parametrize("size", [10, INLINE, 3 << 20])
def test_values_that_were_pickled_one_after_the_other_share_what_they_hold(keep: Any, size: int) -> None:
    """The last one is the value."""
    shared = [1, 2]
    large = {"shared": shared, "data": b"x" * size, "rest": list(range(1000))}
    payload = packed(pickled((large, shared, (shared, large, 7))), keep)
    found, other, seven = load(_sent(payload))
    assert found is other["shared"]
    assert (other, seven) == (large, 7)


def test_a_large_object_inside_a_stream_is_a_piece_of_its_own() -> None:
    """So it is kept, whatever is around it."""
    data = os.urandom(2 << 20)
    names = [
        [part.digest for part in dump({"n": number, "data": data}, _kept()).parts if part.digest] for number in range(3)
    ]
    assert names == [[digest_of(memoryview(data))]] * 3


def test_a_stream_of_many_large_objects_survives() -> None:
    """More of them than descriptors fit into a frame."""
    value = [bytes([number]) * (1 << 20) for number in range(80)]
    payload = dump(value, _kept())
    assert len(payload.stored) == MAX_STORED
    assert load(_sent(payload)) == value


@given(st.lists(st.tuples(st.integers(0, 2), st.booleans(), st.integers(0, 300)), max_size=8), st.binary(max_size=900))
def test_a_stream_goes_on_only_where_one_is(parts: list[tuple[int, bool, int]], inline: bytes) -> None:
    """Behind the first part, before the buffers."""
    body = Payload(tuple(Part(place, size, b"d" * 32 * (place == 2), on) for place, on, size in parts), inline).encode()
    flags = "".join("s" if on else "b" for _, on, _ in parts)
    try:
        found, _ = read_parts(body, 0)
    except ProtocolError:
        assert flags.startswith("s") or "bs" in flags[1:]
        return
    assert [(part.place, part.goes_on, part.size) for part in found] == parts


def test_a_stream_in_pieces_is_not_opened_as_data() -> None:
    """No node sends one."""
    with pytest.raises(ProtocolError, match="several pieces"):
        decode(packed(pickled(([1], [2]))).encode(), 0, (), Data())


@given(st.lists(st.binary(max_size=2000), max_size=20))
def test_packed_bytes_come_out_as_they_went_in(parts: list[bytes]) -> None:
    """Nothing is pickled."""
    if parts:
        assert [bytes(view) for view in views(_sent(pack(parts)))] == parts


@given(
    st.recursive(
        st.none() | st.integers() | st.text() | st.binary(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_any_plain_value_survives(value: Any) -> None:
    """Numbers, texts, and what is made of them."""
    assert load(_sent(dump(value))) == value


@given(st.binary(max_size=300), st.integers(0, 5))
def test_hostile_tables_are_a_protocol_error(body: bytes, at: int) -> None:
    """Never anything else."""
    with contextlib.suppress(ProtocolError):
        decode(body, at, ())


def test_payload_without_its_descriptor_is_refused() -> None:
    """It does not wait for it."""
    with pytest.raises(ProtocolError, match="0 descriptors"):
        decode(dump(bytes(1 << 20)).encode(), 0, ())


def test_segment_that_is_smaller_than_said_is_refused() -> None:
    """Mapping it would end the reader at its first look beyond the end."""
    payload = dump(bytes(1 << 20))
    assert payload.segment is not None
    os.ftruncate(payload.segment.fd, 4096)
    with pytest.raises(ProtocolError, match="holds 4096"):
        decode(payload.encode(), 0, (os.dup(payload.segment.fd),))


def test_descriptor_that_is_no_memory_is_refused() -> None:
    """A pipe cannot be mapped."""
    reading, writing = os.pipe()
    with pytest.raises(ProtocolError, match="holds 0"):
        decode(dump(bytes(1 << 20)).encode(), 0, (reading,))
    os.close(writing)
