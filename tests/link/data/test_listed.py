"""Classes that the user lists are made without running what a pickle names, and no other is made."""

from __future__ import annotations

import dataclasses
import enum
import pickle
from typing import Any, NamedTuple

import attrs
import pytest

import skyward as sky
from skyward.link.data.allowed_names import DataNames
from skyward.link.data.maker import Refused
from skyward.link.data.opener import open_data
from skyward.link.failure import dump_failure, load_failure
from skyward.link.payload import load
from skyward.link.payload_making import dump
from skyward.model.spec.trust_setting import Data
from tests.link.data.hostile import BUILD, EMPTY, NEWOBJ, NONE, call, doubled, name, plain, whole

ran: list[str] = []
"""What ran of a class."""


class Plain:
    """A class that tells when its constructor runs."""

    def __init__(self, value: Any) -> None:
        ran.append("__init__")
        self.value = value

    def __eq__(self, other: object) -> bool:
        return vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]


class Reducing(Plain):
    """One that says itself how it is made."""

    def __reduce__(self) -> Any:
        return Reducing, (self.value,)


class Stateful:
    """One that takes its state itself."""

    def __setstate__(self, state: Any) -> None:
        ran.append(type(self).__name__)
        self.__dict__.update(state)


class Heir(Stateful):
    """One that leaves that to its base."""


@dataclasses.dataclass
class Result:
    """What a training returns."""

    loss: float
    inside: Any = None


@dataclasses.dataclass(frozen=True, slots=True)
class Frozen:
    """One with slots."""

    loss: float
    name: str = ""


@attrs.frozen
class Slotted:
    """One of attrs."""

    loss: float
    name: str = attrs.field(default="", converter=str)


class Slots:
    """One with slots of its own."""

    __slots__ = ("left", "right")


class Colour(enum.Enum):
    """An enumeration."""

    RED = "red"


class Flags(enum.IntFlag):
    """Flags."""

    A = 1
    B = 2


class Pair(NamedTuple):
    """A pair of the user's."""

    left: int
    right: int


class Wrong(Exception):
    """An error with a constructor that takes something else."""

    def __init__(self, code: int, *, path: str) -> None:
        ran.append("Wrong")
        super().__init__(f"{path}: {code}")
        self.code = code


class Items(list[int]):
    """A list of the user's."""


class Rows(dict[str, int]):
    """A dict of the user's."""

    def __setitem__(self, key: str, value: int) -> None:
        ran.append("__setitem__")
        super().__setitem__(key, value)


LISTED = (Plain, Reducing, Stateful, Heir, Result, Frozen, Slotted, Slots, Colour, Flags, Pair, Wrong, Items, Rows)


def trip(value: Any, *classes: type) -> Any:
    payload = dump(value, data=True)
    payload.trust = Data(*classes)
    ran.clear()
    return load(payload)


def slots(left: Any, right: Any) -> Slots:
    made = Slots()
    made.left, made.right = left, right
    return made


def items(*numbers: int) -> Items:
    made = Items(numbers)
    made.title = "some"  # type: ignore[attr-defined]
    return made


@pytest.mark.parametrize(
    "value",
    [
        Plain([1]),
        Result(0.5, Frozen(1.0, "x")),
        Slotted(1.0, "x"),
        Frozen(2.0),
        Colour.RED,
        Flags.A | Flags.B,
        Pair(1, 2),
        items(1, 2),
        Rows(a=1),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_value_of_a_listed_class_comes_out_as_it_went_in(value: Any) -> None:
    """Without its constructor or any other method that sets something."""
    found = trip([value], *LISTED)[0]
    assert type(value) is type(found)
    assert value == found
    assert getattr(value, "__dict__", None) == getattr(found, "__dict__", None)
    assert [] == ran


def test_slots_are_set_one_by_one() -> None:
    """Those of the class itself, and no others."""
    found = trip(slots(1, [2]), Slots)
    assert (1, [2]) == (found.left, found.right)


def test_a_class_that_is_not_listed_is_refused_by_name() -> None:
    """Also one that is inside another, and one whose base is listed."""
    with pytest.raises(Refused, match=rf"^{__name__}\.Result$"):
        trip(Result(0.5))
    with pytest.raises(Refused, match=rf"^{__name__}\.Frozen$"):
        trip(Result(0.5, [Frozen(1.0)]), Result)
    with pytest.raises(Refused, match=r"Reducing"):
        trip(Reducing(1), Plain)


def test_a_class_of_the_program_is_known_by_its_name() -> None:
    """One that is in no module travels by name, not with its code; if it is not listed, by no other way."""

    @dataclasses.dataclass
    class Local:
        loss: float

    found = trip(Local(0.5), Local)
    assert Local(0.5) == found
    with pytest.raises(Refused, match=r"test_a_class_of_the_program_is_known_by_its_name\.<locals>\.Local"):
        trip(Local(0.5), Result)
    with pytest.raises(Refused, match=r"cloudpickle"):
        trip(lambda: 1, Local)


def test_a_listed_class_is_not_called() -> None:
    """What says that it is made by a call, with arguments of a node's choice, is refused."""
    with pytest.raises(Refused, match=r"a call of .*Reducing"):
        trip(Reducing(1), Reducing)
    assert [] == ran


def test_a_state_is_taken_by_a_listed_class_alone() -> None:
    """Not by a base class that is not listed."""
    stateful = Stateful()
    stateful.value = 1  # type: ignore[attr-defined]
    assert 1 == trip(stateful, Stateful).value
    assert ["Stateful"] == ran
    heir = Heir()
    heir.value = 1  # type: ignore[attr-defined]
    with pytest.raises(Refused, match=rf"a state of Heir, set by {__name__}\.Stateful"):
        trip(heir, Heir)
    assert [] == ran
    assert 1 == trip(heir, Heir, Stateful).value


def test_an_error_of_the_users_is_made_without_its_constructor() -> None:
    """With its arguments and attributes."""
    found = trip(Wrong(3, path="a"), Wrong)
    assert (Wrong, ("a: 3",), 3) == (type(found), found.args, found.code)
    assert [] == ran


@pytest.mark.parametrize("error", [Wrong(3, path="a"), KeyError("gone"), sky.TaskError("gone")], ids=type)
def test_notes_of_an_error_come_beside_it(error: Exception) -> None:
    """It is none the less opened."""
    error.add_note("mine")
    found = load_failure(dump_failure(error, data=True), note="ours", trust=Data(Wrong))
    assert type(error) is type(found)
    assert ["mine", "ours"] == found.__notes__


class Missing(ImportError):
    """An error of the user's that extends one that imports when it is printed."""


HERE = __name__


def test_a_listed_import_error_names_no_module_to_look_into() -> None:
    """Its printing would import it."""
    if not hasattr(ImportError, "name_from"):
        pytest.skip("this Python looks into no module")
    state = plain({"name": "this", "name_from": "x"})
    error = open_data(whole(call(HERE, "Missing", "no"), state, BUILD), DataNames([Missing]))
    assert ("this", None) == (error.name, error.name_from)


def test_a_value_of_an_enumeration_is_quick_to_look_up() -> None:
    """Members are found by hash."""
    with pytest.raises(ValueError, match="not well formed"):
        open_data(whole(name(HERE, "Colour"), doubled(60), b"\x85R"), DataNames([Colour]))


@pytest.mark.parametrize(
    "state",
    [
        plain({"__class__": 1}),
        plain({"__dict__": {}}),
        plain({1: 2}),
        plain([1]),
        plain(3),
        NONE + plain({"__init__": 1}) + b"\x86",
        NONE + plain({"nothing": 1}) + b"\x86",
    ],
)
def test_a_state_sets_no_more_than_attributes(state: bytes) -> None:
    """Of the object itself: neither its class nor anything that Python keeps under a name of its own."""
    names = DataNames([Plain, Slots])
    with pytest.raises(ValueError, match="not well formed"):
        open_data(whole(name(HERE, "Slots"), EMPTY, NEWOBJ, state, BUILD), names)
    if b"nothing" not in state:
        with pytest.raises(ValueError, match="not well formed"):
            open_data(whole(name(HERE, "Plain"), EMPTY, NEWOBJ, state, BUILD), names)


def test_a_listed_class_itself_is_given_no_state() -> None:
    """Nor called, nor changed."""
    names = DataNames([Plain])
    for data in (
        whole(name(HERE, "Plain"), NONE, plain({"value": 1}), b"\x86", BUILD),
        whole(call(HERE, "Plain", 1)),
        whole(name(HERE, "Plain.__init__")),
    ):
        with pytest.raises(Refused):
            open_data(data, names)
    assert not hasattr(Plain, "value")


def test_an_object_with_a_bomb_in_it_is_no_key() -> None:
    """A hash of a frozen value is that of all that it holds."""
    names = DataNames([Frozen])
    bomb = name(HERE, "Frozen") + EMPTY + NEWOBJ + b"]" + doubled(60) + b"a" + plain("x") + b"a" + BUILD
    with pytest.raises(Refused, match="a key of a dict"):
        open_data(whole(b"}", bomb, NONE, b"s"), names)


def test_a_listed_name_takes_the_place_of_none_that_is_known() -> None:
    """A class cannot be listed for another's name."""
    impostor = type("KeyError", (Exception,), {"__module__": "builtins"})
    assert KeyError is DataNames([impostor]).find("builtins", "KeyError")
    assert pickle.loads is not DataNames([impostor]).maker(KeyError)
