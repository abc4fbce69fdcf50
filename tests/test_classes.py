"""
Decorated classes on the client: what a handle is, what it sends, and what is refused.
"""

from __future__ import annotations

import pickle
import threading
from collections.abc import Iterator
from typing import Any

import cloudpickle
import pytest

import skyward as sky
from skyward.classes import Class
from skyward.engine.calls.buffers import Buffers
from skyward.engine.calls.captured_functions import Captures
from skyward.pending import PendingFunction


@sky.cls
class Counter:
    """Count in a worker."""

    step = 1

    def __init__(self, start: int, *, by: int = 1) -> None:
        self.count = start
        self.by = by

    def add(self, times: int = 1) -> int:
        """Count on."""
        self.count += times * self.by
        return self.count

    @sky.function(timeout=5, retries=2)
    def slowly(self, times: int) -> int:
        return self.add(times)

    def each(self, upto: int) -> Iterator[int]:
        for _ in range(upto):
            yield self.add()

    def total(self, numbers: Iterator[int]) -> int:
        return sum(numbers)

    async def later(self) -> int:
        return self.add()

    @staticmethod
    def double(x: int) -> int:
        return 2 * x

    @classmethod
    def named(cls, suffix: str) -> str:
        return cls.__name__ + suffix

    @property
    def half(self) -> float:
        return self.count / 2

    def _hidden(self) -> int:
        return 1

    def __call__(self) -> int:
        return self.count


def handle(*args: Any, **kwargs: Any) -> Any:
    """Make a handle; as type checkers see it, its methods run."""
    made: Any = Counter
    return made(*args, **kwargs)


def test_methods_make_pending_calls() -> None:
    """Nothing is made and nothing runs."""
    call = handle(1).add(2)
    assert isinstance(call, PendingFunction)
    assert "<pending Counter.add(2)>" == repr(call)
    assert "<Counter in workers>" == repr(handle(1))
    assert "<sky.cls Counter>" == repr(Counter)


def test_settings_of_a_method_are_those_of_its_decorator() -> None:
    """The others have none."""
    counter = handle(1)
    assert (5.0, 2) == (counter.slowly(1).timeout, counter.slowly(1).retries)
    assert (None, 0) == (counter.add(1).timeout, counter.add(1).retries)
    assert 3 == counter.add(1).with_retries(3).retries


def test_methods_run_here_when_asked_to() -> None:
    """On one object of this process, made at the first call; two handles are two objects."""
    one, other = handle(1), handle(1, by=10)
    assert [2, 3, 5] == [one.add.local(), one.add(1).local(), one.slowly.local(2)]
    assert 11 == other.add.local()
    assert [6, 7] == list(one.each.local(2))
    assert (8, "Counter!") == (one.double.local(4), one.named.local("!"))


def test_a_plain_object_can_be_had() -> None:
    """Here, as without the decorator."""
    made: Any = Counter
    assert 3 == made.local(1).add(2)
    assert (2, 1) == (made.plain(1).add(1), made.plain.step)


def test_generators_and_iterators_stream() -> None:
    """As those of functions do."""
    counter = handle(1)
    assert counter.each.streams
    assert not counter.add.streams
    assert ("numbers",) == counter.total.stream_parameters


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("half", r"Counter\.half is no method, .* write a method that returns it"),
        ("step", r"Counter\.step is no method"),
        ("_hidden", r"Counter\._hidden is private, .* write a public method"),
        ("__len__", r"Counter\.__len__ cannot be called from here: special methods"),
        ("count", r"Counter has no method 'count'\. What its constructor sets is in workers only"),
        ("ad", r"Counter has no method 'ad'\. Did you mean add\?"),
    ],
)
def test_what_is_no_public_method_cannot_be_reached(name: str, said: str) -> None:
    """With what to do instead."""
    with pytest.raises(AttributeError, match=said):
        getattr(handle(1), name)
    assert not hasattr(handle(1), name)


def test_what_cannot_be_done_with_a_handle() -> None:
    """It is called by its methods only, and holds nothing."""
    with pytest.raises(AttributeError, match=r"Counter\.count cannot be set from here"):
        handle(1).count = 3
    with pytest.raises(TypeError, match="not callable"):
        handle(1)()
    assert ["add", "double", "each", "later", "named", "slowly", "total"] == dir(handle(1))


def test_arguments_that_do_not_fit_are_refused_here() -> None:
    """Those of the constructor as those of a method."""
    with pytest.raises(sky.UsageError, match=r"Counter\(start.* cannot be made like this: missing a required argument"):
        handle()
    with pytest.raises(sky.UsageError, match=r"Counter\.add\(times.* cannot be called like this: too many"):
        handle(1).add(1, 2)
    with pytest.raises(sky.UsageError, match=r"Counter was given <pending Counter\.add\(\)>, which has not run"):
        handle(handle(1).add())
    with pytest.raises(sky.UsageError, match=r"Counter\.add was given <pending"):
        handle(1).add(handle(1).add())


def test_a_constructor_argument_that_cannot_be_sent_is_named() -> None:
    """In the line that makes the handle."""
    with pytest.raises(sky.SerializationError, match=r"Argument `start` of `Counter` cannot be sent"):
        handle(threading.Lock())


@pytest.mark.parametrize("given", [len, 3, "Counter", lambda: 1], ids=["len", "3", "text", "lambda"])
def test_only_classes_are_decorated(given: Any) -> None:
    """The error for a function says what is for it."""
    with pytest.raises(sky.UsageError, match=r"`@sky\.cls` is for classes"):
        sky.cls(given)


def test_settings_that_make_no_sense_are_refused() -> None:
    """At once."""
    with pytest.raises(sky.ConfigError, match='on_loss must be "rebuild" or "raise"'):
        sky.cls(on_loss="ignore")  # type: ignore[call-overload]
    with pytest.raises(sky.UsageError, match=r"no setting 'onloss'\. Did you mean 'on_loss'"):
        sky.cls(onloss="raise")  # type: ignore[call-overload]


def test_a_decorated_class_is_decorated_once() -> None:
    """The last word counts."""
    again: Any = sky.cls(on_loss="raise")(Counter)
    assert again.plain is Counter.plain  # type: ignore[attr-defined]
    assert "raise" == again.on_loss


def test_a_class_that_derives_from_one_is_plain() -> None:
    """Until it is decorated itself."""

    class Twice(Counter):
        def add(self, times: int = 1) -> int:
            return super().add(2 * times)

    assert 5 == Twice(1).add(2)
    decorated: Any = sky.cls(Twice)
    assert 5 == decorated(1).add.local(2)


# What travels.


def test_what_it_is_made_with_is_sent_once() -> None:
    """Each method is captured at its first call, and not again: only its own arguments go with each call."""
    captures, counter = Captures(Buffers()), handle(bytes(1 << 20))
    first = captures.capture(counter.add, counter.add.name)
    assert first.payload.size > 1 << 20
    assert captures.capture(counter.add, counter.add.name) is first


def test_what_it_is_made_with_is_as_it_was_then() -> None:
    """What changes afterwards changes nothing."""

    @sky.cls
    class Holder:
        def __init__(self, values: list[int]) -> None:
            self.values = values

        def get(self) -> list[int]:
            return self.values

    given, made = [1], Holder
    holder: Any = made(given)
    given.append(2)
    assert [1] == holder.get.local()


@pytest.mark.parametrize("pickler", [pickle, cloudpickle], ids=["pickle", "cloudpickle"])
def test_a_handle_travels_as_the_same_object(pickler: Any) -> None:
    """Where it arrives, its methods reach the object of that process."""
    counter = handle(1)
    assert 2 == counter.add.local()
    for protocol in (2, pickle.HIGHEST_PROTOCOL):
        there = pickle.loads(pickler.dumps(counter, protocol))
        before = counter.add.local(0)
        assert before + 1 == there.add.local()


def test_a_class_travels_by_its_name_where_it_has_one() -> None:
    """And as itself where it has none."""
    assert pickle.loads(pickle.dumps(Counter)) is Counter

    @sky.cls(on_loss="raise")
    class Inside:
        def seven(self) -> int:
            return 7

    there: Any = pickle.loads(cloudpickle.dumps(Inside))
    assert isinstance(there, Class)
    assert "raise" == there.on_loss
    assert 7 == there().seven.local()
