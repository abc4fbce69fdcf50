"""The machine that runs a pickle as data: its stack and memo, and what may be done with what is named."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, Protocol

from skyward.link.data.maker import NOTHING, Callee, Maker, Refused, malformed

__all__ = ["Names", "PickleMachine"]

_KEY_WEIGHT: Final = 1000
_LIGHT_WEIGHT: Final = 8
_BY_CALLEE: Final = (type, Callee)
_SCALARS: Final = frozenset({int, str, float, bool, type(None), bytes})


class Names(Protocol):
    """Say which names a pickle may hold, and what may be done with them."""

    def find(self, module: str, name: str) -> Any:
        """Return what stands for a name, or raise `Refused`."""

    def maker(self, found: Any) -> Maker | None:
        """Return what may be done with a class or a callee."""


class PickleMachine:
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
