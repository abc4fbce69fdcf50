"""Calls side by side."""

from __future__ import annotations

import asyncio

import pytest

from skyward.errors import ProvisionError
from skyward.providers.together import together


def test_none_is_left_under_way_when_one_fails() -> None:
    """The failure is raised once all have ended."""
    ended: list[str] = []

    async def fail() -> None:
        raise ProvisionError("no")

    async def work() -> None:
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        ended.append("work")

    with pytest.raises(ProvisionError, match="no"):
        asyncio.run(together(fail(), work()))
    assert ["work"] == ended
