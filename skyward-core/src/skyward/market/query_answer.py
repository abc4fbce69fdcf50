"""
Answers that are waited for in either way: by `await`, or by just using them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator, Iterator
from typing import TYPE_CHECKING, Any

from skyward.engine.pool.event_loop import engine_loop
from skyward.errors import UsageError
from skyward.model.instances.offer import Offer

__all__ = ["QueryAnswer", "Counted", "Listed", "answer"]


class QueryAnswer:
    """
    Stand for what is being looked up, where an event loop runs.

    `await` gives it and lets the loop go on. Whatever else is done with it waits for it, and the loop with it: it
    reads, compares and prints as what it stands for. The looking up is done in a thread and a loop of Skyward's own.

    Args:
        ask: Looks it up.
    """

    __slots__ = ("_future",)

    def __init__(self, ask: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        self._future = asyncio.run_coroutine_threadsafe(ask(), engine_loop().loop)

    def __await__(self) -> Generator[Any, None, Any]:
        return asyncio.wrap_future(self._future).__await__()

    @property
    def _value(self) -> Any:
        if not self._future.done() and _running() is engine_loop().loop:
            raise UsageError("An answer of sky.offers is used before it is there.", hint="Write await in front of it.")
        return self._future.result()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._value, name)

    def __getitem__(self, index: Any) -> Any:
        return self._value[index]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._value)

    def __len__(self) -> int:
        return len(self._value)

    def __bool__(self) -> bool:
        return bool(self._value)

    def __index__(self) -> int:
        return int(self._value)

    def __eq__(self, other: object) -> bool:
        return bool(self._value == other)

    def __lt__(self, other: Any) -> bool:
        return bool(self._value < other)

    def __le__(self, other: Any) -> bool:
        return bool(self._value <= other)

    def __gt__(self, other: Any) -> bool:
        return bool(self._value > other)

    def __ge__(self, other: Any) -> bool:
        return bool(self._value >= other)

    # By identity: asyncio.gather and the like hash what they are given, and must not wait for it there.
    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return repr(self._value)


def answer(ask: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    """
    Return what is looked up; where an event loop runs, something to await that also stands for it.

    Args:
        ask: Looks it up, in the engine's loop.
    """
    return engine_loop().run(ask()) if _running() is None else QueryAnswer(ask)


def _running() -> asyncio.AbstractEventLoop | None:
    """Return the loop that runs in this thread, if any."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


if TYPE_CHECKING:

    class Listed(list[Offer]):
        """Offers, which may be awaited."""

        def __await__(self) -> Generator[Any, None, list[Offer]]: ...

    class Counted(int):
        """A number, which may be awaited."""

        def __await__(self) -> Generator[Any, None, int]: ...

else:
    # For type checkers both ways to wait are declared; what is really there is a list, an int or an Answer.
    Listed, Counted = list, int
