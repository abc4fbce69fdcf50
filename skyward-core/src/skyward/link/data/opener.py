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
from collections.abc import Callable, Iterable
from itertools import chain
from typing import Any, Final

from skyward.link.data.maker import Refused, malformed
from skyward.link.data.pickle_machine import Names, PickleMachine
from skyward.link.data.pickle_orders import ORDERS

__all__ = ["Names", "open_data"]

_WORTH_A_COPY: Final = 1 << 20
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
        return _run(PickleMachine(data, names, iter(buffers), chained))
    except (Refused, ValueError, MemoryError):
        raise
    except Exception as error:  # broad: a malformed pickle raises many kinds, such as IndexError and TypeError
        malformed(f"{type(error).__name__}: {error}")


def _run(machine: PickleMachine) -> Any:
    """Run it to its end, and return what is on top of the stack."""
    data, memo, orders, stack, at = machine.data, machine.memo, ORDERS, machine.stack, 0
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
            at = _numbers(machine, order, at)
        elif order == _STOP:
            return stack.pop()
        else:
            machine.at = at + 1
            orders[order](machine)
            at, stack = machine.at, machine.stack


def _numbers(machine: PickleMachine, order: int, at: int) -> int:
    """Read all numbers of one kind that follow each other; return where they end."""
    numbers, width = _NUMBERS[order]
    data, end = machine.data, at + width
    # A list of them is cut out and unpacked together.
    if end < len(data) and data[end] == order and (run := _RUNS[order].match(data, at)):
        end = run.end()
    if end > len(data):
        malformed("it is cut off")
    machine.stack.extend(chain.from_iterable(numbers.iter_unpack(data[at:end])))
    return end
