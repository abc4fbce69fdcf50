"""
Open an untrusted pickle as data: it yields values, and no callable that it names is run.

Pickle is a program for a machine with a stack.
This is that machine, with three of its orders changed: a name is looked up among those that are allowed, and what is
called, rebuilt or given a state is done by that name's `Maker`.
So no `__reduce__`, no `__setstate__` and no function of the sender's choice is run, and no attribute is looked up.

What does no harm by running does some by being large: numbers in the bytes reserve no memory, and keys of dicts that
take long to hash are refused.
"""

from __future__ import annotations

import re
import struct
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any, Final, Protocol

from skyward.link.data.maker import NOTHING, Callee, Maker, Refused, malformed

__all__ = ["Names", "open_data"]

_KEY_WEIGHT: Final = 1000
_LIGHT_WEIGHT: Final = 8
_WORTH_A_COPY: Final = 1 << 20
_BY_CALLEE: Final = (type, Callee)
_SCALARS: Final = frozenset({int, str, float, bool, type(None), bytes})


class Names(Protocol):
    """Say which names a pickle may hold, and what may be done with them."""

    def find(self, module: str, name: str) -> Any:
        """Return what stands for a name, or raise `Refused`."""

    def maker(self, found: Any) -> Maker | None:
        """Return what may be done with a class or a callee."""


def open_data(
    stream: bytes | bytearray | memoryview,
    names: Names,
    *,
    buffers: Iterable[memoryview | bytearray] = (),
    chained: Callable[[int], Any] | None = None,
) -> Any:
    """
    Return what a pickle holds.

    Args:
        stream: The pickle.
        names: What it may name.
        buffers: Its out-of-band buffers, in order; they are not copied.
        chained: Returns what is meant by the number of something outside the pickle.

    Raises:
        Refused: If it names something else, or would do something else with it.
        ValueError: If it is no pickle that Python's own pickler writes.
    """
    data = bytes(stream) if len(stream) <= _WORTH_A_COPY else memoryview(stream)
    try:
        return _Machine(data, names, iter(buffers), chained).run()
    except (Refused, ValueError, MemoryError):
        raise
    except Exception as error:  # broad: a malformed pickle raises many kinds, such as IndexError and TypeError
        malformed(f"{type(error).__name__}: {error}")


class _Machine:
    """
    Run one pickle.

    Args:
        data: Its bytes.
        names: What it may name.
        buffers: Its out-of-band buffers.
        chained: Returns what is outside it.
    """

    def __init__(
        self,
        data: bytes | memoryview,
        names: Names,
        buffers: Iterator[memoryview | bytearray],
        chained: Callable[[int], Any] | None,
    ) -> None:
        self.data = data
        self.at = 0
        self.names = names
        self.buffers = buffers
        self.chained = chained
        self.stack: list[Any] = []
        self.below: list[list[Any]] = []
        self.memo: dict[int, Any] = {}
        self.weights: dict[int, int] = {}
        self.kept: list[Any] = []

    def run(self) -> Any:
        """Run it to its end, and return what is on top of the stack."""
        data, memo, orders, stack, at = self.data, self.memo, _ORDERS, self.stack, 0
        while True:
            order = data[at]
            # What there is most of is done here, because a call takes longer than it does.
            if order == _MEMOIZE:
                memo[len(memo)] = stack[-1]
                at += 1
            elif order == _SHORT_TEXT:
                end = at + 2 + data[at + 1]
                if end > len(data):
                    malformed("it is cut off")
                stack.append(str(data[at + 2 : end], "utf-8", "surrogatepass"))
                at = end
            elif order == _GET:
                stack.append(memo[data[at + 1]])
                at += 2
            elif order in _NUMBERS:
                at = self.numbers(order, at)
            elif order == _STOP:
                return stack.pop()
            else:
                self.at = at + 1
                orders[order](self)
                at, stack = self.at, self.stack

    def numbers(self, order: int, at: int) -> int:
        """Read all numbers of one kind that follow each other; return where they end."""
        numbers, width = _NUMBERS[order]
        data, end = self.data, at + width
        # A list of them is cut out and unpacked together.
        if end < len(data) and data[end] == order and (run := _RUNS[order].match(data, at)):
            end = run.end()
        if end > len(data):
            malformed("it is cut off")
        self.stack.extend(chain.from_iterable(numbers.iter_unpack(data[at:end])))
        return end

    # Bytes.

    def take(self, size: int) -> bytes | memoryview:
        """Cut the next bytes."""
        at = self.at
        if size > len(self.data) - at:
            malformed("it is cut off")
        self.at = at + size
        return self.data[at : at + size]

    def number(self, size: int) -> int:
        """Read a length or an index."""
        return int.from_bytes(self.take(size), "little")

    def text(self, size: int) -> str:
        """Read text of a length that is given in so many bytes."""
        return str(self.take(self.number(size)), "utf-8", "surrogatepass")

    # The stack.

    def pop_mark(self) -> list[Any]:
        """Take what lies above the last mark."""
        above, self.stack = self.stack, self.below.pop()
        return above

    def remember(self, index: int) -> None:
        """Keep what is on top of the stack under a number."""
        self.memo[index] = self.stack[-1]

    def tuple_of(self, parts: Iterable[Any]) -> None:
        """Push a tuple onto the stack."""
        made = tuple(parts)
        self.weigh(made, made)
        self.stack.append(made)

    def weigh(self, made: Any, parts: Iterable[Any]) -> None:
        """Record how many parts an object has in all, each counted as often as it is there: so long takes its hash."""
        weights = self.weights
        weight = weights.get(id(made), 0) + 1
        for part in parts:
            # What is not known weighs little, but not nothing: of many such comes much.
            weight += 1 if type(part) in _SCALARS else weights.get(id(part), _LIGHT_WEIGHT)
        if weight > _LIGHT_WEIGHT:
            weights[id(made)] = weight
            # What is known by its identity has to stay alive.
            self.kept.append(made)

    def key(self, key: Any) -> Any:
        """Return a key of a dict or member of a set that is quick to hash and to compare."""
        if self.weights.get(id(key), 0) > _KEY_WEIGHT:
            raise Refused(f"a key of a dict or set that has more than {_KEY_WEIGHT:,} parts")
        return key

    def set_items(self, items: list[Any]) -> None:
        """Add pairs to the dict on top of the stack."""
        target = self.stack[-1]
        if len(items) % 2:
            malformed("a key without a value")
        set_item = dict.__setitem__ if type(target) is dict else _setter(target)
        for at in range(0, len(items), 2):
            key = items[at]
            set_item(target, key if type(key) in _SCALARS else self.key(key), items[at + 1])

    def add_items(self, items: list[Any]) -> None:
        """Add items to the list on top of the stack."""
        target = self.stack[-1]
        if isinstance(target, list):
            list.extend(target, items)
        elif isinstance(target, deque):
            deque.extend(target, items)
        else:
            malformed(f"items of a {type(target).__name__}")

    # Names.

    def maker(self, found: Any) -> Maker:
        """Return what may be done with something that is to be called."""
        if not isinstance(found, _BY_CALLEE):
            malformed(f"a call of a {type(found).__name__}")
        return self.names.maker(found) or NOTHING

    def call(self, args: Any) -> None:
        """Call what is on top of the stack."""
        found = self.stack[-1]
        make = self.maker(found).call
        if make is None:
            raise Refused(f"a call of {_called(found)}")
        if type(args) is not tuple:
            malformed("arguments that are no tuple")
        self.stack[-1] = make(*args)

    def make(self, args: Any, kwargs: Any) -> None:
        """Make an object of the class on top of the stack."""
        found = self.stack[-1]
        make = self.maker(found).new
        if make is None:
            raise Refused(f"an object of {_called(found)}")
        if type(args) is not tuple or type(kwargs) is not dict:
            malformed("arguments that are no tuple")
        made = self.stack[-1] = make(args, kwargs)
        self.weigh(made, args)

    def build(self, state: Any) -> None:
        """Set the state of the object on top of the stack."""
        made = self.stack[-1]
        kind = type(made)
        set_state = (self.names.maker(kind) or NOTHING).state
        if set_state is None:
            raise Refused(f"a state of {_called(kind)}")
        other = set_state(made, state)
        for values in state if type(state) is tuple else (state,):
            self.weigh(
                other, values.values() if type(values) is dict else values if type(values) is list else (values,)
            )
        if other is not made:
            self.stack[-1] = other
            # It was remembered before it had its state, lately.
            for index in reversed(self.memo):
                if self.memo[index] is made:
                    self.memo[index] = other
                    break


def _called(found: Any) -> str:
    return f"{found.__module__}.{found.__qualname__}" if isinstance(found, type) else repr(found)


def _setter(target: Any) -> Callable[[Any, Any, Any], None]:
    """Find how a dict's own class sets an item, whatever its subclass does."""
    kinds = (kind for kind in type(target).__mro__ if kind.__module__ in ("builtins", "collections"))
    kind: Any = next((kind for kind in kinds if issubclass(kind, dict)), None)
    setter: Callable[[Any, Any, Any], None] = malformed("items of no dict") if kind is None else kind.__setitem__
    return setter


# Orders -------------------------------------------------------------------------------------------------------------

_STOP: Final = ord(".")
_MEMOIZE: Final = 0x94
_SHORT_TEXT: Final = 0x8C
_GET: Final = ord("h")
# How a number is read with its order before it, and how long both are.
_NUMBERS: Final = {
    ord(order): (struct.Struct(form), struct.calcsize(form))
    for order, form in (("K", "<xB"), ("M", "<xH"), ("J", "<xi"), ("G", ">xd"))
}
_RUNS: Final = {
    order: re.compile(b"(?:" + re.escape(bytes([order])) + b".{%d})+" % (width - 1), re.DOTALL)
    for order, (_, width) in _NUMBERS.items()
}


def _proto(machine: _Machine) -> None:
    if machine.number(1) > 5:
        malformed("a protocol over 5")


def _frame(machine: _Machine) -> None:
    machine.take(8)


def _constant(value: Any) -> Callable[[_Machine], None]:
    return lambda machine: machine.stack.append(value)


def _long(size: int) -> Callable[[_Machine], None]:
    def order(machine: _Machine) -> None:
        machine.stack.append(int.from_bytes(machine.take(machine.number(size)), "little", signed=True))

    return order


def _bytes(size: int) -> Callable[[_Machine], None]:
    return lambda machine: machine.stack.append(bytes(machine.take(machine.number(size))))


def _bytearray(machine: _Machine) -> None:
    machine.stack.append(bytearray(machine.take(machine.number(8))))


def _text(size: int) -> Callable[[_Machine], None]:
    return lambda machine: machine.stack.append(machine.text(size))


def _mark(machine: _Machine) -> None:
    machine.below.append(machine.stack)
    machine.stack = []


def _tuple(size: int) -> Callable[[_Machine], None]:
    def order(machine: _Machine) -> None:
        if len(machine.stack) < size:
            malformed("too little for a tuple")
        parts = machine.stack[-size:]
        del machine.stack[-size:]
        machine.tuple_of(parts)

    return order


def _set_item(machine: _Machine) -> None:
    items = machine.stack[-2:]
    del machine.stack[-2:]
    machine.set_items(items)


def _add_members(machine: _Machine) -> None:
    members = machine.pop_mark()
    target = machine.stack[-1]
    if not isinstance(target, set):
        malformed(f"members of a {type(target).__name__}")
    for member in members:
        set.add(target, machine.key(member))


def _frozen_set(machine: _Machine) -> None:
    members = machine.pop_mark()
    machine.stack.append(frozenset(map(machine.key, members)))


def _pop(machine: _Machine) -> None:
    if machine.stack:
        machine.stack.pop()
    else:
        machine.pop_mark()


def _get(machine: _Machine) -> None:
    machine.stack.append(machine.memo[machine.number(4)])


def _put(size: int) -> Callable[[_Machine], None]:
    return lambda machine: machine.remember(machine.number(size))


def _global(machine: _Machine) -> None:
    name, module = machine.stack.pop(), machine.stack.pop()
    if type(name) is not str or type(module) is not str:
        malformed("a name that is no text")
    machine.stack.append(machine.names.find(module, name))


def _make_with(machine: _Machine) -> None:
    kwargs, args = machine.stack.pop(), machine.stack.pop()
    machine.make(args, kwargs)


def _chained(machine: _Machine) -> None:
    place = machine.stack.pop()
    if machine.chained is None or type(place) is not int:
        malformed("it refers to something outside it")
    machine.stack.append(machine.chained(place))


def _next_buffer(machine: _Machine) -> None:
    machine.stack.append(next(machine.buffers))


def _read_only(machine: _Machine) -> None:
    machine.stack[-1] = memoryview(machine.stack[-1]).toreadonly()


def _unknown(machine: _Machine) -> None:
    order = machine.data[machine.at - 1]
    malformed(f"an order {bytes([order])!r} that it has no use for")


_KNOWN: Final[dict[bytes, Callable[[_Machine], None]]] = {
    b"\x80": _proto,
    b"\x95": _frame,
    b"N": _constant(None),
    b"\x88": _constant(True),
    b"\x89": _constant(False),
    b"\x8a": _long(1),
    b"\x8b": _long(4),
    b"C": _bytes(1),
    b"B": _bytes(4),
    b"\x8e": _bytes(8),
    b"\x96": _bytearray,
    b"X": _text(4),
    b"\x8d": _text(8),
    b"]": lambda machine: machine.stack.append([]),
    b"}": lambda machine: machine.stack.append({}),
    b"\x8f": lambda machine: machine.stack.append(set()),
    b")": lambda machine: machine.stack.append(()),
    b"(": _mark,
    b"t": lambda machine: machine.tuple_of(machine.pop_mark()),
    b"\x85": _tuple(1),
    b"\x86": _tuple(2),
    b"\x87": _tuple(3),
    b"a": lambda machine: machine.add_items([machine.stack.pop()]),
    b"e": lambda machine: machine.add_items(machine.pop_mark()),
    b"s": _set_item,
    b"u": lambda machine: machine.set_items(machine.pop_mark()),
    b"\x90": _add_members,
    b"\x91": _frozen_set,
    b"0": _pop,
    b"1": lambda machine: machine.pop_mark().clear(),
    b"j": _get,
    b"q": _put(1),
    b"r": _put(4),
    b"\x93": _global,
    b"R": lambda machine: machine.call(machine.stack.pop()),
    b"\x81": lambda machine: machine.make(machine.stack.pop(), {}),
    b"\x92": _make_with,
    b"b": lambda machine: machine.build(machine.stack.pop()),
    b"Q": _chained,
    b"\x97": _next_buffer,
    b"\x98": _read_only,
}
_ORDERS: Final = [_KNOWN.get(bytes([order]), _unknown) for order in range(256)]
