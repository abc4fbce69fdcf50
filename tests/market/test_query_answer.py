"""
An answer is awaited or just used, and neither blocks what it waits for.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from skyward.engine.pool.event_loop import engine_loop
from skyward.errors import UsageError
from skyward.hookspecs import Offer
from skyward.market.query_answer import answer


async def three() -> int:
    """Give a number, after the loop went on."""
    await asyncio.sleep(0)
    return 3


def test_without_a_loop_it_is_the_value_itself() -> None:
    """Nothing stands between the user and a list."""
    assert int is type(answer(three))


def test_it_can_be_awaited() -> None:
    """The value comes out."""

    async def main() -> Any:
        return await answer(three)

    assert int is type(asyncio.run(main()))


def test_the_loop_goes_on_while_it_is_awaited() -> None:
    """What it waits for may be something that happens in the user's loop."""

    async def main() -> int:
        there = asyncio.Event()
        loop = asyncio.get_running_loop()

        async def look() -> int:
            waited = asyncio.run_coroutine_threadsafe(there.wait(), loop)
            await asyncio.wrap_future(waited)
            return 3

        found = answer(look)
        loop.call_soon(there.set)
        return int(await asyncio.wait_for(found, 10))

    assert 3 == asyncio.run(main())


def test_it_can_be_used_in_a_loop_as_what_it_stands_for() -> None:
    """It waits, and compares, counts and prints as its value."""

    async def numbers() -> list[int]:
        return [1, 2]

    async def nothing() -> None:
        return None

    async def main() -> None:
        number, listed = answer(three), answer(numbers)
        assert number == 3
        assert (number < 4, number <= 3, number > 2, number >= 4) == (True, True, True, False)
        assert "abc"[: answer(three)] == "abc"
        assert int(number) == 3
        assert (repr(listed), str(listed), len(listed), list(listed)) == ("[1, 2]", "[1, 2]", 2, [1, 2])
        assert (listed[0], 2 in listed, listed.index(2)) == (1, True, 1)
        assert not answer(nothing)

    asyncio.run(main())


def test_several_can_be_awaited_together() -> None:
    """Nothing waits for one of them before all are on their way."""

    async def main() -> None:
        meeting, met = asyncio.Event(), []

        async def meet() -> int:
            met.append(1)
            if len(met) == 2:
                meeting.set()
            await meeting.wait()
            return len(met)

        found = asyncio.gather(answer(meet), answer(meet))
        assert await asyncio.wait_for(found, 10) == [2, 2]

    asyncio.run(main())


def test_a_failure_comes_out_in_both_ways() -> None:
    """As it was raised."""

    async def fail() -> None:
        raise KeyError("gone")

    async def main() -> None:
        with pytest.raises(KeyError, match="gone"):
            await answer(fail)
        with pytest.raises(KeyError, match="gone"):
            len(answer(fail))

    asyncio.run(main())
    with pytest.raises(KeyError, match="gone"):
        answer(fail)


def test_who_gives_up_waiting_ends_it() -> None:
    """A cancelled wait cancels what is looked up."""

    async def main() -> None:
        begun, ended = asyncio.Event(), asyncio.Event()
        loop = asyncio.get_running_loop()

        async def look() -> None:
            loop.call_soon_threadsafe(begun.set)
            try:
                await asyncio.Event().wait()
            finally:
                loop.call_soon_threadsafe(ended.set)

        found = asyncio.ensure_future(answer(look))
        await asyncio.wait_for(begun.wait(), 10)
        found.cancel()
        await asyncio.wait_for(ended.wait(), 10)

    asyncio.run(main())


def test_in_the_engine_s_own_loop_it_has_to_be_awaited() -> None:
    """There it would wait for itself; it says so instead."""

    async def use() -> Any:
        with pytest.raises(UsageError, match=r"used before it is there\. Write await"):
            bool(answer(three))
        return await answer(three)

    assert 3 == engine_loop().run(use())


def test_it_has_the_attributes_of_its_value() -> None:
    """An offer reads as an offer."""

    async def offer() -> Offer:
        return Offer(provider="a", instance_type="b")

    async def main() -> None:
        assert "b" == answer(offer).instance_type

    asyncio.run(main())
