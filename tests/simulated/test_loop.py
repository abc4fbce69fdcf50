"""Time that passes only when nothing is left to do."""

from __future__ import annotations

import selectors
import threading
from typing import Any

import pytest

from skyward.blocking import in_thread
from tests.simulated.loop import VirtualLoop


def test_no_time_passes_while_a_thread_works_however_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if it ends between two looks of the loop, at what is ready and at who works."""
    end, look = threading.Event(), selectors.DefaultSelector.select

    def ending(self: Any, timeout: float | None = None) -> Any:
        ready = look(self, timeout)
        for thread in threading.enumerate():
            if thread.name == "skyward-blocking" and not ready:
                end.set()
                thread.join()
        return ready

    async def work() -> float:
        loop.call_later(100.0, lambda: None)
        await in_thread(end.wait)
        return loop.time()

    loop = VirtualLoop(sockets=False)
    monkeypatch.setattr(selectors.DefaultSelector, "select", ending)
    try:
        assert 0.0 == loop.run_until_complete(work())
    finally:
        loop.close()
