"""
An allocation is a strategy, or the least share of spot.
"""

from __future__ import annotations

import math
import pickle

import pytest

from skyward.errors import ConfigError
from skyward.model.spec.allocation import Allocation, allocation


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("spot-if-available", Allocation.SpotIfAvailable()),
        ("spot", Allocation.AlwaysSpot()),
        ("always-spot", Allocation.AlwaysSpot()),
        ("on-demand", Allocation.OnDemand()),
        ("on_demand", Allocation.OnDemand()),
        ("cheapest", Allocation.Cheapest()),
        (0.8, Allocation.Percent(spot=0.8)),
        (0, Allocation.Percent(spot=0)),
        (1, Allocation.Percent(spot=1)),
        (Allocation.Cheapest(), Allocation.Cheapest()),
    ],
)
def test_every_way_to_write_one_gives_the_value(given: object, expected: Allocation) -> None:
    """Text, a share and the value itself are accepted."""
    assert expected == allocation(given)


@pytest.mark.parametrize("name", ["SpotIfAvailable", "AlwaysSpot", "OnDemand", "Cheapest"])
def test_a_strategy_may_be_called_or_not(name: str) -> None:
    """Without arguments to give, the parentheses change nothing."""
    strategy = getattr(Allocation, name)
    assert strategy == strategy() == allocation(strategy)


@pytest.mark.parametrize("given", [math.nan, -0.1, 1.1, math.inf, True, None, [0.5]])
def test_what_is_no_share_is_refused(given: object) -> None:
    """A share lies from 0 to 1, and the error says what is accepted."""
    with pytest.raises(ConfigError, match=r'^allocation=.* is no way to rent machines.*"cheapest".*from 0 to 1'):
        allocation(given)


def test_an_unknown_strategy_offers_the_nearest() -> None:
    """A slip of the pen is answered with the name that was meant."""
    with pytest.raises(ConfigError, match=r"allocation='on-demnd'.*Did you mean 'on-demand'"):
        allocation("on-demnd")


@pytest.mark.parametrize("given", ["percent", "0.8", ""])
def test_text_names_a_strategy_and_nothing_else(given: str) -> None:
    """Shares are numbers, and "percent" alone says none."""
    with pytest.raises(ConfigError, match=r"^allocation="):
        allocation(given)


@pytest.mark.parametrize("share", [math.nan, 2, "0.5", True])
def test_percent_refuses_what_is_no_share(share: object) -> None:
    """The error names the argument that was wrong."""
    with pytest.raises(ConfigError, match=r"^spot="):
        Allocation.Percent(spot=share)  # type: ignore[arg-type]


@pytest.mark.parametrize(("strategy", "share"), [("percent", None), ("spot", 0.5)])
def test_a_share_goes_with_percent_only(strategy: str, share: float | None) -> None:
    """No value can state a share and a strategy that has none."""
    with pytest.raises(ConfigError, match=r"spot= goes with strategy"):
        Allocation(strategy, share)


@pytest.mark.parametrize(
    ("given", "nodes", "least"),
    [(0.8, 4, 4), (0.8, 5, 4), (0.1, 30, 3), (0.7, 10, 7), (0.0, 9, 0), (1, 9, 9), (0.5, 0, 0), ("spot", 3, 3)],
)
def test_the_least_number_of_spot_nodes_is_rounded_up(given: object, nodes: int, least: int) -> None:
    """A share is at least that share, without a node too many from how floats are stored."""
    assert least == allocation(given).least_spot(nodes)


@pytest.mark.parametrize(
    ("given", "spot", "on_demand"),
    [
        ("spot-if-available", True, True),
        ("spot", True, False),
        ("on-demand", False, True),
        ("cheapest", True, True),
        (0.5, True, True),
        (1, True, False),
    ],
)
def test_it_says_which_markets_it_allows(given: object, spot: bool, on_demand: bool) -> None:
    """What may be rented follows from the strategy."""
    assert (spot, on_demand) == (allocation(given).allows_spot, allocation(given).allows_on_demand)


def test_it_is_a_value() -> None:
    """It is hashable and survives pickling."""
    percent = Allocation.Percent(spot=0.8)
    assert percent == pickle.loads(pickle.dumps(percent))
    assert {percent: 1}[Allocation.Percent(spot=0.8)] == 1
