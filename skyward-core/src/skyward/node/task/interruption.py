"""
What a running function knows of the end of its machine: whether the provider reclaims it, and when.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from attrs import frozen

from skyward.node.task.task_context import owner

__all__ = ["Interruption", "interrupted", "interruption", "on_interruption", "received"]

_log = logging.getLogger(__name__)

F = TypeVar("F", bound="Callable[[Interruption], object]")


@frozen(kw_only=True)
class Interruption:
    """
    Say why and when the machine of a running function is reclaimed.

    Args:
        reason: The provider's.
        ends_at: When, in seconds since 1970; None where the provider does not say.

    >>> Interruption(reason="spot interruption", ends_at=0.0).seconds_left
    0.0
    """

    reason: str
    ends_at: float | None = None

    @property
    def seconds_left(self) -> float | None:
        """Return the seconds until then, 0 when they are over; None where the provider does not say."""
        return None if self.ends_at is None else max(0.0, self.ends_at - time.time())


class _Notices:
    """The notice of this process's machine, and what is to be called when it comes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._callbacks: dict[int, list[Callable[[Interruption], object]]] = {}
        self.notice: Interruption | None = None

    def take(self, notice: Interruption) -> None:
        """Record a notice; the first one holds."""
        with self._lock:
            if self.notice is not None:
                return
            self.notice = notice
            waiting = [one for callbacks in self._callbacks.values() for one in callbacks]
            self._callbacks.clear()
        for callback in waiting:
            self._call(callback, notice)

    def add(self, call: int, callback: Callable[[Interruption], object]) -> bool:
        """Register what is called when a notice comes, until a call ends; it is called at once if that is here."""
        with self._lock:
            notice = self.notice
            if notice is None:
                self._callbacks.setdefault(call, []).append(callback)
        if notice is not None:
            self._call(callback, notice)
        return notice is None

    def drop(self, call: int) -> None:
        """Call nothing of a call that has ended."""
        with self._lock:
            self._callbacks.pop(call, None)

    @staticmethod
    def _call(callback: Callable[[Interruption], object], notice: Interruption) -> None:
        threading.Thread(target=_called, args=(callback, notice), name="skyward-interruption", daemon=True).start()


def _called(callback: Callable[[Interruption], object], notice: Interruption) -> None:
    try:
        callback(notice)
    except Exception:
        _log.exception("interruption.callback_failed callback=%s", getattr(callback, "__qualname__", callback))


_NOTICES = _Notices()


def received(notice: Mapping[str, Any]) -> None:
    """Record the notice that the agent passes on."""
    at = notice.get("at")
    _NOTICES.take(
        Interruption(reason=str(notice.get("reason", "")), ends_at=float(at) if isinstance(at, int | float) else None)
    )


def interruption() -> Interruption | None:
    """
    Return why and when the machine of this function is reclaimed; None as long as no notice has come.

    On clouds that reclaim machines without a notice there is none, and none on other machines and in `f.local()`.

    >>> interruption() is None
    True
    """
    return _NOTICES.notice


def interrupted() -> bool:
    """
    Return whether the machine of this function is about to be reclaimed: time to save a checkpoint and return.

    Cheap enough for every step of a loop.

    >>> interrupted()
    False
    """
    return _NOTICES.notice is not None


def on_interruption(callback: F) -> F:
    """
    Call a function once, in a thread of its own, when a notice comes that the machine is reclaimed.

    It is called at once if the notice is here, and no more once the task has ended that asked for it.
    Outside a task nothing is called.

    Args:
        callback: Takes the `Interruption`; what it raises is logged, and changes nothing for the task.

    Returns:
        The callback, so that this is a decorator too.

    >>> @on_interruption
    ... def warn(notice: Interruption) -> None:
    ...     print(notice.reason, notice.seconds_left)
    """
    context = owner()
    if context is not None and _NOTICES.add(context.call_id, callback):
        context.at_end.add(_NOTICES.drop)
    return callback
