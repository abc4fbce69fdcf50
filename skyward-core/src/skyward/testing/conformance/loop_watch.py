"""Find calls that block the event loop: the thread sleeps in one place, and the loop does not turn."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import sysconfig
import threading
from collections.abc import Coroutine
from pathlib import Path
from types import FrameType
from typing import Any, Self, TypeVar

__all__ = ["BLOCKED", "LoopWatch"]

T = TypeVar("T")

BLOCKED = 0.3
"""Seconds in one blocking call from which on it is reported."""

_BEAT = 0.02
_SAMPLE = 0.05


class LoopWatch:
    """
    Watch the event loop of the thread that enters it.

    A loop whose thread computes, or waits for a processor, is not reported: other programs cause that as well.
    """

    def __init__(self) -> None:
        self.blocking: list[str] = []
        """The places that blocked the loop, each once."""
        self._beats = 0
        self._watching = False
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._sample, name="conformance-loop-watch", daemon=True)
        self._ident = threading.get_ident()
        self._native = threading.get_native_id()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    async def over(self, work: Coroutine[Any, Any, T]) -> T:
        """
        Await something in the loop that is watched.

        Args:
            work: What is awaited.
        """
        beating = asyncio.create_task(self._beat())
        self._watching = True
        try:
            return await work
        finally:
            self._watching = False
            beating.cancel()

    async def _beat(self) -> None:
        while True:
            self._beats += 1
            await asyncio.sleep(_BEAT)

    def _sample(self) -> None:
        before: tuple[object, ...] = ()
        samples = 0
        while not self._over.wait(_SAMPLE):
            frame = sys._current_frames().get(self._ident)
            if frame is None or not self._watching or not _sleeps(self._native):
                samples = 0
                continue
            now = (self._beats, id(frame), frame.f_code, frame.f_lasti)
            samples = samples + 1 if now == before else 0
            before = now
            if samples * _SAMPLE >= BLOCKED and (place := _place(frame)) not in self.blocking:
                self.blocking.append(place)


def _sleeps(native: int) -> bool:
    """Return whether a thread waits for something else than a processor; True where the system does not say."""
    with contextlib.suppress(OSError, IndexError):
        return Path(f"/proc/self/task/{native}/stat").read_text().rpartition(")")[2].split()[0] == "S"
    return True


def _place(frame: FrameType) -> str:
    """Name the innermost place that is not the standard library's."""
    library = sysconfig.get_path("stdlib")
    found: FrameType | None = frame
    while (
        found is not None
        and found.f_code.co_filename.startswith(library)
        and "site-packages" not in str(found.f_code.co_filename)
    ):
        found = found.f_back
    at = found or frame
    return f"{at.f_code.co_qualname} ({Path(at.f_code.co_filename).name}, line {at.f_lineno})"
