import concurrent.futures
import functools
import socket
import sqlite3
import threading
from collections import deque, namedtuple
from time import monotonic

import attrs
import pytest

from skyward.errors import SerializationError
from skyward.link import blame as blaming
from skyward.link.blame import blame
from skyward.link.payload_making import dump

LOCK = threading.Lock()


@pytest.fixture(autouse=True)
def _time_enough(request, monkeypatch):
    """What is found does not depend on how busy the machine is; where the limit is the subject, it holds."""
    if request.cls is not TestBounds:
        monkeypatch.setattr(blaming, "_SECONDS", 30.0)


class Layer:
    def __init__(self, handle=None):
        self._handle = handle


class Model:
    def __init__(self, layers):
        self.layers = layers


class Slotted:
    __slots__ = ("__private", "value")

    def __init__(self, value, private=None):
        self.value = value
        self.__private = private


@attrs.define
class Wish:
    handle: object


class Stateful:
    def __init__(self, parts):
        self.hidden = lambda: 0
        self._parts = parts

    def __getstate__(self):
        return {"parts": list(self._parts)}


class Fresh:
    def __getstate__(self):
        return {"made": threading.Lock()}


class Raising:
    def __reduce__(self):
        raise RuntimeError("not today")


class Iterating:
    def __reduce__(self):
        def items():
            yield 1
            raise RuntimeError("half way")

        return (list, (), None, items())


Pair = namedtuple("Pair", "left right")  # noqa: PYI024


def blamed(target=None, **arguments):
    """
    Blame what pickling the call raises.
    """
    with pytest.raises(Exception) as raised:  # noqa: PT011
        dump((target, arguments))
    error = blame(raised.value, function="train", arguments=arguments, target=target)
    assert isinstance(error, SerializationError)
    assert error.__cause__ is raised.value
    return error


def script(source, name="train", **space):
    space["__name__"] = "__main__"
    exec(source, space)
    return space[name]


class TestPath:
    @pytest.mark.parametrize(
        ("value", "path"),
        [
            (LOCK, "data"),
            ({"lock": LOCK}, 'data["lock"]'),
            ({3: [0, (LOCK,)]}, "data[3][1][0]"),
            ({("a", LOCK): 1}, "list(data)[0][1]"),
            (Model([Layer(), Layer(LOCK)]), "data.layers[1]._handle"),
            (Slotted(LOCK), "data.value"),
            (Slotted(1, LOCK), "data.__private"),
            (Wish(LOCK), "data.handle"),
            (Stateful([1, LOCK]), "data._parts[1]"),
            (deque([LOCK]), "data[0]"),
            (Pair(1, LOCK), "data.right"),
            ({LOCK}, "list(data)[0]"),
            (functools.partial(print, 1, end=LOCK), 'data.keywords["end"]'),
            (Model([LOCK]).layers.append, "data"),
            (Layer(LOCK).__init__, "data.__self__._handle"),
        ],
    )
    def test_it_is_written_as_python_would(self, value, path):
        """
        The message and the attribute `path` lead from the argument to the object to blame.
        """
        error = blamed(first=1, data=value)
        assert error.argument == "data"
        assert path == error.path
        assert "Argument `data` of `train` cannot be sent to a node" in str(error)

    def test_shortest_way_is_told(self):
        """
        Where an object is reached in two ways, cycles included, the shorter one is named.
        """
        model = Model([Layer()])
        model.layers[0].parent = model
        model.lock = LOCK
        assert blamed(model=model).path == "model.lock"

    def test_state_that_is_no_attribute(self):
        """
        What an object hands to pickle without having it as an attribute is named as somewhere in the argument.
        """
        error = blamed(data=[Fresh()])
        assert "Argument `data` of `train` cannot be sent to a node: somewhere in it is a _thread.lock" in str(error)

    def test_closure_of_an_argument(self):
        """
        A function passed as an argument is looked into.
        """
        lock = LOCK

        def callback():
            return lock

        error = blamed(callback=callback)
        assert error.argument == "callback"
        assert "the variable `lock` that `callback` closes over is a _thread.lock" in str(error)

    def test_class_of_a_script(self):
        """
        Attributes of a class that travels by value are named on the class.
        """
        cls = script("class train:\n    guard = LOCK", LOCK=LOCK)
        assert blamed(data=cls()).path == "train.guard"

    def test_arrays_of_objects(self):
        """
        An element of an array is named by its place.
        """
        numpy = pytest.importorskip("numpy")
        error = blamed(data=[numpy.array([[1, LOCK]])])
        assert error.path == "data[0].flat[1]"
        assert "_thread.lock" in str(error)


class TestFunction:
    def test_global(self):
        """
        A global of the function is named as one.
        """
        fn = script("def train(x): return cfg['lock']", cfg={"lock": LOCK})
        error = blamed(target=fn, x=1)
        assert error.argument == "cfg"
        assert error.path == 'cfg["lock"]'
        assert '`cfg["lock"]` is a _thread.lock, and `cfg` is a variable that `train` uses as a global' in str(error)

    def test_global_of_a_function_it_calls(self):
        """
        The function that uses the variable is named, which need not be the one that was called.
        """
        fn = script("def prepare(): return lock\ndef train(x): return prepare()", lock=LOCK)
        assert "the variable `lock` that `prepare` uses as a global" in str(blamed(target=fn, x=1))

    def test_closure(self):
        """
        A variable that the function closes over is named as one.
        """
        fn = script("def make(lock):\n    def train(): return lock\n    return train\ntrain = make(LOCK)", LOCK=LOCK)
        assert "`train` cannot be sent to a node: the variable `lock` that `train` closes over" in str(blamed(fn))

    def test_default(self):
        """
        A default that cannot be sent is named by its parameter.
        """
        fn = script("def train(a, lock=LOCK): return a", LOCK=LOCK)
        assert "the variable `lock` that `train` has a default for" in str(blamed(fn))


class TestWords:
    @pytest.mark.parametrize(
        ("mode", "kind"), [("w", "TextIOWrapper"), ("r", "TextIOWrapper"), ("rb", "BufferedReader")]
    )
    def test_open_file(self, tmp_path, mode, kind):
        """
        A file is named, with the advice to pass its path; one that is open for reading does not travel either.
        """
        (tmp_path / "x.txt").write_text("what a node could not read")
        with (tmp_path / "x.txt").open(mode) as file:
            error = blamed(out=file)
        assert f"_io.{kind} (open file {str(tmp_path / 'x.txt')!r})" in str(error)
        assert error.hint == "Pass the path and open the file inside the function."

    @pytest.mark.parametrize(
        ("make", "kind", "advice"),
        [
            (lambda: (n for n in ()), "generator", "Iterator"),
            (lambda: sqlite3.connect(":memory:"), r"sqlite3\.Connection", "open it inside"),
            (socket.socket, r"socket\.socket", "open the connection inside"),
            (
                threading.RLock,
                r"_thread\.RLock",
                "Create it inside the function; it holds among the calls of one process",
            ),
            (threading.local, r"_thread\._local", "Create it inside"),
        ],
    )
    def test_type_and_advice(self, make, kind, advice):
        """
        The message names the type and says what to do instead.
        """
        value = make()
        with pytest.raises(SerializationError, match=f"it is a {kind}.*{advice}"):
            raise blamed(data=value)
        getattr(value, "close", int)()

    def test_pool_of_threads(self):
        """
        Inside an object of the library the way to the culprit is named all the same.
        """
        with concurrent.futures.ThreadPoolExecutor(1) as threads:
            assert blamed(data=threads).path.startswith("data._")

    def test_reason_of_the_users_own_code(self):
        """
        What a `__reduce__` raised is part of the message.
        """
        with pytest.raises(SerializationError, match=r"`data\[0\]` is a .*Raising \(RuntimeError: not today\)"):
            raise blamed(data=[Raising()])

    def test_failure_after_the_last_part(self):
        """
        An object that fails after its last part went well is blamed itself, not the part.
        """
        with pytest.raises(SerializationError, match=r"`data\[0\]` is a .*Iterating|it is a list.*half way"):
            raise blamed(data=[Iterating()])

    def test_nested_too_deeply(self):
        """
        A value too deep for pickle is called that.
        """
        deep = []
        for _ in range(100_000):
            deep = [deep]
        with pytest.raises(SerializationError, match=r"Argument `data` .* nested too deeply"):
            raise blamed(data=deep)

    def test_nothing_to_blame(self):
        """
        Where all goes well the second time, the original error is what is said.
        """
        error = blame(RuntimeError("dictionary changed size"), function="train", arguments={"a": 1})
        with pytest.raises(SerializationError, match=r"call of `train` .* RuntimeError: dictionary changed size"):
            raise error
        assert error.argument is None


class TestBounds:
    @pytest.mark.slow
    def test_time(self):
        """
        The search ends after about a second, whatever the arguments are.
        """
        value = [[number] for number in range(1_500_000)]
        start = monotonic()
        blame(TypeError("x"), function="train", arguments={"data": [value, LOCK]})
        assert monotonic() - start < 10

    def test_many_objects(self):
        """
        Past ten thousand objects the argument and the type are still told.
        """
        value = [[number] for number in range(20_000)]
        with pytest.raises(SerializationError, match=r"Argument `data` .* (somewhere in it|`data\[20000\]`)"):
            raise blamed(data=[*value, [LOCK]])
