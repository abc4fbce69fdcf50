"""Arrays, scalars and types of NumPy come out as they went in; a dtype that lies about itself reads no memory."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra import numpy as arrays

from skyward.link.data.allowed_names import DataNames
from skyward.link.data.maker import Refused
from skyward.link.data.opener import open_data
from skyward.link.payload import decode, load
from skyward.link.payload_making import dump
from skyward.model.spec.trust_setting import DATA
from tests.link.data.hostile import BUILD, REDUCE, call, name, plain, whole

RECORD = np.dtype([("a", "<i4"), ("b", ">f8", (2,)), ("c", "U3")])
ALIGNED = np.dtype([("a", "i1"), ("b", "f8")], align=True)


def trip(value: Any) -> Any:
    payload = dump(value, data=True)
    payload.trust = DATA
    return load(payload)


@given(arrays.arrays(dtype=arrays.scalar_dtypes(), shape=arrays.array_shapes(min_dims=0, min_side=0)))
def test_an_array_comes_out_as_it_went_in(array: np.ndarray[Any, Any]) -> None:
    """Of every type and shape, bit for bit, and writable."""
    found = trip(array)
    assert (array.dtype, array.shape) == (found.dtype, found.shape)
    assert array.tobytes() == found.tobytes()
    assert found.flags.writeable


@pytest.mark.parametrize(
    "array",
    [
        np.asfortranarray(np.arange(12.0).reshape(3, 4)),
        np.arange(24).reshape(2, 3, 4)[:, ::2, 1:],
        np.arange(24).reshape(2, 3, 4).transpose(1, 0, 2),
        np.array([1, "a", None, [2], {"b": (3,)}], dtype=object),
        np.array([[[1], [2]], [[3], [4]]], dtype=object),
        np.zeros(3, RECORD),
        np.zeros(3, ALIGNED),
        np.zeros(2, np.dtype({"names": ["x"], "formats": ["i2"], "offsets": [3], "itemsize": 9})),
        np.zeros(2, np.dtype([(("title", "x"), "i4")])),
        np.zeros(2, "V5"),
        np.array(["2026-01-02"], "M8[25us]"),
    ],
    ids=lambda array: str(array.dtype)[:30],
)
def test_an_unusual_array_comes_out_as_it_went_in(array: np.ndarray[Any, Any]) -> None:
    """Orders, views, objects, records."""
    found = trip(array)
    assert (array.dtype, array.shape, array.flags.f_contiguous) == (found.dtype, found.shape, found.flags.f_contiguous)
    assert repr(array.tolist()) == repr(found.tolist())


@pytest.mark.parametrize(
    "kind", ["?", "i1", ">u8", "f2", "c16", "S3", "S0", "U4", "V7", "M8", "M8[3D]", "m8[ns]", "O", RECORD, ALIGNED]
)
def test_a_type_comes_out_as_it_went_in(kind: Any) -> None:
    """And so does a scalar of it."""
    dtype = np.dtype(kind)
    assert dtype == trip(dtype)
    assert str(dtype) == str(trip(dtype))
    if not dtype.hasobject:
        scalar = np.zeros(1, dtype)[0]
        assert type(scalar) is type(trip(scalar))
        assert scalar.tobytes() == trip(scalar).tobytes()


def test_a_large_array_is_not_copied() -> None:
    """It lies in the segment that it came in."""
    sent = dump({"weights": np.arange(1_000_000.0)}, data=True)
    fds = tuple(map(_duplicate, sent.fds))
    found = load(decode(sent.encode(), 0, fds, DATA))["weights"]
    base: Any = found
    while isinstance(base, np.ndarray):
        base = base.base
    assert isinstance(base, memoryview)
    assert np.array_equal(found, np.arange(1_000_000.0))


def _duplicate(fd: int) -> int:
    import os

    return os.dup(fd)


# Types that lie.

NUMERIC = "numpy._core.numeric" if hasattr(np, "_core") else "numpy.core.numeric"
POINTERS = name("numpy", "dtype") + plain(("O8", False, True)) + REDUCE
FLAGLESS = POINTERS + plain((3, "|", None, None, None, -1, -1, 0)) + BUILD


def lies() -> dict[str, bytes]:
    buffer = [bytes(8)]
    empty = call("numpy._core.multiarray", "_reconstruct", [name("numpy", "ndarray")], (0,), b"b")
    eight = name("numpy", "dtype") + plain(("f8", False, True)) + REDUCE
    return {
        "pointers as a buffer": whole(call(NUMERIC, "_frombuffer", *buffer, [FLAGLESS], (1,), "C")),
        "pointers as a scalar": whole(call("numpy._core.multiarray", "scalar", [FLAGLESS], bytes(8))),
        "pointers as bytes": whole(
            empty, b"(", plain(1), plain((1,)), FLAGLESS, plain(False), plain(bytes(8)), b"t", BUILD
        ),
        "a record of pointers": whole(
            call(
                NUMERIC,
                "_frombuffer",
                *buffer,
                [
                    name("numpy", "dtype")
                    + plain(("V8", False, True))
                    + REDUCE
                    + b"("
                    + plain(3)
                    + plain("|")
                    + b"N"
                    + plain(("a",))
                    + b"}"
                    + plain("a")
                    + FLAGLESS
                    + plain(0)
                    + b"\x86s"
                    + plain(8)
                    + plain(1)
                    + plain(0)
                    + b"t"
                    + BUILD
                ],
                (1,),
                "C",
            )
        ),
        "fields over the end": whole(
            name("numpy", "dtype") + plain(("V8", False, True)) + REDUCE,
            b"(",
            plain(3),
            plain("|"),
            b"N",
            plain(("a",)),
            b"}",
            plain("a"),
            eight,
            plain(100),
            b"\x86s",
            plain(8),
            plain(1),
            plain(0),
            b"t",
            BUILD,
        ),
        "fewer bytes than numbers": whole(call(NUMERIC, "_frombuffer", *buffer, [eight], (1000,), "C")),
        "fewer bytes in a state": whole(
            empty, b"(", plain(1), plain((1000,)), eight, plain(False), plain(bytes(8)), b"t", BUILD
        ),
        "a state of objects that are none": whole(
            empty, b"(", plain(1), plain((9,)), POINTERS, plain(False), plain([1]), b"t", BUILD
        ),
        "a shape below nothing": whole(call(NUMERIC, "_frombuffer", *buffer, [eight], (-1,), "C")),
        "a matrix": whole(call("numpy._core.multiarray", "_reconstruct", [name("numpy", "matrix")], (0,), b"b")),
        "a size that is none": whole(
            name("numpy", "dtype"),
            plain(("V8", False, True)),
            REDUCE,
            plain((3, "|", None, None, None, 1 << 40, 1, 0)),
            BUILD,
        ),
    }


@pytest.mark.parametrize("data", lies().values(), ids=list(lies()))
def test_a_dtype_that_lies_is_refused(data: bytes) -> None:
    """Its flags, fields, size and shape are rebuilt from the description, or it is refused."""
    with pytest.raises((Refused, ValueError)):
        open_data(data, DataNames())


def test_flags_are_numpys_own() -> None:
    """Whatever a state says of them, a type of objects is one."""
    made = open_data(whole(FLAGLESS), DataNames())
    assert made.hasobject
    # NumPy itself takes the state over unchecked; this fails once it no longer does.
    assert not pickle.loads(whole(FLAGLESS)).hasobject
