"""One call for all who order the same."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from skyward.rest import Joined


def test_what_is_ordered_within_a_moment_is_one_round() -> None:
    """Each order returns what its round returns; what is ordered later is in the next one."""
    rounds: list[list[str]] = []

    async def call(ids: Sequence[str]) -> int:
        rounds.append([*ids])
        await asyncio.sleep(0.01)
        return len(rounds)

    async def scenario() -> None:
        joined = Joined(call, 0.01)
        assert [1, 1] == await asyncio.gather(joined.order(["b", "a"]), joined.order(["a", "c"]))
        assert 2 == await joined.order(["a"])

    asyncio.run(scenario())
    assert [["a", "b", "c"], ["a"]] == rounds


def test_a_round_that_fails_fails_for_all_of_it() -> None:
    """The next one is tried."""

    async def call(ids: Sequence[str]) -> str:
        if "bad" in ids:
            raise ConnectionError("not now")
        return "done"

    async def scenario() -> None:
        joined = Joined(call, 0.0)
        answers = await asyncio.gather(joined.order(["bad"]), joined.order(["good"]), return_exceptions=True)
        assert [ConnectionError, ConnectionError] == [type(each) for each in answers]
        assert "done" == await joined.order(["good"])

    asyncio.run(scenario())


def test_who_gives_up_waiting_cancels_no_others_order() -> None:
    """The round goes on."""

    async def call(ids: Sequence[str]) -> Sequence[str]:
        await asyncio.sleep(0.01)
        return ids

    async def scenario() -> None:
        joined = Joined(call, 0.0)
        first, second = asyncio.ensure_future(joined.order(["a"])), asyncio.ensure_future(joined.order(["b"]))
        await asyncio.sleep(0)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        assert ["a", "b"] == await second

    asyncio.run(scenario())
