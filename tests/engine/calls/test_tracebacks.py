"""Tracebacks end in the user's line."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from skyward.engine.calls.tracebacks import LIBRARY, OURS, end_in_users_code
from skyward.link.failure import dump_failure, load_failure

PATHS = {
    "installed": f"{LIBRARY[1]}client/connection.py",
    "user": "/srv/train.py",
    "ours": f"{OURS}pool.py",
    "library": f"{LIBRARY[0]}threading.py",
}


def calls(*places: str, error: BaseException) -> BaseException:
    """Give an error that was raised through functions of files of these kinds."""

    def fails() -> None:
        raise error

    inner: Callable[[], Any] = fails
    for at, place in reversed(list(enumerate(places))):
        space: dict[str, Any] = {"inner": inner}
        exec(compile(f"def f{at}(): inner()", PATHS[place], "exec"), space)
        inner = space[f"f{at}"]
    try:
        inner()
    except BaseException as raised:
        # This test's own frames: before the first, and `fails` behind the last.
        raised.__traceback__ = next(_links(raised)).tb_next
        for link in _links(raised):
            if link.tb_next is not None and link.tb_next.tb_frame.f_code is fails.__code__:
                link.tb_next = None
        return raised
    raise AssertionError


def _links(error: BaseException) -> Iterator[Any]:
    link = error.__traceback__
    while link is not None:
        yield link
        link = link.tb_next


def left(error: BaseException) -> list[str]:
    """Tell of which kinds the files of its traceback are."""
    kinds = {path: kind for kind, path in PATHS.items()}
    return [kinds[frame.filename] for frame in traceback.extract_tb(error.__traceback__)]


def from_a_node() -> BaseException:
    """Give what a function raised on a node."""
    return load_failure(dump_failure(KeyError("gone")), note="n")


@pytest.mark.parametrize("make", [KeyboardInterrupt, from_a_node], ids=["interrupt", "failure"])
@pytest.mark.parametrize(
    ("places", "expected"),
    [
        ("user ours ours", "user"),
        ("user user ours library library", "user user"),
        # A decorator of ours around the user's function.
        ("ours user ours", "ours user"),
        # The user's own iterator beneath a map.
        ("user ours ours user library", "user ours ours user library"),
        ("user ours user ours library", "user ours user"),
        ("user library", "user library"),
        ("ours library", "ours library"),
        ("user", "user"),
    ],
)
def test_our_frames_at_the_end_are_cut(make: Callable[[], BaseException], places: str, expected: str) -> None:
    """Those behind the last line of the user's, and no others."""
    error = calls(*places.split(), error=make())
    end_in_users_code(error)
    assert expected.split() == left(error)


def test_other_errors_keep_them() -> None:
    """They may be mistakes of ours."""
    error = calls("user", "ours", error=AttributeError("x"))
    end_in_users_code(error)
    assert ["user", "ours"] == left(error)


def test_chains_that_go_round_end() -> None:
    """And what has no traceback has none."""
    one, other = ValueError(1), ValueError(2)
    one.__context__, other.__context__ = other, one
    end_in_users_code(one)
    end_in_users_code(KeyboardInterrupt())
