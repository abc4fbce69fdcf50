"""On every cloud an end is asked for until the machine is gone, and what cannot be ended is named."""

from __future__ import annotations

import pytest

from skyward.errors import ProvisionError
from tests.clouds.cloud import Cloud
from tests.clouds.hooks import refusal, run
from tests.clouds.renting.dialect import Dialect, dialects

pytestmark = pytest.mark.clouds

everywhere = pytest.mark.parametrize("dialect", dialects(), ids=lambda each: each.name)


@everywhere
def test_ending_is_idempotent(dialect: Dialect, cloud: Cloud) -> None:
    """A machine is ended although an id beside it never was, and twice is no error."""

    async def scenario() -> None:
        async with dialect.client(cloud.provider()) as opened:
            [instance] = await opened.launch()
            await opened.end(instance.id, dialect.unknown)
            assert [] == cloud.alive()
            await opened.end(instance.id)
            await opened.end(dialect.unknown)

    run(scenario())


@pytest.mark.parametrize("fault", ["broken", "throttled", "cut"])
@everywhere
def test_an_end_that_fails_twice_is_asked_for_again(dialect: Dialect, fault: str, cloud: Cloud) -> None:
    """A failure of the service ends no bill, whatever it looks like."""
    facts = {"broken": dialect.broken, "throttled": dialect.throttled, "cut": {"effect": "cut"}}[fault]

    async def scenario() -> None:
        async with dialect.client(cloud.provider()) as opened:
            [instance] = await opened.launch()
            # One that no list has had is not believed to be gone for a while.
            await opened.listed()
            cloud.fault(dialect.end, **facts, times=2)
            await opened.end(instance.id)
            assert [] == cloud.alive()
            assert cloud.met()

    run(scenario())


@everywhere
def test_a_machine_that_cannot_be_ended_is_named(dialect: Dialect, cloud: Cloud) -> None:
    """The error has its id, and what the user can do."""

    async def scenario() -> None:
        async with dialect.client(cloud.provider()) as opened:
            [instance] = await opened.launch()
            cloud.fault(dialect.end, **dialect.kept)
            error = await refusal(opened.end(instance.id))
            assert ProvisionError is type(error)
            assert f"{instance.id}" in str(error)
            assert dialect.command in str(error)
            assert [instance.id] == [row["id"] for row in cloud.alive()]
            cloud.calm()

    run(scenario())


@everywhere
def test_a_machine_that_lists_do_not_show_yet_is_ended(dialect: Dialect, cloud: Cloud) -> None:
    """No end of it is believed because a list has it not."""

    async def scenario() -> None:
        async with dialect.client(cloud.provider()) as opened:
            cloud.lag(0.5)
            [fresh] = await opened.launch()
            await opened.end(fresh.id)
            assert [] == cloud.alive()

    run(scenario())
