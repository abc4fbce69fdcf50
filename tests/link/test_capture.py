import collections
import concurrent
import datetime as dt
import decimal
import enum
import functools
import json
import logging
import re
import sys
import timeit
import types
import typing
from dataclasses import dataclass
from pathlib import Path

import attrs
import cloudpickle
import numpy as np
import pytest

from skyward.link.capture import by_reference, captured_names, snapshot


class Colour(enum.Enum):
    RED = 1


@dataclass(frozen=True)
class Setting:
    rate: float
    extra: object = None


@attrs.frozen
class Wish:
    name: object


@dataclass
class Open:
    rate: float


Pair = collections.namedtuple("Pair", "a b")  # noqa: PYI024


def importable():
    return 1


def defined(source, name="f", **space):
    """
    Define a function as a script does, in a namespace of its own.
    """
    space["__name__"] = "__main__"
    exec(source, space)
    return space[name], space


def uses(value):
    fn, _ = defined("def f(): return V", V=value)
    return snapshot(fn)


class TestWhatIsCaptured:
    @pytest.mark.parametrize(
        "value",
        [
            None, True, 3, 2.5, 1j, "text", b"bytes", range(3), ..., NotImplemented, slice(1, 2),
            (1, ("a", frozenset({2}))), Pair(1, 2), Colour.RED, Setting(0.1), Setting(0.1, (1, 2)), Wish("x"),
            json, concurrent, len, str.upper, dt.datetime.now, json.dumps, Setting, int, type(None),
            list[int], int | None, typing.Optional[int], typing.Callable[[int], str], typing.TypeVar("T"),  # noqa: UP045
            re.compile("x"), Path("data"), decimal.Decimal(1), dt.date(2024, 1, 1),
            dt.datetime(2024, 1, 1, tzinfo=dt.UTC), logging.getLogger("x"), np.sqrt,
        ],
    )  # fmt: skip
    def test_settled_values_have_a_snapshot(self, value):
        """
        Values that cannot change in place are compared by identity.
        """
        taken = uses(value)
        assert taken is not None
        assert taken.still_true()

    @pytest.mark.parametrize(
        "value",
        [
            [], {}, set(), bytearray(), (1, []), Open(1.0), Setting(1.0, []), Wish({}), object(), np.zeros(2),
            [].append, types.ModuleType("made"), functools.partial(int), collections.Counter(), iter(()),
            type("Local", (), {}),
        ],
        ids=lambda value: type(value).__name__,
    )  # fmt: skip
    def test_open_values_have_none(self, value):
        """
        A function that captures something that can change in place is pickled at every dispatch.
        """
        assert uses(value) is None

    def test_mutable_closure_and_defaults_have_none(self):
        """
        Closure, defaults, keyword defaults and attributes count as globals do.
        """
        seen = []

        def closes():
            return seen

        def default(x=seen):
            return x

        def keyword(*, x=seen):
            return x

        def attribute():
            return 1

        attribute.seen = seen
        assert [snapshot(fn) for fn in (closes, default, keyword, attribute)] == [None] * 4

    def test_class_in_an_annotation_of_a_script_has_none(self):
        """
        A class that travels by value inside an annotation is part of the pickle.
        """
        fn, _ = defined("class C: pass\ndef f(x: C): return x")
        assert snapshot(fn) is None

    def test_registered_modules_travel_by_value(self):
        """
        A module that the user registered with cloudpickle is contents, not a name.
        """
        module = types.ModuleType("registered_here")
        exec("def g(): return 1", module.__dict__)
        sys.modules["registered_here"] = module
        try:
            assert not snapshot(module.g).functions
            cloudpickle.register_pickle_by_value(module)
            assert not by_reference(module.g)
            assert len(snapshot(module.g).functions) == 1
            assert uses(module) is None
            cloudpickle.unregister_pickle_by_value(module)
        finally:
            del sys.modules["registered_here"]

    def test_importable_function_holds_always(self):
        """
        A function that travels by reference captures nothing.
        """
        taken = snapshot(importable)
        assert taken.still_true()
        assert taken.shareable
        assert not taken.lookups

    def test_names_are_those_that_cloudpickle_finds(self):
        """
        Global names of code and of the code inside it are found as cloudpickle finds them.
        """

        def outer():
            def inner():
                return [json.dumps(x) for x in range(len(sys.path))]

            return inner, Path, (lambda: decimal)

        expected = cloudpickle.cloudpickle._extract_code_globals(outer.__code__)
        assert set(captured_names(outer.__code__)) == set(expected)

    def test_evil_objects_have_none(self):
        """
        An object that answers every question with an error is no settled value.
        """

        class Evil:
            def __getattribute__(self, name):
                raise RuntimeError(name)

        assert uses(Evil()) is None


class TestStillTrue:
    def test_global_changed(self):
        """
        A global that is bound to something else ends the snapshot; bound back, it holds again.
        """
        fn, space = defined("def f(): return A + B", A=1, B=1000)
        taken, old = snapshot(fn), space["B"]
        space["B"] = int("1001")
        assert not taken.still_true()
        space["B"] = old
        assert taken.still_true()

    def test_missing_global_defined_later(self):
        """
        A name that was not defined is part of the snapshot, and so is a built-in name that gets shadowed.
        """
        fn, space = defined("def f(): return later(len)")
        taken = snapshot(fn)
        assert taken.still_true()
        space["later"] = 1
        assert not taken.still_true()
        taken = snapshot(fn)
        space["len"] = 2
        assert not taken.still_true()

    def test_global_deleted(self):
        """
        A name that is gone ends the snapshot.
        """
        fn, space = defined("def f(): return A", A=1)
        taken = snapshot(fn)
        del space["A"]
        assert not taken.still_true()

    def test_closure_changed(self):
        """
        `nonlocal` in another function is seen.
        """
        count = 1

        def read():
            return count

        def bump():
            nonlocal count
            count += 1

        taken = snapshot(read)
        assert taken.still_true()
        bump()
        assert not taken.still_true()

    def test_cell_filled_and_emptied(self):
        """
        A cell without content that gets some ends the snapshot, and the other way round.
        """

        def read():
            return value  # noqa: F821  # bound and unbound below

        taken = snapshot(read)
        assert taken.still_true()
        value = 1
        assert not taken.still_true()
        taken = snapshot(read)
        del value
        assert not taken.still_true()

    @pytest.mark.parametrize(
        "change",
        [
            lambda f: setattr(f, "__defaults__", (2,)),
            lambda f: setattr(f, "__kwdefaults__", {"y": 1}),
            lambda f: f.__kwdefaults__.update(y=2),
            lambda f: f.__kwdefaults__.update(z=2),
            lambda f: setattr(f, "__code__", (lambda x, *, y: x).__code__),
            lambda f: setattr(f, "mark", 1),
            lambda f: f.__annotations__.update(x=str),
        ],
    )
    def test_function_itself_changed(self, change):
        """
        Defaults, keyword defaults, code, attributes and annotations are part of the snapshot.
        """
        fn, _ = defined("def f(x: int = 1, *, y=1): return x")
        taken = snapshot(fn)
        assert taken.still_true()
        change(fn)
        assert not taken.still_true()

    def test_captured_functions_are_looked_into(self):
        """
        What a captured function captures counts, through recursion and mutual recursion too.
        """
        source = "def f(n): return g(n)\ndef g(n): return f(n - 1) if n else K"
        fn, space = defined(source, K=1)
        taken = snapshot(fn)
        assert taken.still_true()
        space["K"] = 2
        assert not taken.still_true()
        space["K"] = []
        assert snapshot(fn) is None

    def test_submodules_loaded_later(self):
        """
        A pickle names the loaded submodules of a captured package, so loading modules ends the snapshot.
        """
        taken = uses(json)
        sys.modules["made_for_this_test"] = types.ModuleType("made_for_this_test")
        try:
            assert not taken.still_true()
        finally:
            del sys.modules["made_for_this_test"]
        assert taken.still_true()

    def test_it_costs_next_to_nothing(self):
        """
        For a function with three globals the check takes a twentieth of what it saves, which is to pickle it.
        """
        fn, _ = defined("def f(x): return A + B + C", A=1, B="b", C=json)
        taken = snapshot(fn)
        check, save = (
            min(timeit.repeat(do, number=100, repeat=20))
            for do in (taken.still_true, functools.partial(cloudpickle.dumps, fn))
        )
        assert check * 20 <= save


def counter():
    count = 0

    def bump():
        nonlocal count
        count += 1
        return count

    def inside():
        def again():
            nonlocal count
            count += 1

        return again

    def own():
        total = 0

        def add():
            nonlocal total
            total += 1

        return add, count

    return bump, inside, own


class TestShareable:
    def test_pure_function_is(self):
        """
        A function that writes nothing outside of its call serves many calls.
        """
        fn, _ = defined("def f(x):\n    y = [x]\n    return [A + z for z in y]", A=1)
        assert snapshot(fn).shareable

    @pytest.mark.parametrize(
        "source",
        [
            "def f():\n    global A\n    A = 1",
            "def f():\n    global A\n    del A",
            "def f():\n    def g():\n        global A\n        A = 1\n    return g",
            "def g():\n    global A\n    A = 1\ndef f(): return g()",
            "def f():\n    globals()['A'] = 1",
            "def f():\n    exec('global A; A = 1')",
            "def f(): f.calls = 1",
            "def g(): pass\ndef f(): g.calls = 1",
            "def f(): pass\nf.mark = 1",
        ],
    )
    def test_function_that_leaves_traces_is_not(self, source):
        """
        A function that could find at its next call what it left at the last gets a fresh copy for each.
        """
        fn, _ = defined(source)
        assert snapshot(fn).shareable is False

    def test_nonlocal_counts_where_it_reaches_out_of_the_call(self):
        """
        `nonlocal` forbids sharing where the variable outlives the call, in nested functions too.
        """
        bump, inside, own = counter()
        assert [snapshot(fn).shareable for fn in (bump, inside, own)] == [False, False, True]

    def test_decorated_function_is(self):
        """
        The trace that `functools.wraps` leaves on a function is no state.
        """
        source = (
            "import functools\n"
            "def deco(fn):\n"
            "    @functools.wraps(fn)\n"
            "    def inner(*a): return fn(*a)\n"
            "    return inner\n"
            "@deco\n"
            "def f(x): return x\n"
        )
        fn, _ = defined(source)
        assert snapshot(fn).shareable


def test_a_cached_function_is_settled_as_what_it_caches():
    """
    What that captures may change.
    """
    fn, space = defined(
        "import functools\nrate = 1\n@functools.cache\ndef g():\n    return rate\ndef f():\n    return g()"
    )
    found = snapshot(fn)
    assert found is not None
    assert (found.shareable, found.still_true()) == (True, True)
    space["rate"] = 2
    assert not found.still_true()
    assert snapshot(defined("def f():\n    return g()", g=functools.cache(lambda seen=[]: seen))[0]) is None
