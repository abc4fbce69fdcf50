"""
A provider's own data is a value: it cannot be changed, and JSON can hold it.
"""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from hypothesis import given, strategies as st

from skyward.errors import ConfigError
from skyward.model.instances.details import NONE, Details, details

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(st.text(), JSON, max_size=4))
def test_it_reads_as_what_it_was_made_of(given: dict[str, Any]) -> None:
    """Names, values and length are those of the mapping, also after pickling."""
    own = details(given, "data")
    assert given == own == pickle.loads(pickle.dumps(own))
    assert (set(given), len(given)) == (set(own), len(own))
    assert hash(own) == hash(details(dict(reversed(given.items())), "data"))


def test_what_is_read_out_of_it_is_the_readers_own() -> None:
    """A list in it can be changed, and it stays as it was."""
    own = details({"zones": ["a"]}, "data")
    own["zones"].append("b")
    assert {"zones": ["a"]} == own


def test_it_cannot_be_changed() -> None:
    """Attributes are neither set nor deleted."""
    own = details({"a": 1}, "data")
    with pytest.raises(AttributeError, match="cannot be changed"):
        own.text = "{}"
    with pytest.raises(AttributeError, match="cannot be changed"):
        del own.text


def test_none_and_details_pass() -> None:
    """Nothing is written twice."""
    own = details({"a": 1}, "data")
    assert own is details(own, "data")
    assert NONE is details({}, "data")
    assert Details() == {}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([("a", 1)], "data must be a mapping, not"),
        ({1: "a"}, "data must have text for names, not 1"),
        ({"a": object()}, "data must be what JSON can hold: Object of type object"),
        ({"a": float("inf")}, "data must be what JSON can hold: Out of range"),
    ],
)
def test_what_json_cannot_hold_is_refused(value: Any, message: str) -> None:
    """The error names the parameter and the reason."""
    with pytest.raises(ConfigError, match=message):
        details(value, "data")
