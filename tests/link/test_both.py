"""
What cannot be rebuilt is of its class all the same, wherever that is possible.
"""

from __future__ import annotations

import copy
import pickle
from typing import Any, Self

import pytest

from skyward.errors import NodeLostError, RemoteError
from skyward.link.both import both
from skyward.link.envelope import Envelope, Record
from skyward.link.failure import load_failure
from skyward.model.spec.trust_setting import Data


class Demanding(Exception):
    """One that wants more than its text."""

    def __new__(cls, code: int, lock: object) -> Self:
        return super().__new__(cls)

    def __init__(self, code: int, lock: object) -> None:
        super().__init__(f"code {code}")
        self.code = code


class OfTheSystem(OSError):
    """One of a built-in class with fields of its own."""


class Unlike(Exception):
    """One whose attributes are in the way."""

    @property
    def message(self) -> str:
        return f"{self.state}"  # type: ignore[attr-defined]


class Strict(Exception):
    """One that lets no class derive from it unasked."""

    def __init_subclass__(cls, *, code: int) -> None:
        super().__init_subclass__()


class Slotted(Exception):
    """One with fields that no constructor has set."""

    __slots__ = ("code",)


class Silent(Exception):
    """One that cannot say what it is."""

    def __str__(self) -> str:
        raise ValueError("no text")


class Own(RemoteError):
    """One that is a RemoteError anyway."""


def sent(kind: type, text: str = "code 3", *, trust: Data | None = None) -> Any:
    """Give what arrives of an exception that cannot travel."""
    name = f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins.")
    record = Record(name, text, "", (), None, None, False, None, "it holds a lock")
    return load_failure(Envelope("Traceback ...", (record,)).encode(), note="on node 1", trust=trust)


@pytest.mark.parametrize(
    "kind", [Demanding, OfTheSystem, Slotted, Silent, KeyError, FileNotFoundError, UnicodeDecodeError, NodeLostError]
)
def test_it_is_of_both_classes(kind: type[Exception]) -> None:
    """With its text, and everything that a RemoteError has."""
    error = sent(kind)
    assert isinstance(error, kind)
    assert isinstance(error, RemoteError)
    assert "code 3 (The exception did not travel as itself: it holds a lock.)" == str(error)
    assert (("code 3",), ["on node 1"], "Traceback ...") == (error.args, error.__notes__, error.traceback)
    assert kind.__qualname__ == type(error).__qualname__
    assert kind.__module__ == type(error).__module__


@pytest.mark.parametrize(
    "kind", [Unlike, Strict, ExceptionGroup, KeyboardInterrupt, int], ids=lambda kind: kind.__name__
)
def test_where_that_is_impossible_it_is_a_remote_error(kind: type) -> None:
    """No worse than it was."""
    error = sent(kind)
    assert type(error) is RemoteError
    assert str(error).startswith(f"{error.type_name}: code 3")


def test_a_class_that_is_not_here_is_named() -> None:
    """Nothing is imported to find it."""
    assert type(both(RemoteError("x", type_name="antigravity.Fall"), "x")) is RemoteError
    assert type(both(RemoteError("x", type_name="f.<locals>.Fall"), "x")) is RemoteError
    assert type(both(RemoteError("x", type_name=""), "x")) is RemoteError


def test_one_that_is_a_remote_error_anyway_stays_plain() -> None:
    """It says all there is."""
    assert type(sent(Own)) is RemoteError


def test_no_class_is_taken_for_what_is_trusted_with_data_only() -> None:
    """Nothing of this program is made for it."""
    assert type(sent(Demanding, trust=Data())) is RemoteError


@pytest.mark.parametrize("again", [lambda error: pickle.loads(pickle.dumps(error)), copy.copy], ids=["pickle", "copy"])
def test_it_may_travel_on(again: Any) -> None:
    """As what it is."""
    error = again(sent(Demanding))
    assert isinstance(error, Demanding)
    assert isinstance(error, RemoteError)
    assert "code 3 (The exception did not travel as itself: it holds a lock.)" == str(error)
