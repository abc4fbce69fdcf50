"""Calls of AWS block in threads of their own, which may outlive the loop that waited for them."""

from __future__ import annotations

import asyncio
import threading

import pytest

from skyward_aws.account import in_thread


@pytest.mark.parametrize("fails", [False, True])
def test_a_call_that_ends_after_its_loop_ends_quietly(monkeypatch: pytest.MonkeyPatch, fails: bool) -> None:
    """A client that is left while a call is under way prints no traceback of a thread."""
    said: list[object] = []
    monkeypatch.setattr(threading, "excepthook", said.append)
    begun, closed, threads = threading.Event(), threading.Event(), []

    def call() -> None:
        threads.append(threading.current_thread())
        begun.set()
        closed.wait(10)
        if fails:
            raise ValueError

    async def scenario() -> None:
        waiting = asyncio.create_task(in_thread(call))
        await asyncio.to_thread(begun.wait)
        waiting.cancel()

    asyncio.run(scenario())
    closed.set()
    threads[0].join(10)
    assert [] == said
