"""What becomes of a launch that is made of several calls."""

from __future__ import annotations

import asyncio
from operator import itemgetter

import pytest
from attrs import evolve

from skyward.errors import CapacityError, QuotaError, SkywardError, TransportError
from skyward.hookspecs import Cluster, InstanceState, LaunchRequest, Offer
from skyward.model.spec.spec import Spec
from skyward.providers.call_batch import of_token, rented


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


def test_what_a_request_rented_before_is_found_by_its_token() -> None:
    """Those that end, those of other requests and pools, and what is not ours are left out."""
    cluster = Cluster(
        pool_id="a1",
        pool_name="train",
        spec=Spec(),
        offer=Offer(provider="shed", instance_type="bench"),
        provider="shed",
        nodes=3,
    )
    request = LaunchRequest(cluster=cluster, nodes=(0, 1, 2), token="t")
    mine, running = request.tags_of(1), InstanceState.RUNNING
    rows = [
        (request.tags_of(0), InstanceState.PENDING),
        (mine, running),
        (request.tags_of(2), InstanceState.ENDING),
        (evolve(mine, token="u", node=2), running),
        (evolve(mine, pool_id="b2", node=2), running),
        (request.tags, running),
        (None, running),
    ]
    assert of_token(rows, request, itemgetter(0), itemgetter(1)) == {0: rows[0], 1: rows[1]}
