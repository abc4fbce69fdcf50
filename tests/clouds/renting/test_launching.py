"""On every cloud a machine is rented once, whatever becomes of the call; and each refusal has its class."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from skyward.errors import CredentialsError, NoCredentialsError, ProvisionError
from skyward.model.spec.spec import Spec
from tests.clouds.cloud import Cloud
from tests.clouds.hooks import refusal, run
from tests.clouds.renting.dialect import Dialect, dialects
from tests.waiting import until

pytestmark = pytest.mark.clouds

everywhere = pytest.mark.parametrize("dialect", dialects(), ids=lambda each: each.name)

LOST = "10570570570570ff"
"""A token as core makes them."""


def ids(found: Any) -> set[str]:
    """Return the ids of machines, as a client or as the cloud's books have them."""
    return {each["id"] if isinstance(each, dict) else each.id for each in found}


async def tried(opened: Any, token: str) -> None:
    """Launch; where a launch may not be sent again by itself, see that no caller hears that nothing was rented."""
    [answer] = await asyncio.gather(opened.launch(token=token), return_exceptions=True)
    # Its subclasses say that nothing was rented.
    assert isinstance(answer, list) or ProvisionError is type(answer)


@everywhere
def test_the_same_request_rents_once(dialect: Dialect, cloud: Cloud) -> None:
    """A launch that is sent again gives the machine there is."""

    async def scenario() -> None:
        async with dialect.client(cloud.provider()) as opened:
            first = await opened.launch(token="once")
            assert ids(first) == ids(await opened.launch(token="once")) == ids(cloud.alive())
            assert 1 == dialect.launches(cloud)

    run(scenario())


@pytest.mark.parametrize("dialect", [one for one in dialects() if one.asks_first], ids=lambda each: each.name)
def test_a_client_that_remembers_nothing_rents_no_second_machine(dialect: Dialect, cloud: Cloud) -> None:
    """It asks the cloud for the machines of a request before it rents any."""

    async def scenario() -> None:
        async with dialect.client(cloud.provider()) as opened:
            first = await opened.launch(token="once")
            stranger = type(opened)(cloud.provider(), opened.cluster, opened.infra)
            assert ids(first) == ids(await stranger.launch(token="once")) == ids(cloud.alive())

    run(scenario())


@pytest.mark.parametrize("dialect", [one for one in dialects() if one.together], ids=lambda each: each.name)
def test_only_the_missing_machines_of_a_request_are_rented(dialect: Dialect, cloud: Cloud) -> None:
    """Those that there are come first to their nodes; another request has machines of its own."""

    async def scenario() -> None:
        async with dialect.client(cloud.provider()) as opened:
            first = await opened.launch(0, 1, token="once")
            again = await opened.launch(0, 1, 2, token="once")
            assert ids(first) < ids(again)
            assert [0, 1, 2] == sorted(each.node for each in again)
            assert ids(again).isdisjoint(ids(await opened.launch(0, token="twice")))
            assert 4 == len(cloud.alive())

    run(scenario())


@everywhere
def test_an_answer_that_is_lost_costs_no_second_machine(dialect: Dialect, cloud: Cloud) -> None:
    """A launch is sent again by itself only with a key that makes it safe; the same request finds what came of it."""

    async def scenario() -> None:
        async with dialect.client(cloud.provider()) as opened:
            # Other pools may have listed a moment ago, which is of no use now.
            assert [] == await opened.listed()
            cloud.fault(dialect.launch, "cut", times=1)
            await tried(opened, LOST)
            assert (1 + dialect.repeats, 1) == (dialect.launches(cloud), len(cloud.alive()))
            [found] = await opened.listed()
            assert found.tags is not None
            assert LOST == found.tags.token
            assert {found.id} == ids(cloud.alive()) == ids(await opened.launch(token=LOST))
            assert 1 + dialect.repeats == dialect.launches(cloud)

    run(scenario())


@everywhere
def test_a_500_to_a_launch_is_no_second_machine(dialect: Dialect, cloud: Cloud) -> None:
    """It is unknown what came of it: without a key it is not sent again before the client has looked."""

    async def scenario() -> None:
        async with dialect.client(cloud.provider()) as opened:
            cloud.fault(dialect.launch, **dialect.broken, times=1)
            await tried(opened, "broken")
            assert 1 + dialect.repeats == dialect.launches(cloud)
            assert 1 == len(await opened.launch(token="broken")) == len(cloud.alive())

    run(scenario())


@everywhere
def test_a_launch_that_is_broken_off_leaves_nothing_unseen(dialect: Dialect, cloud: Cloud) -> None:
    """What was under way when we were cancelled is a machine soon, and the next list has it."""

    async def scenario() -> None:
        async with dialect.client(cloud.provider()) as opened:
            # On a busy machine it takes a while until the request is seen.
            cloud.fault(dialect.launch, "late", seconds=1.0, times=1)
            launching = asyncio.create_task(opened.launch())
            await asyncio.to_thread(until, lambda: dialect.launches(cloud))
            launching.cancel()
            await asyncio.wait([launching])
            assert launching.cancelled()
            await opened.until(lambda found: 1 == len(found))

    run(scenario())


@everywhere
def test_a_throttled_launch_is_sent_again(dialect: Dialect, cloud: Cloud) -> None:
    """Who was told to wait has made nothing."""

    async def scenario() -> None:
        async with dialect.client(cloud.provider()) as opened:
            cloud.fault(dialect.launch, **dialect.throttled, times=2)
            assert 1 == len(await opened.launch()) == len(cloud.alive())
            assert 3 == dialect.launches(cloud)

    run(scenario())


@everywhere
def test_what_there_is_of_too_few_is_given(dialect: Dialect, cloud: Cloud) -> None:
    """Those that could be rented are returned, and all that were rented are among them."""

    async def scenario() -> None:
        async with dialect.client(cloud.provider()) as opened:
            dialect.shorten(cloud)
            found = await opened.launch(*dialect.nodes)
            assert dialect.left == len(found)
            assert ids(found) == ids(cloud.alive())

    run(scenario())


@everywhere
def test_wrong_credentials_are_told_before_anything_is_asked_for(dialect: Dialect, cloud: Cloud) -> None:
    """And are nowhere in what is said."""
    error = run(refusal(cloud.provider(**dialect.wrong).skyward_preflight(Spec())))
    assert isinstance(error, CredentialsError)
    assert "wrong-secret" not in f"{error} {error!r} {vars(error)}"
    assert 0 == dialect.launches(cloud)


@everywhere
def test_no_credentials_says_where_was_looked(
    dialect: Dialect, cloud: Cloud, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    """The variable is named, before anything is asked."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in dialect.without:
        monkeypatch.delenv(name, raising=False)
    error = run(refusal(cloud.provider().skyward_preflight(Spec())))
    assert isinstance(error, NoCredentialsError)
    assert dialect.without[0] in str(error)
    assert [] == cloud.calls()
