"""The order in which specs are tried."""

from __future__ import annotations

import math

import pytest

from skyward.errors import ConfigError
from skyward.model.instances.offer import Offer
from skyward.model.spec.spec import Spec
from skyward.plan.offers.selection import (
    ProviderView,
    as_chosen,
    in_order,
    select_available,
    select_cheapest,
    select_first,
)


def _view(name: str, *, on_demand: float | None = None, spot: float | None = None, **spec: object) -> ProviderView:
    offers = ()
    if on_demand is not None or spot is not None:
        offers = (Offer(provider=name, instance_type="x", on_demand_price=on_demand, spot_price=spot),)
    return ProviderView(name=name, provider=object(), spec=Spec(**spec), offers=offers)  # type: ignore[arg-type]


def _names(views: tuple[ProviderView, ...]) -> list[str]:
    return [view.name for view in views]


def test_first_keeps_the_users_order() -> None:
    """Nothing is compared."""
    assert _names(in_order([_view("b"), _view("a", on_demand=1.0)], "first")) == ["b", "a"]


def test_cheapest_goes_by_the_least_price() -> None:
    """A provider that sells nothing comes last."""
    views = [_view("none"), _view("dear", on_demand=3.0), _view("cheap", on_demand=4.0, spot=1.0)]
    assert _names(in_order(views, "cheapest")) == ["cheap", "dear", "none"]


def test_price_counts_only_what_the_allocation_allows() -> None:
    """Spot prices mean nothing to who wants on-demand machines."""
    assert _view("a", on_demand=4.0, spot=1.0, allocation="on-demand").price == 4.0
    assert _view("a", on_demand=4.0, allocation="spot").price == math.inf


def test_available_takes_the_first_that_sells_something() -> None:
    """Among those that do, the user's order holds."""
    views = [_view("none"), _view("second", on_demand=9.0), _view("third", on_demand=1.0)]
    assert _names(in_order(views, "available")) == ["second", "third", "none"]


def test_view_tells_spot_capacity() -> None:
    """It answers from the offers it holds."""
    assert _view("a", spot=1.0).has_spot_capacity()
    assert not _view("a", on_demand=1.0).has_spot_capacity()


def test_a_single_choice_is_followed_by_the_others() -> None:
    """It is tried first; the others are what there is if it cannot give the nodes."""
    one, other, third = _view("one"), _view("other"), _view("third")
    assert as_chosen([one, other, third], other) == (other, one, third)
    assert as_chosen([one, other, third], other.provider) == (other, one, third)


def test_several_choices_are_all_that_is_tried() -> None:
    """In the order returned; a list of one is how to have no other."""
    one, other = _view("one"), _view("other")
    assert as_chosen([one, other], [other, one]) == (other, one)
    assert as_chosen([one, other], [other]) == (other,)


def test_strategies_are_functions_too() -> None:
    """To be called by a function of one's own, or given as it."""
    views = [_view("none"), _view("dear", on_demand=3.0), _view("cheap", on_demand=1.0)]
    assert _names(select_first(views, Spec())) == ["none", "dear", "cheap"]
    assert _names(select_cheapest(views, Spec())) == ["cheap", "dear", "none"]
    assert _names(select_available(views, Spec())) == ["dear", "cheap", "none"]
    assert as_chosen(views, select_cheapest(views, Spec())) == select_cheapest(views, Spec())


@pytest.mark.parametrize("chosen", [None, "one", []])
def test_function_that_returns_anything_else_is_refused(chosen: object) -> None:
    """The error says what to return."""
    with pytest.raises(ConfigError, match="selection function returned"):
        as_chosen([_view("one")], chosen)
