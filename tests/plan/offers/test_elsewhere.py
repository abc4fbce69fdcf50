"""When the nodes of a pool may be of another cloud than it was opened on."""

from __future__ import annotations

from typing import Any

import pytest

from skyward.model.spec.image import Image
from skyward.model.spec.spec import Spec
from skyward.plan.offers.elsewhere import keeps
from skyward.plugin import Plugin

ANY: dict[str, Any] = {"collective": False, "rents": True}


def test_specs_that_differ_in_their_provider_do_for_each_other() -> None:
    """As `provider=[...]` makes them."""
    wishes: dict[str, Any] = {"accelerator": "H100:8", "image": Image(pip=["torch"]), "plugins": [Plugin.create("a")]}
    assert "" == keeps(Spec(provider=object(), **wishes), Spec(provider=object(), **wishes), **ANY)


@pytest.mark.parametrize(
    "wish",
    [
        {"nodes": 4},
        {"vcpus": 8},
        {"memory_gb": 64},
        {"disk_gb": 500},
        {"machine": "big"},
        {"allocation": "spot"},
        {"max_hourly_cost": 2.0},
        {"ttl": 60},
        {"timeout": 3600},
    ],
)
def test_how_large_and_how_dear_a_node_is_may_differ(wish: dict[str, Any]) -> None:
    """Any one of the specs will do, says who gives several."""
    assert "" == keeps(Spec(), Spec(**wish), **ANY)
    assert "" == keeps(Spec(**wish), Spec(), **ANY)


@pytest.mark.parametrize(
    ("wish", "why"),
    [
        ({"accelerator": "H100"}, "another accelerator"),
        ({"architecture": "arm64"}, "another architecture"),
        ({"image": Image(pip=["numpy"])}, "another image"),
        ({"plugins": [Plugin.create("a")]}, "other plugins"),
        ({"region": "eu"}, "region= says where"),
    ],
)
def test_what_makes_nodes_alike_may_not(wish: dict[str, Any], why: str) -> None:
    """Whichever of the two says it."""
    assert why in keeps(Spec(), Spec(**wish), **ANY)
    assert why in keeps(Spec(**wish), Spec(), **ANY)


def test_a_region_that_both_name_keeps_the_nodes_there() -> None:
    """Two clouds may call different places the same."""
    assert "region=" in keeps(Spec(region="eu"), Spec(region="eu"), **ANY)


def test_ranks_that_work_together_stay_together() -> None:
    """Across clouds their nodes do not reach each other."""
    assert "reach each other" in keeps(Spec(), Spec(), collective=True, rents=True)


def test_what_is_there_anyway_is_not_made_up_for_by_what_costs_money() -> None:
    """This machine, and hosts of one's own."""
    assert "rent machines" in keeps(Spec(), Spec(), collective=False, rents=False)
