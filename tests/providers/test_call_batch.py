"""What becomes of a launch that is made of several calls."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from skyward.errors import CapacityError, QuotaError, SkywardError, TransportError
from skyward.providers.call_batch import CallBatch, rented


async def machine(name: str) -> str:
    """Rent one."""
    await asyncio.sleep(0)
    return name


async def refused(error: SkywardError) -> str:
    """Rent none."""
    raise error


FULL, QUOTA, BROKEN = CapacityError("None left."), QuotaError("No more for you."), TransportError("The line broke.")


def test_what_there_was_and_what_came_of_it_are_given() -> None:
    """By node."""
    assert {0: "i-0", 1: "i-1"} == asyncio.run(rented({1: machine("i-1")}, before={0: "i-0"}))
    assert {0: "i-0"} == asyncio.run(rented({}, before={0: "i-0"}))


@pytest.mark.parametrize("refusal", [FULL, QUOTA])
def test_fewer_than_asked_for_are_no_error(refusal: SkywardError) -> None:
    """There may be more elsewhere."""
    assert {0: "i-0"} == asyncio.run(rented({0: machine("i-0"), 1: refused(refusal)}, before={}))
    assert {0: "i-0"} == asyncio.run(rented({1: refused(refusal)}, before={0: "i-0"}))


def test_none_at_all_is_the_first_refusal() -> None:
    """Of those that were asked for."""
    with pytest.raises(QuotaError, match="No more for you"):
        asyncio.run(rented({0: refused(QUOTA), 1: refused(FULL)}, before={}))


def test_what_failed_otherwise_is_an_error_whatever_was_rented() -> None:
    """It is unknown what came of it; the same token finds what is there."""
    with pytest.raises(TransportError, match="The line broke"):
        asyncio.run(rented({0: machine("i-0"), 1: refused(FULL), 2: refused(BROKEN)}, before={3: "i-3"}))


def test_whoever_is_cancelled_knows_what_was_under_way() -> None:
    """It is waited for, and told to try no more."""
    known: list[str] = []

    async def launch() -> None:
        answered, given_up = asyncio.Event(), asyncio.Event()

        async def slow() -> str:
            answered.set()
            await given_up.wait()
            known.append("i-0")
            return "i-0"

        task = asyncio.ensure_future(rented({0: slow()}, before={}, give_up=given_up.set))
        await answered.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(launch())
    assert ["i-0"] == known


async def created(nodes: Sequence[int]) -> dict[int, str]:
    """Create as many as are asked for."""
    return {node: f"i-{node}" for node in nodes}


def test_nodes_are_created_in_groups_and_those_that_there_are_not_again() -> None:
    """Each group by one call."""
    calls: list[list[int]] = []

    async def create(nodes: Sequence[int]) -> dict[int, str]:
        calls.append([*nodes])
        return await created(nodes)

    found = asyncio.run(CallBatch(create, per_call=2).rented(range(6), before={3: "i-3"}))
    assert {node: f"i-{node}" for node in range(6)} == found
    assert [[0, 1], [2, 4], [5]] == calls


@pytest.mark.parametrize(("there", "calls"), [(3, [4, 2, 2, 1, 1]), (2, [4, 2, 2, 1]), (1, [4, 2, 1, 1])])
def test_where_there_are_too_few_a_group_is_halved(there: int, calls: list[int]) -> None:
    """As many are created as there are, and none is asked for twice."""
    asked: list[int] = []
    left = there

    async def create(nodes: Sequence[int]) -> dict[int, str]:
        nonlocal left
        asked.append(len(nodes))
        if len(nodes) > left:
            raise FULL
        left -= len(nodes)
        return await created(nodes)

    assert there == len(asyncio.run(CallBatch(create, per_call=4).rented(range(4), before={})))
    assert calls == asked


def test_after_a_failure_no_further_call_is_begun() -> None:
    """What is under way is awaited; the error is the first one's."""
    begun: list[int] = []

    async def create(nodes: Sequence[int]) -> dict[int, str]:
        begun.extend(nodes)
        await asyncio.sleep(0)
        raise FULL if nodes[0] else BROKEN

    with pytest.raises(TransportError, match="The line broke"):
        asyncio.run(CallBatch(create, at_once=2).rented(range(8), before={}))
    assert [0, 1] == begun
