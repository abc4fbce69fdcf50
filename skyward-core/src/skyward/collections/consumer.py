"""What a thread or a task of asyncio is called, which holds a lock or has taken an item."""

from __future__ import annotations

import asyncio
import itertools
import threading
from typing import Any
from weakref import WeakKeyDictionary

__all__ = ["ConsumerNames"]


class ConsumerNames:
    """Name each thread and each asyncio task, without ever using a name again."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._threads = threading.local()
        self._tasks: WeakKeyDictionary[Any, int] = WeakKeyDictionary()

    def current(self) -> int:
        """Return the number of the asyncio task that runs, or of the thread where none does."""
        # To ask for the task where no loop runs costs an exception.
        if asyncio._get_running_loop() is not None and (task := asyncio.current_task()) is not None:
            found = self._tasks.get(task)
            if found is None:
                found = self._tasks[task] = next(self._numbers)
            return found
        number: int | None = getattr(self._threads, "number", None)
        if number is None:
            number = self._threads.number = next(self._numbers)
        return number
