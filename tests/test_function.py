"""
`@sky.function` makes calls that run nothing, and keeps the function as it was.
"""

from __future__ import annotations

import pickle
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

import skyward as sky
from skyward.function import as_function


@sky.function
def add(x: int, y: int = 1) -> int:
    """Add two numbers."""
    return x + y


class Counter:
    """Count from somewhere."""

    def __init__(self, start: int) -> None:
        self.start = start

    @sky.function(timeout=5, retries=1)
    def plus(self, x: int) -> int:
        return self.start + x

    @staticmethod
    @sky.function
    def twice(x: int) -> int:
        return 2 * x


def test_a_call_runs_nothing() -> None:
    """What is given is the function and its arguments."""
    ran: list[int] = []
    pending = sky.function(ran.append)(3)
    assert ([], (3,), {}) == (ran, pending.args, pending.kwargs)


def test_a_function_keeps_its_name_and_docstring() -> None:
    """Tools see the function that was decorated."""
    assert ("add", "Add two numbers.", __name__) == (add.__name__, add.__doc__, add.__module__)
    assert "<sky.function add>" == repr(add)


def test_local_runs_here() -> None:
    """The function itself and a pending call of it can be run without a pool."""
    assert (3, 3) == (add.local(1, 2), add(1, y=2).local())


def test_a_method_is_bound_to_its_object() -> None:
    """The object is the first argument of the call, and of `.local`."""
    counter = Counter(10)
    pending = counter.plus(1)
    assert (counter, 1) == pending.args
    assert (5.0, 1) == (pending.timeout, pending.retries)
    assert [11, 11] == [counter.plus.local(1), pending.local()]
    assert Counter.plus is Counter.__dict__["plus"]
    assert 4 == Counter.twice(2).local()


def test_a_bound_method_is_a_function_of_what_remains() -> None:
    """A map over a decorated method calls it with the items, and keeps its settings."""
    fn = as_function(Counter(10).plus)
    assert 12 == fn.local(2)
    assert (5.0, 1) == (fn.timeout, fn.retries)
    assert 13 == sky.function(Counter(10).plus).local(3)


def test_settings_of_the_function_are_those_of_its_calls() -> None:
    """A call can have others, and leaves the one it was made from alone."""
    call = sky.function(timeout=60, retries=2)(len)("abc")
    assert (60.0, 2) == (call.timeout, call.retries)
    assert (5.0, 0) == (call.with_timeout(5).timeout, call.with_retries(0).retries)
    assert (60.0, 2) == (call.timeout, call.retries)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"timeout": 0}, "timeout must be more than 0 seconds"),
        ({"timeout": -1}, "timeout must be"),
        ({"timeout": float("nan")}, "timeout must be"),
        ({"timeout": "1 minute"}, "timeout must be"),
        ({"retries": -1}, r"retries must be a whole number from 0, or sky\.Retry.* not -1"),
        ({"retries": 1.5}, r"retries must be a whole number from 0, .* not 1\.5"),
        ({"retries": True}, "retries must be a whole number from 0, .* not True"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, Any], message: str) -> None:
    """At once, with the parameter and what it takes."""
    with pytest.raises(sky.ConfigError, match=message):
        sky.function(**settings)


def test_what_cannot_be_called_is_refused() -> None:
    """A decorator on the wrong thing says what that is."""
    with pytest.raises(sky.UsageError, match="is for functions, and this is a int: 3"):
        sky.function(3)  # type: ignore[call-overload]


def test_decorating_twice_is_decorating_once() -> None:
    """A function that is decorated already is taken for what it holds."""
    again: Any = sky.function(add)
    same: Any = as_function(add)
    assert again.local is add.local
    assert same is add


def _rows() -> Iterator[int]:
    yield 1


async def _events() -> AsyncIterator[int]:
    yield 1


async def _once() -> int:
    return 1


@pytest.mark.parametrize(("fn", "streams"), [(_rows, True), (_events, True), (_once, False), (len, False)])
def test_generator_functions_stream(fn: Callable[..., Any], streams: bool) -> None:
    """Synchronous and asynchronous ones, and nothing else."""
    assert streams is sky.function(fn).streams


def test_iterator_parameters_are_found_by_their_annotation() -> None:
    """As objects and as text, under any name of the module; a list is an argument like others."""

    def mixed(a: Iterator[int], b: list[int], c: Iterator[str], d: int = 1) -> Iterator[int]:
        yield from a

    mixed.__annotations__ |= {"c": "typing.Iterator[Unknown]", "a": Iterator[int]}
    assert ("a", "c") == sky.function(mixed).stream_parameters


def test_a_function_of_a_module_travels_by_name() -> None:
    """It unpickles to the very same object where the module is."""
    assert pickle.loads(pickle.dumps(add)) is add


def test_a_pending_call_is_shown_short() -> None:
    """Large arguments do not flood a message."""
    shown = repr(add(list(range(1000)), y=2))  # type: ignore[arg-type]
    assert shown.startswith("<pending add([0, 1, 2,")
    assert shown.endswith("...], y=2)>")
    assert len(shown) < 80
