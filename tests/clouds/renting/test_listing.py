"""On every cloud the list of machines is believed, and a failure of it is never taken for an empty one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from skyward.engine.instances.provider_handle import ProviderHandle
from skyward.errors import ProvisionError
from skyward.model.instances.machine import Instance, InstanceState, SSHAddress
from tests.clouds.client import Client
from tests.clouds.cloud import Cloud
from tests.clouds.hooks import refusal, run
from tests.clouds.renting.dialect import Dialect, dialects

pytestmark = pytest.mark.clouds

everywhere = pytest.mark.parametrize("dialect", dialects(), ids=lambda each: each.name)

COMING = (InstanceState.PENDING, InstanceState.RUNNING)


def running(found: Any) -> bool:
    """Say whether all machines run and can be reached."""
    return bool(found) and all(each.state is InstanceState.RUNNING and each.address for each in found)


@asynccontextmanager
async def two_pools(dialect: Dialect, cloud: Cloud) -> AsyncIterator[tuple[Client, Instance, Client, Instance]]:
    """Open two pools of one machine each, and wait until both run."""
    async with dialect.client(cloud.provider()) as opened:
        [odd] = await opened.launch()
        async with dialect.client(cloud.provider()) as other:
            [usual] = await other.launch()
            await opened.until(running)
            await other.until(running)
            yield opened, odd, other, usual


@everywhere
def test_a_machine_is_pending_until_it_can_be_reached(dialect: Dialect, cloud: Cloud) -> None:
    """However late it boots; then it has an address, and a way to know that it is the one."""

    async def scenario() -> None:
        async with dialect.client(cloud.provider()) as opened:
            cloud.fault(dialect.launch, "slow", seconds=0.2, times=1)
            [instance] = await opened.launch()
            assert InstanceState.PENDING is instance.state
            [found] = await opened.until(running)
            assert instance.id == found.id
            assert isinstance(found.address, SSHAddress)
            assert cloud.port == found.address.port
            assert found.address.host_key or found.address.known_hosts
            assert found.tags is not None
            assert opened.cluster.pool_id == found.tags.pool_id

    run(scenario())


@everywhere
def test_the_clouds_clock_is_read_from_its_replies(dialect: Dialect, cloud: Cloud) -> None:
    """From its answers, once there are any; the test cloud's is ours, as far as an answer of ten seconds tells."""

    async def scenario() -> None:
        provider = cloud.provider()
        handle = ProviderHandle(provider)
        assert await handle.call("skyward_clock", timeout=5.0) is None
        await provider.skyward_owned()
        assert 0.0 == pytest.approx(await handle.call("skyward_clock", timeout=5.0), abs=6.0)

    run(scenario())


@everywhere
def test_a_machine_that_never_boots_stays_pending_and_can_be_ended(dialect: Dialect, cloud: Cloud) -> None:
    """How long it is waited for is core's to say."""

    async def scenario() -> None:
        async with dialect.client(cloud.provider()) as opened:
            cloud.fault(dialect.launch, "never", times=1)
            [instance] = await opened.launch()
            assert [InstanceState.PENDING] == [each.state for each in await opened.listed()]
            await opened.end(instance.id)
            assert [] == cloud.alive()

    run(scenario())


@pytest.mark.parametrize("dialect", [one for one in dialects() if one.shows_death], ids=lambda each: each.name)
def test_a_machine_that_dies_at_boot_is_no_longer_waited_for(dialect: Dialect, cloud: Cloud) -> None:
    """It is gone or on its way, and what is billed of it can be ended."""

    async def scenario() -> None:
        async with dialect.client(cloud.provider()) as opened:
            cloud.fault(dialect.launch, "dies", times=1)
            [instance] = await opened.launch()
            await opened.until(lambda found: not [each for each in found if each.state in COMING])
            await opened.end(instance.id)
            assert [] == cloud.alive()

    run(scenario())


@everywhere
def test_a_machine_that_somebody_ends_leaves_the_list(dialect: Dialect, cloud: Cloud) -> None:
    """It is not taken for one that lists do not show yet."""

    async def scenario() -> None:
        async with dialect.client(cloud.provider()) as opened:
            [instance] = await opened.launch()
            await opened.until(running)
            cloud.terminate(instance.id)
            await opened.until(lambda found: not [each for each in found if each.state in COMING])

    run(scenario())


@pytest.mark.parametrize("dialect", [one for one in dialects() if one.shows_fresh], ids=lambda each: each.name)
def test_a_machine_that_lists_do_not_show_yet_is_pending(dialect: Dialect, cloud: Cloud) -> None:
    """Lists trail a launch by seconds; the machine counts as there."""

    async def scenario() -> None:
        async with dialect.client(cloud.provider()) as opened:
            cloud.lag(60.0)
            [fresh] = await opened.launch()
            assert [fresh.id] == [each.id for each in await opened.listed()]
            cloud.lag(0.0)
            assert [fresh.id] == [each.id for each in await opened.listed()]

    run(scenario())


@everywhere
def test_a_state_that_is_new_makes_no_list_unreadable(
    dialect: Dialect, cloud: Cloud, caplog: pytest.LogCaptureFixture
) -> None:
    """That machine counts as ending, with one warning, and can be ended; all others are what they were."""

    async def scenario() -> None:
        async with two_pools(dialect, cloud) as (opened, odd, other, usual):
            dialect.odd(cloud, odd.id, "rebalancing")
            states = {each.id: each.state for each in await opened.provider.skyward_owned()}
            assert {odd.id: InstanceState.ENDING, usual.id: InstanceState.RUNNING} == states
            assert [InstanceState.ENDING] == [each.state for each in await opened.listed()]
            assert [InstanceState.RUNNING] == [each.state for each in await other.listed()]
            warnings = [line for line in caplog.messages if "state_unknown" in line]
            assert 1 == len(warnings)
            assert odd.id in warnings[0]
            assert "'rebalancing'" in warnings[0]
            await opened.end(odd.id)
            assert [usual.id] == [row["id"] for row in cloud.alive()]

    run(scenario())


@everywhere
def test_what_cannot_be_read_of_a_machine_hides_no_other(
    dialect: Dialect, cloud: Cloud, caplog: pytest.LogCaptureFixture
) -> None:
    """It counts as one that exists, with a warning for each field, and can be ended; all others are as they were."""

    async def scenario() -> None:
        async with two_pools(dialect, cloud) as (opened, odd, other, usual):
            dialect.garble(cloud, odd.id, {name: value for name, (value, _) in dialect.garbled.items()})
            found = {each.id: each for each in await opened.provider.skyward_owned()}
            assert {odd.id, usual.id} == set(found)
            assert found[odd.id].state is not InstanceState.ENDED
            assert found[odd.id].tags is not None
            assert opened.cluster.pool_id == found[odd.id].tags.pool_id
            assert [odd.id] == [each.id for each in await opened.listed()]
            assert [InstanceState.RUNNING] == [each.state for each in await other.listed()]
            warnings = [line for line in caplog.messages if "field_unreadable" in line]
            assert all(f"provider={dialect.name} " in line and odd.id in line for line in warnings)
            assert {told for _, told in dialect.garbled.values()} == {
                line.partition(" field=")[2].partition(" ")[0] for line in warnings
            }
            assert len(dialect.garbled) == len(warnings)
            await opened.end(odd.id)
            assert [usual.id] == [row["id"] for row in cloud.alive()]

    run(scenario())


@pytest.mark.parametrize("dialect", [one for one in dialects() if one.nameless], ids=lambda each: each.name)
def test_a_machine_without_an_id_hides_no_other(
    dialect: Dialect, cloud: Cloud, caplog: pytest.LogCaptureFixture
) -> None:
    """It is left out with a warning; where there is no other one, that is no empty list but an error."""
    nameless = dialect.nameless
    assert nameless is not None

    async def scenario() -> None:
        async with two_pools(dialect, cloud) as (_, odd, other, usual):
            nameless(cloud, odd.id)
            assert usual.id in [each.id for each in await cloud.provider().skyward_owned()]
            assert any("field_unreadable" in line and " field=id " in line for line in caplog.messages)
            cloud.calm()
            await other.end(usual.id)
            nameless(cloud, odd.id)
            assert isinstance(await refusal(cloud.provider().skyward_owned()), ProvisionError)
            cloud.calm()

    run(scenario())


FAILURES = [
    pytest.param(one, facts, id=f"{one.name}-{name}")
    for one in dialects()
    for name, facts in (("500", one.broken), ("HTML", one.unreadable))
    if facts
]


@pytest.mark.parametrize(("dialect", "facts"), FAILURES)
def test_a_list_that_fails_is_an_error_and_never_an_empty_list(dialect: Dialect, facts: Any, cloud: Cloud) -> None:
    """Neither for a pool nor for the account; nothing counts as gone because nothing can say what is there."""

    async def scenario() -> None:
        async with dialect.client(cloud.provider()) as opened:
            [instance] = await opened.launch()
            await opened.until(running)
            cloud.fault(dialect.list, **facts)
            for asked in (opened.listed(), opened.provider.skyward_owned()):
                assert isinstance(await refusal(asked), ProvisionError)
            cloud.calm()
            assert [instance.id] == [each.id for each in await opened.listed()]

    run(scenario())


@pytest.mark.parametrize("fault", ["broken", "throttled", "cut"])
@everywhere
def test_a_list_that_fails_twice_is_asked_for_again(dialect: Dialect, fault: str, cloud: Cloud) -> None:
    """Whether it was refused for its pace, failed, or lost its answer."""
    facts = {"broken": dialect.broken, "throttled": dialect.throttled, "cut": {"effect": "cut"}}[fault]

    async def scenario() -> None:
        async with dialect.client(cloud.provider()) as opened:
            [instance] = await opened.launch()
            cloud.fault(dialect.list, **facts, times=2)
            assert [instance.id] == [each.id for each in await opened.listed()]
            assert 2 == cloud.met()

    run(scenario())


@everywhere
def test_whoever_asks_finds_every_machine_of_ours_and_can_end_it(dialect: Dialect, cloud: Cloud) -> None:
    """A client that knows nothing reads pools from what the machines bear, and ends them."""

    async def scenario() -> None:
        async with dialect.client(cloud.provider()) as opened:
            [instance] = await opened.launch()
            # What a list had and has no more is gone; what none had yet is looked for until it could be listed.
            assert [instance.id] == [each.id for each in await opened.listed()]
            stranger = cloud.provider()
            found = await stranger.skyward_owned()
            assert [(instance.id, opened.cluster.pool_id)] == [(each.id, each.tags.pool_id) for each in found]
            await stranger.skyward_end(found)
            assert [] == cloud.alive() == list(await stranger.skyward_owned())

    run(scenario())


@pytest.mark.parametrize("dialect", [one for one in dialects() if one.expiry], ids=lambda each: each.name)
def test_an_expiry_is_written_anew(dialect: Dialect, cloud: Cloud) -> None:
    """The machine bears the later time; an id that is gone keeps no other from it."""
    assert dialect.expiry is not None

    async def scenario() -> None:
        async with dialect.client(cloud.provider()) as opened:
            [instance] = await opened.launch()
            asked = {"cluster": opened.cluster, "infra": opened.infra, "ids": [instance.id, dialect.unknown]}
            for moment in (1900000000.0, 1900003600.0):
                handle = ProviderHandle(opened.provider)
                await handle.call("skyward_renew", **asked, expires_at=moment, timeout=20)
            assert ["1900003600"] == [dialect.expiry(row) for row in cloud.alive()]

    run(scenario())
