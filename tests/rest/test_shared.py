"""One call for all who ask the same."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from skyward.rest import Shared


def counting(*, fail: int = 0) -> tuple[list[int], Callable[[], Coroutine[Any, Any, int]]]:
    calls: list[int] = []

    async def ask() -> int:
        calls.append(len(calls))
        await asyncio.sleep(0.01)
        if len(calls) <= fail:
            raise ConnectionError("not now")
        return calls[-1]

    return calls, ask


def test_many_who_ask_at_once_make_one_call() -> None:
    """So do those who ask a moment later; another question is another call."""
    calls, ask = counting()

    async def run() -> list[int]:
        first, second = Shared.of("key"), Shared.of("key")
        found = await asyncio.gather(*(each.ask("droplets", 60.0, ask) for each in (first, second) * 10))
        return [*found, await first.ask("droplets", 60.0, ask), await first.ask("gpus", 60.0, ask)]

    assert [0] * 21 + [1] == asyncio.run(run())
    assert 2 == len(calls)


def test_an_answer_grows_old() -> None:
    """Who wants it fresh has it called for."""
    calls, ask = counting()

    async def run() -> None:
        shared = Shared()
        await shared.ask("x", 60.0, ask)
        await shared.ask("x", 0.0, ask)

    asyncio.run(run())
    assert 2 == len(calls)


def test_a_failure_is_nobody_elses() -> None:
    """Those who wait for the call get its error; the next one calls anew."""
    _, ask = counting(fail=1)

    async def run() -> list[Any]:
        shared = Shared()
        both = await asyncio.gather(*(shared.ask("x", 60.0, ask) for _ in range(2)), return_exceptions=True)
        return [*map(type, both), await shared.ask("x", 60.0, ask)]

    assert [ConnectionError, ConnectionError, 1] == asyncio.run(run())


def test_one_who_gives_up_takes_nobody_along() -> None:
    """The call goes on for the others."""
    calls, ask = counting()

    async def run() -> int:
        shared = Shared()
        impatient = asyncio.create_task(shared.ask("x", 60.0, ask))
        patient = asyncio.create_task(shared.ask("x", 60.0, ask))
        await asyncio.sleep(0)
        impatient.cancel()
        with pytest.raises(asyncio.CancelledError):
            await impatient
        return await patient

    assert 0 == asyncio.run(run())
    assert 1 == len(calls)


def test_each_event_loop_has_its_own() -> None:
    """An answer of a loop that is over is asked for again in the next one."""
    calls, ask = counting()
    shared = Shared()
    assert [0, 1] == [asyncio.run(shared.ask("x", 60.0, ask)) for _ in range(2)]
    assert 2 == len(calls)
