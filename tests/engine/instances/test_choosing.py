"""Which spec is tried first: all providers are asked side by side, and the selection says what follows from it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

import pytest
from attrs import evolve

import skyward as sky
from skyward.engine.instances.choosing import OFFERS_TIMEOUT, choose
from skyward.testing import SlowApi
from tests.simulated.engine import SimulatedEngine
from tests.simulated.provider import ALWAYS, SMALL, Fails, Hangs, ScriptedCloud


def specs(*prices: float | None, script: Sequence[Any] = ()) -> list[sky.Spec]:
    """Make a spec for each price; None sells nothing."""
    return [
        sky.Spec(
            provider=ScriptedCloud(
                *script,
                name=f"cloud{number}",
                offers=() if price is None else (evolve(SMALL, spot_price=None, on_demand_price=price),),
            )
        )
        for number, price in enumerate(prices)
    ]


def order(engine: SimulatedEngine, given: Sequence[sky.Spec], selection: Any) -> list[int]:
    """Return the order in which specs are tried."""
    found = engine.run(choose(given, sky.Options(selection=selection)))
    return [next(index for index, spec in enumerate(given) if spec is each) for each in found]


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        ("first", [0, 1, 2, 3]),
        ("cheapest", [2, 3, 1]),
        ("available", [1, 2, 3]),
        (lambda providers, spec: providers[2], [2, 0, 1, 3]),
        (lambda providers, spec: [providers[3], providers[1]], [3, 1]),
    ],
    ids=["first", "cheapest", "available", "one", "several"],
)
def test_the_selection_says_what_is_tried(engine: SimulatedEngine, selection: Any, expected: list[int]) -> None:
    """Those that have nothing come last, if at all."""
    found = order(engine, specs(None, 3.0, 1.0, 2.0), selection)
    assert expected == found[: len(expected)]
    assert {0, *expected} >= {*found}


def test_nobody_is_asked_where_nothing_is_to_be_compared(engine: SimulatedEngine) -> None:
    """One spec, or the first one of several."""
    given = specs(1.0, 2.0)
    order(engine, given, "first")
    order(engine, given[:1], "cheapest")
    assert [[], []] == [spec.provider.calls for spec in given]


def test_providers_are_asked_side_by_side(engine: SimulatedEngine) -> None:
    """It takes no longer than the slowest of them."""
    order(engine, specs(1.0, 2.0, 3.0, script=[SlowApi(seconds=10.0)]), "cheapest")
    assert 10.0 == pytest.approx(engine.now)


@pytest.mark.parametrize("fault", [Fails("offers", times=ALWAYS), Hangs("offers", times=ALWAYS)], ids=["cut", "silent"])
def test_a_provider_that_fails_sells_nothing(
    engine: SimulatedEngine, fault: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """And the log says why; a silent one is waited for no longer than its limit."""
    given = [*specs(1.0, script=[fault]), *specs(2.0)]
    with caplog.at_level(logging.WARNING, "skyward.engine.instances.choosing"):
        assert 1 == order(engine, given, "cheapest")[0]
    assert engine.now <= OFFERS_TIMEOUT
    assert "offers.failed provider=cloud0" in caplog.text


def test_a_selection_of_what_was_not_given_is_refused(engine: SimulatedEngine) -> None:
    """It has to return views that it got."""
    with pytest.raises(sky.ConfigError, match="selection"):
        order(engine, specs(1.0, 2.0), lambda providers, spec: "cloud0")


def test_a_selection_may_take_its_time(engine: SimulatedEngine) -> None:
    """The loop goes on meanwhile."""
    inside: list[bool] = []

    def slow(providers: Any, spec: Any) -> Any:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            inside.append(False)
        return providers[0]

    order(engine, specs(1.0, 2.0), slow)
    assert [False] == inside
