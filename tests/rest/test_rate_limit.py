"""How fast an account's calls may follow each other."""

from __future__ import annotations

import asyncio
import gc

import pytest
from hypothesis import given, strategies as st

from skyward.rest.rate_limit import Limit, RateLimit


@given(
    calls=st.integers(1, 60),
    seconds=st.floats(0.5, 3600),
    gaps=st.lists(st.floats(0, 50), min_size=1, max_size=200),
)
def test_no_span_of_time_sees_more_calls_than_are_allowed(calls: int, seconds: float, gaps: list[float]) -> None:
    """However the calls come in, no `seconds` of the clock hold more than `calls` of them."""
    pace = RateLimit({"": [Limit(calls, seconds)]})
    now, made = 0.0, []
    for gap in gaps:
        now += gap
        made.append(now + pace.reserve("", now))
    assert made == sorted(made)
    crowded = [later for first, later in zip(made, made[calls:], strict=False) if later - first < seconds - 1e-6]
    assert [] == crowded


def test_a_lane_has_limits_besides_those_of_all() -> None:
    """Creating is slower than reading, and does not hold reading up."""
    pace = RateLimit({"": [Limit(100, 10.0)], "create": [Limit(1, 4.5)]})
    assert [0.0, 4.5, 9.0] == [pace.reserve("create", 100.0) for _ in range(3)]
    assert 0.0 == pace.reserve("read", 100.0)


def test_one_account_has_one_pace() -> None:
    """Each caller gets the same one, as long as any caller has it; another account has another."""
    limits = {"": [Limit(1, 60.0)]}
    first = RateLimit.of("https://api key-1", limits)
    assert first is RateLimit.of("https://api key-1", limits)
    assert first is not RateLimit.of("https://api key-2", limits)
    assert 0.0 == first.reserve("", 5.0)
    del first
    gc.collect()
    assert 0.0 == RateLimit.of("https://api key-1", limits).reserve("", 5.0)


def test_twenty_pools_of_one_account_share_its_limit() -> None:
    """Twenty who call at once get twenty different moments, none earlier than the limit allows."""

    async def pools() -> list[float]:
        loop = asyncio.get_running_loop()
        paces = [RateLimit.of("shared", {"": [Limit(100, 1.0)]}) for _ in range(20)]
        started = loop.time()

        async def one(pace: RateLimit) -> float:
            for _ in range(5):
                await pace.wait()
            return loop.time() - started

        return sorted(await asyncio.gather(*map(one, paces)))

    # 20 at once, the other 80 one every 1/81 s.
    assert pytest.approx(80 / 81, abs=0.5) == asyncio.run(pools())[-1]


def test_nobody_calls_while_the_api_is_closed() -> None:
    """What one hears holds for all."""
    pace = RateLimit({})
    pace.close(until=12.0)
    assert [2.0, 2.0, 0.0] == [pace.reserve("", 10.0), pace.reserve("", 10.0), pace.reserve("", 12.5)]
