"""Whatever goes wrong ends in one clear error at the caller, and the pool goes on."""

from __future__ import annotations

import sys
import threading
import traceback
from typing import Any

import pytest

import skyward as sky


class PickyError(Exception):
    """Takes arguments that its pickle does not keep."""

    def __init__(self, one: int, two: int) -> None:
        super().__init__(f"{one} and {two}")


@sky.function
def ok() -> str:
    return "ok"


@pytest.fixture(autouse=True)
def _goes_on(pool: sky.Pool) -> Any:
    """After each error, both nodes answer."""
    yield
    assert ok() @ pool == ["ok", "ok"]


def test_exception_is_raised_as_itself_with_its_chain(pool: sky.Pool) -> None:
    """The user's cause stays, and the node's traceback stands at the end of the chain."""

    @sky.function
    def convert(text: str) -> int:
        try:
            return int(text)
        except ValueError as error:
            raise LookupError("no number") from error

    with pytest.raises(LookupError, match="no number") as caught:
        convert("x") >> pool
    error = caught.value
    assert isinstance(error.__cause__, ValueError)
    printed = "".join(traceback.format_exception(error))
    assert "in convert" in printed
    assert any("convert" in note and "node " in note for note in error.__notes__)


def test_exception_with_arguments_of_its_own_arrives_as_itself(pool: sky.Pool) -> None:
    """It is made anew without its `__init__`, which takes others than it passes on."""

    @sky.function
    def picky() -> None:
        raise PickyError(1, 2)

    with pytest.raises(PickyError, match="1 and 2"):
        picky() >> pool


def test_exception_that_holds_a_lock_becomes_a_remote_error(pool: sky.Pool) -> None:
    """What cannot be pickled does not travel as itself; an `except` finds it by its class all the same."""

    @sky.function
    def locked() -> None:
        raise ValueError(threading.Lock())

    with pytest.raises(ValueError, match="lock") as caught:
        locked() >> pool
    assert isinstance(caught.value, sky.RemoteError)
    assert "ValueError" == caught.value.type_name


def test_exception_that_no_frame_holds_becomes_a_remote_error(pool: sky.Pool) -> None:
    """With as much of its text as there is room for; it comes all the same."""

    @sky.function
    def fails() -> None:
        raise ValueError("x" * 3_000_000)

    with pytest.raises(sky.RemoteError, match=r"^xxx[^(]*\(.* too large to travel") as caught:
        fails() >> pool
    assert len(str(caught.value)) < 50_000


def test_exit_of_the_function_does_not_exit_the_client(pool: sky.Pool) -> None:
    """`sys.exit` is no way to return."""
    with pytest.raises(sky.RemoteError, match=r"called sys\.exit\(3\)"):
        sky.function(lambda: sys.exit(3))() >> pool


def test_argument_that_cannot_be_pickled_is_named(pool: sky.Pool) -> None:
    """Before anything is sent."""
    with pytest.raises(sky.SerializationError, match=r'`data\["lock"\]`') as caught:
        sky.function(lambda data: data)({"lock": threading.Lock()}) >> pool
    assert caught.value.argument == "data"


def test_variable_that_cannot_be_pickled_is_named(pool: sky.Pool) -> None:
    """Also one that the function closes over."""
    lock = threading.Lock()

    @sky.function
    def guarded() -> bool:
        return lock.locked()

    with pytest.raises(sky.SerializationError, match="`lock`"):
        guarded() >> pool


def test_open_file_is_named(pool: sky.Pool, tmp_path: Any) -> None:
    """And what to do instead."""
    with open(tmp_path / "x", "w") as file, pytest.raises(sky.SerializationError, match="x"):
        sky.function(lambda f: f)(file) >> pool


def test_result_that_cannot_be_pickled(pool: sky.Pool) -> None:
    """The error names its type."""
    with pytest.raises(sky.ResultError, match=r"_thread\.lock"):
        sky.function(threading.Lock)() >> pool


def test_result_that_cannot_be_unpickled_here(pool: sky.Pool) -> None:
    """The error says why."""

    class Broken:
        def __reduce__(self) -> Any:
            return (int, ("not a number",))

    def make() -> Any:
        return Broken()

    with pytest.raises(sky.ResultError, match="cannot be unpickled here: ValueError"):
        sky.function(make)() >> pool


def test_argument_that_cannot_be_unpickled_there(pool: sky.Pool) -> None:
    """A module that only the client has is named."""

    class Elsewhere:
        def __reduce__(self) -> Any:
            return (__import__, ("no_such_module_anywhere",))

    with pytest.raises(sky.SerializationError, match="no module 'no_such_module_anywhere'"):
        sky.function(lambda x: x)(Elsewhere()) >> pool


@pytest.mark.slow
def test_large_result_arrives(pool: sky.Pool) -> None:
    """There is no limit but memory."""
    assert len(sky.function(lambda: bytes(300 << 20))() >> pool) == 300 << 20


def test_timeout_is_prompt_and_says_so(pool: sky.Pool) -> None:
    """Also in a sleep; the clock starts when the call does."""

    @sky.function
    def sleep() -> None:
        threading.Event().wait(60)

    with pytest.raises(sky.TaskTimeoutError, match=r"longer than its timeout of 0\.2 s"):
        sleep().with_timeout(0.2) >> pool
    assert issubclass(sky.TaskTimeoutError, TimeoutError)


@pytest.mark.everything
def test_result_of_two_gibibytes_arrives(pool: sky.Pool) -> None:
    """There is no size that a result may not have."""
    big = sky.function(lambda: bytes(2 << 30))
    assert len(big() >> pool) == 2 << 30


def test_result_that_finds_no_place_on_the_node(pool: sky.Pool) -> None:
    """The system refuses the memory that it would be shared in."""

    @sky.function
    def too_much() -> bytes:
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, resource.RLIM_INFINITY))
        return bytes(64 << 20)

    @sky.function
    def lift() -> None:
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))

    try:
        with pytest.raises(sky.ResultError, match=r"too_much\(\) on node .* its result, a bytes, .*File too large"):
            too_much() >> pool
    finally:
        lift() @ pool
