"""A pool whose nodes are trusted with data only: what is data comes as it does anywhere, and nothing else is opened."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import attrs
import numpy as np
import pytest

import skyward as sky


@dataclasses.dataclass
class Result:
    """What a training returns."""

    loss: float
    weights: Any


@dataclasses.dataclass(frozen=True)
class Checked(sky.SkywardEvent):
    """One that is a dataclass, whose constructor is for the task alone."""

    epoch: int

    def __post_init__(self) -> None:
        built.append(self.epoch)


@attrs.frozen(kw_only=True)
class EpochDone(sky.SkywardEvent):
    """An event of the user's."""

    epoch: int


class Wrong(Exception):
    """An error of the user's."""


class Other(Exception):
    """Another class, which is not listed."""


class Evil:
    """A result that a hostile owner of the machine would send."""

    def __reduce__(self) -> Any:
        return ran.append, ("evil",)


class Told(sky.SkywardEvent):
    """An event that is not listed, with something in it."""

    def __reduce__(self) -> Any:
        return ran.append, ("event",)


ran: list[str] = []
built: list[int] = []


@pytest.fixture(scope="module")
def heard() -> list[Any]:
    return []


@pytest.fixture(scope="module")
def pool(heard: list[Any]) -> Iterator[sky.Compute]:
    made = sky.Compute(trust=sky.Data(Result, EpochDone, Wrong), console="silent", on_event=heard.append)
    with made as opened:
        yield opened


def test_data_comes_as_it_does_anywhere(pool: sky.Compute) -> None:
    """Results, futures, streams, maps and broadcasts; classes of the program that are listed."""

    def train(size: int) -> Result:
        return Result(0.5, np.arange(float(size)))

    result = sky.function(train)(300_000) >> pool
    assert (Result, 0.5, 300_000) == (type(result), result.loss, len(result.weights))
    assert [Result(0.5, [])] == [Result(one.loss, []) for one in sky.function(train)(3) @ pool]
    assert {"a": (1, 2.5)} == (sky.function(lambda: {"a": (1, 2.5)})() > pool).result()
    assert [0, 1, 4] == pool.map(sky.function(lambda x: x * x), range(3))
    assert 0 == (sky.function(sky.instance_info)() >> pool).node

    def counts() -> Iterator[int]:
        yield from range(3)

    assert [0, 1, 2] == list(sky.function(counts)() >> pool)


@pytest.mark.parametrize("way", ["result", "future", "stream", "broadcast", "map", "error", "cause", "event"])
def test_what_is_no_data_is_not_opened(pool: sky.Compute, heard: list[Any], way: str) -> None:
    """Whichever way it comes; the error says what it is and what to write."""

    def made(how: str) -> Any:
        if how == "error":
            raise Wrong(Evil())
        if how == "cause":
            raise KeyError("outer") from Wrong(Evil())
        if how == "event":
            sky.emit(Told())
            return None
        return Evil()

    def streamed() -> Iterator[Any]:
        yield 1
        yield Evil()

    ran.clear()
    calls: dict[str, Any] = {
        "result": lambda: sky.function(made)("result") >> pool,
        "future": lambda: (sky.function(made)(way) > pool).result(60),
        "stream": lambda: [*(sky.function(streamed)() >> pool)],
        "broadcast": lambda: sky.function(made)(way) @ pool,
        "map": lambda: pool.map(sky.function(made), ["x"]),
        "error": lambda: sky.function(made)("error") >> pool,
    }
    if way in calls:
        with pytest.raises(sky.RemoteError if way == "error" else sky.ResultError, match=r"append|getattr") as caught:
            calls[way]()
        assert "sky.Data(" in str(caught.value)
    elif way == "cause":
        with pytest.raises(KeyError) as outer:
            sky.function(made)(way) >> pool
        assert isinstance(outer.value.__cause__, sky.RemoteError)
    else:
        sky.function(made)(way) >> pool
        assert pool.is_active
    assert [] == ran


def test_an_error_is_itself_where_its_class_is_listed(pool: sky.Compute) -> None:
    """Else its type, text and traceback."""

    def fails(kind: type[Exception]) -> None:
        raise kind("why")

    for kind in (KeyError, Wrong):
        with pytest.raises(kind, match="why"):
            sky.function(fails)(kind) >> pool
    with pytest.raises(sky.RemoteError, match=r"Other: why .*trust=sky\.Data\(Other\)") as caught:
        sky.function(fails)(Other) >> pool
    assert "in fails" in caught.value.traceback


def test_events_are_opened_where_their_class_is_listed(heard: list[Any]) -> None:
    """Any other is reported once, in an event of Skyward's."""

    def tells() -> None:
        for epoch in range(3):
            sky.emit(EpochDone(epoch=epoch))
            sky.emit(Checked(epoch))
            sky.emit(Told())
            sky.emit(sky.Progress(label="epochs", done=epoch))

    ran.clear()
    built.clear()
    events: list[Any] = []
    with sky.Compute(trust=sky.Data(EpochDone, Checked), console="silent", on_event=events.append) as pool:
        sky.function(tells)() >> pool
    assert [0, 1, 2] == [event.epoch for event in events if isinstance(event, EpochDone)]
    assert [0, 1, 2] == [event.done for event in events if isinstance(event, sky.Progress)]
    checked = [event for event in events if isinstance(event, Checked)]
    assert [0, 1, 2] == [event.epoch for event in checked]
    assert all(event.instance is not None and event.instance.node == 0 for event in checked)
    assert [] == built
    [error] = [event for event in events if isinstance(event, sky.Error)]
    assert "Told" in error.message
    assert [] == ran
