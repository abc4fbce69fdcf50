"""The orders that a pickle consists of, each as a step of the machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from skyward.link.data.maker import malformed
from skyward.link.data.pickle_machine import PickleMachine

__all__ = ["ORDERS"]


def _proto(machine: PickleMachine) -> None:
    if machine.number(1) > 5:
        malformed("a protocol over 5")


def _frame(machine: PickleMachine) -> None:
    machine.take(8)


def _constant(value: Any) -> Callable[[PickleMachine], None]:
    return lambda machine: machine.stack.append(value)


def _long(size: int) -> Callable[[PickleMachine], None]:
    def order(machine: PickleMachine) -> None:
        machine.stack.append(int.from_bytes(machine.take(machine.number(size)), "little", signed=True))

    return order


def _bytes(size: int) -> Callable[[PickleMachine], None]:
    return lambda machine: machine.stack.append(bytes(machine.take(machine.number(size))))


def _bytearray(machine: PickleMachine) -> None:
    machine.stack.append(bytearray(machine.take(machine.number(8))))


def _text(size: int) -> Callable[[PickleMachine], None]:
    return lambda machine: machine.stack.append(machine.text(size))


def _mark(machine: PickleMachine) -> None:
    machine.below.append(machine.stack)
    machine.stack = []


def _tuple(size: int) -> Callable[[PickleMachine], None]:
    def order(machine: PickleMachine) -> None:
        if len(machine.stack) < size:
            malformed("too little for a tuple")
        parts = machine.stack[-size:]
        del machine.stack[-size:]
        machine.tuple_of(parts)

    return order


def _set_item(machine: PickleMachine) -> None:
    items = machine.stack[-2:]
    del machine.stack[-2:]
    machine.set_items(items)


def _add_members(machine: PickleMachine) -> None:
    members = machine.pop_mark()
    target = machine.stack[-1]
    if not isinstance(target, set):
        malformed(f"members of a {type(target).__name__}")
    for member in members:
        set.add(target, machine.key(member))


def _frozen_set(machine: PickleMachine) -> None:
    members = machine.pop_mark()
    machine.stack.append(frozenset(map(machine.key, members)))


def _pop(machine: PickleMachine) -> None:
    if machine.stack:
        machine.stack.pop()
    else:
        machine.pop_mark()


def _get(machine: PickleMachine) -> None:
    machine.stack.append(machine.memo[machine.number(4)])


def _put(size: int) -> Callable[[PickleMachine], None]:
    return lambda machine: machine.remember(machine.number(size))


def _global(machine: PickleMachine) -> None:
    name, module = machine.stack.pop(), machine.stack.pop()
    if type(name) is not str or type(module) is not str:
        malformed("a name that is no text")
    machine.stack.append(machine.names.find(module, name))


def _make_with(machine: PickleMachine) -> None:
    kwargs, args = machine.stack.pop(), machine.stack.pop()
    machine.make(args, kwargs)


def _chained(machine: PickleMachine) -> None:
    place = machine.stack.pop()
    if machine.chained is None or type(place) is not int:
        malformed("it refers to something outside it")
    machine.stack.append(machine.chained(place))


def _next_buffer(machine: PickleMachine) -> None:
    machine.stack.append(next(machine.buffers))


def _read_only(machine: PickleMachine) -> None:
    machine.stack[-1] = memoryview(machine.stack[-1]).toreadonly()


def _unknown(machine: PickleMachine) -> None:
    order = machine.data[machine.at - 1]
    malformed(f"an order {bytes([order])!r} that it has no use for")


_KNOWN: Final[dict[bytes, Callable[[PickleMachine], None]]] = {
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
ORDERS: Final = [_KNOWN.get(bytes([order]), _unknown) for order in range(256)]
"""What each byte orders."""
