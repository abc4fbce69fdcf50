"""Keys that end are renewed in time, and sent to all that use them."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from skyward.engine.volumes import key_renewal
from skyward.engine.volumes.key_renewal import KeyRenewal
from skyward.errors import CredentialsError


def renewed(monkeypatch: pytest.MonkeyPatch, *answers: Any) -> list[Any]:
    """Renew keys that end soon, with these answers, and return what was sent."""
    monkeypatch.setattr(key_renewal, "AGAIN", 0.01)
    sent: list[Any] = []

    async def body() -> None:
        left, done = list(answers), asyncio.Event()

        async def ask() -> list[dict[str, Any]]:
            answer = left.pop(0) if left else None
            if answer is None:
                done.set()
                await asyncio.sleep(60)
            if isinstance(answer, Exception):
                raise answer
            return [{"expires_at": answer}]

        async def send(orders: Any) -> None:
            sent.append(orders[0]["expires_at"])

        renewal = KeyRenewal(ask, send)
        renewal.begin([{"expires_at": time.time() + 1}, {"expires_at": None}])
        async with asyncio.timeout(20):
            await done.wait()
        renewal.close()

    asyncio.run(body())
    return sent


def test_new_keys_are_sent_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same ones are not."""
    soon = time.time()
    assert [soon + 100, soon + 200] == renewed(monkeypatch, soon, soon + 100, soon + 100, soon + 200)


def test_a_failure_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """What gives keys may be away for a moment."""
    later = time.time() + 100
    assert [later] == renewed(monkeypatch, CredentialsError("No."), later)


def test_keys_without_an_end_need_nothing() -> None:
    """No task is begun."""

    async def body() -> None:
        async def fails() -> list[dict[str, Any]]:
            raise AssertionError

        async def send(orders: Any) -> None:
            raise AssertionError

        renewal = KeyRenewal(fails, send)
        renewal.begin([{"expires_at": None}])
        await asyncio.sleep(0)
        renewal.close()

    asyncio.run(body())
