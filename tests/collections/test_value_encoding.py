"""Values as bytes."""

from __future__ import annotations

import os
import pickle
import threading
from typing import Any

import numpy as np
import pytest

from skyward.collections.value_encoding import Values
from skyward.errors import SerializationError
from skyward.model.spec.trust_setting import DATA

VALUES = Values()


@pytest.mark.parametrize("value", [None, True, 3, 2.5, "é", b"x", {"a": [1, (2, 3)]}, {1, 2}, bytes(1 << 20)])
def test_a_value_is_read_as_it_was(value: object) -> None:
    """Pickling and unpickling give an equal value."""
    assert value == VALUES.open(VALUES.pack(value, "value"))


def test_large_arrays_are_writable_and_aligned() -> None:
    """Arrays whose memory is beside the pickle can be written to, and computed with at full speed."""
    arrays = [np.arange(100_001), np.ones(50_003, "float32")]
    found = VALUES.open(VALUES.pack(arrays, "value"))
    assert all(np.array_equal(one, other) for one, other in zip(arrays, found, strict=True))
    found[0][0] = 7
    assert all(each.flags.aligned and each.flags.writeable for each in found)


def test_functions_travel_too() -> None:
    """What cloudpickle can pickle can be a value."""
    add = 3
    assert 5 == VALUES.open(VALUES.pack(lambda x: x + add, "value"))(2)


def test_what_cannot_be_pickled_is_named() -> None:
    """The error says of which collection and key the value is."""
    with pytest.raises(SerializationError, match=r"The value of 'k' in dict 'd' cannot be pickled: .*lock"):
        VALUES.pack([threading.Lock()], "value of 'k' in dict 'd'")


def test_what_cannot_be_unpickled_here_is_said() -> None:
    """A pickle that names what is not here is an error of ours."""
    with pytest.raises(SerializationError, match="cannot be unpickled here: ModuleNotFoundError"):
        VALUES.open(b"cno_such_module\nthing\n.")


class Runs:
    def __reduce__(self) -> Any:
        return os.system, ("true",)


def test_values_of_others_are_opened_as_data_where_they_are_not_trusted() -> None:
    """Plain values and arrays arrive; what would run code here is refused."""
    values = Values(DATA)
    plain = {"a": [1, (2.5, None)], (1, "b"): b"x"}
    assert plain == values.open(values.pack(plain, "value"))
    array = np.arange(100_000.0)
    assert np.array_equal(array, values.open(values.pack(array, "value")))
    with pytest.raises(SerializationError, match="cannot be unpickled here: Refused"):
        values.open(pickle.dumps(Runs()))
