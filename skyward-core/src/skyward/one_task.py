"""
Lets one task at a time have what a process has only once, as frameworks have one job of ranks in each.
"""

from __future__ import annotations

import threading

from skyward.errors import UsageError

__all__ = ["OneTask"]


class OneTask:
    """
    Be entered by one task at a time.

    Args:
        framework: What there is only one of in a process, such as `"JAX"`.
        group: What it calls the ranks that form one job, such as `"world"`.

    Raises:
        UsageError: On entering, if another task is in it.

    >>> task = OneTask("JAX", "world")
    >>> with task:
    ...     task.is_here
    True
    >>> task.is_here
    False
    """

    __slots__ = ("_busy", "_framework", "_group", "_thread")

    def __init__(self, framework: str, group: str) -> None:
        self._framework = framework
        self._group = group
        self._busy = threading.Lock()
        self._thread = 0

    @property
    def is_here(self) -> bool:
        """Return whether the task that is in it is the calling thread's."""
        return self._thread == threading.get_ident()

    def __enter__(self) -> None:
        thread = threading.get_ident()
        if not self._busy.acquire(blocking=False):
            raise UsageError(
                f"{self._framework} has one {self._group} for all that a process does, and another task runs in "
                "this one.",
                hint="Open the pool with concurrency=1.",
            )
        self._thread = thread

    def __exit__(self, *_: object) -> None:
        self._thread = 0
        self._busy.release()
