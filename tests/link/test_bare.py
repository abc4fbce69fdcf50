"""Exceptions whose `__init__` takes something else than their `args`, as those of half of all libraries do."""

from __future__ import annotations

import pickle
import threading
from typing import Any

import httpx
import pytest

from skyward.errors import RemoteError
from skyward.link.bare import reduced
from skyward.link.failure import dump_failure, load_failure


class Refused(Exception):
    def __init__(self, code: int, *, host: str) -> None:
        super().__init__(f"{host} says {code}")
        self.code = code


class Held(Refused):
    """One that holds what cannot travel."""

    def __init__(self, code: int) -> None:
        super().__init__(code, host="here")
        self.lock = threading.Lock()


class Undecodable(UnicodeDecodeError):
    """One whose fields are set by a constructor of Python's own."""

    def __init__(self, text: bytes) -> None:
        super().__init__("utf-8", text, 0, 1, "no")


class Own(Exception):
    """One that says itself how it is made anew."""

    def __init__(self, code: int, more: str) -> None:
        super().__init__(code)
        self.more = more

    def __reduce__(self) -> tuple[Any, ...]:
        return Own, (self.args[0], self.more)


def travelled(exc: BaseException) -> BaseException:
    return load_failure(dump_failure(exc), note="")


def test_it_arrives_as_itself_with_what_it_knows() -> None:
    """`except Refused` works, and so does its text."""
    arrived = travelled(Refused(404, host="there"))
    assert isinstance(arrived, Refused)
    assert ("there says 404", 404) == (str(arrived), arrived.code)


def test_one_of_a_library_arrives() -> None:
    """With its request and its response."""
    request = httpx.Request("GET", "http://127.0.0.1/")
    arrived = travelled(httpx.HTTPStatusError("no", request=request, response=httpx.Response(404, request=request)))
    assert isinstance(arrived, httpx.HTTPStatusError)
    assert ("no", 404) == (str(arrived), arrived.response.status_code)


def test_what_cannot_travel_is_left_out() -> None:
    """The exception is worth more without than something else in its place."""
    arrived = travelled(Held(404))
    assert isinstance(arrived, Held)
    assert ("here says 404", 404, False) == (str(arrived), arrived.code, hasattr(arrived, "lock"))


@pytest.mark.parametrize("exc", [Undecodable(b"\xff"), Own(1, "more"), KeyError("x"), OSError(2, "no such file")])
def test_what_pickling_makes_rightly_is_left_to_it(exc: BaseException) -> None:
    """What is built in, has fields of Python's own, or says itself how it is made."""
    assert reduced(exc) is None


def test_one_that_cannot_be_made_at_all_stands_in() -> None:
    """As a `RemoteError` with its name and text."""
    arrived = travelled(Undecodable(b"\xff"))
    with pytest.raises(TypeError):
        pickle.loads(pickle.dumps(Undecodable(b"\xff")))
    assert isinstance(arrived, RemoteError)
    assert "Undecodable" in arrived.type_name
