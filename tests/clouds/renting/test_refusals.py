"""On every cloud each refusal of a launch has its class, so that core stops, goes on, or looks."""

from __future__ import annotations

import pytest

from tests.clouds.cloud import Cloud
from tests.clouds.hooks import refusal, run
from tests.clouds.renting.dialect import Dialect, Told, dialects

pytestmark = pytest.mark.clouds

REFUSALS = [pytest.param(one, told, id=f"{one.name}-{told.name}") for one in dialects() for told in one.refusals]


@pytest.mark.parametrize(("dialect", "told"), REFUSALS)
def test_a_refusal_is_of_its_class_and_leaves_nothing(dialect: Dialect, told: Told, cloud: Cloud) -> None:
    """It is not asked for again, and no machine comes of it."""

    async def scenario() -> None:
        async with dialect.client(cloud.provider()) as opened:
            cloud.fault(dialect.launch, **told.facts)
            assert told.kind is type(await refusal(opened.launch()))
            assert [] == cloud.alive() == await opened.listed()

    run(scenario())
