"""One pool, one question, one program: over several clouds at once."""

from __future__ import annotations

from typing import Any

import pytest

import skyward as sky
from skyward.cli.main import main
from skyward.engine.guardian.journal import launches
from tests.clouds.between.conftest import Clouds
from tests.waiting import until

pytestmark = [pytest.mark.clouds, pytest.mark.timeout(180)]

WISH: dict[str, Any] = {"accelerator": "H100", "console": False, "bootstrap_timeout": 40}

FULL = {"code": "service_unavailable", "message": "Not enough resources to deploy a 1 GPU instance type in FIN-01"}
"""What Verda says where it has none left."""

GONE = "error 410/3907: no_such_ask Instance type is no longer available."
"""What Vast.ai says of a listing that another client has taken."""


@sky.function
def where() -> str:
    """Tell whose machine this is."""
    return sky.instance_info().provider


def providers(clouds: Clouds) -> list[Any]:
    """Make a provider of each."""
    return [cloud.provider() for cloud in clouds.all()]


def test_all_markets_are_one_table(clouds: Clouds) -> None:
    """One accelerator under five spellings, the cheapest first."""
    found = sky.offers(providers(clouds)).accelerator("H100").accelerator_count(1).all()
    assert {"aws", "digitalocean", "runpod", "vastai", "verda"} == {offer.provider for offer in found}
    assert [offer.least_price for offer in found] == sorted(offer.least_price for offer in found)


def test_one_cloud_that_is_down_leaves_the_others(clouds: Clouds) -> None:
    """They are not asked in vain."""
    clouds.vastai.fault("*", status=500, body={"error": "down"})
    found = sky.offers(providers(clouds)).accelerator("H100").all()
    assert {"aws", "digitalocean", "runpod", "verda"} == {offer.provider for offer in found}


def test_markets_are_asked_side_by_side(clouds: Clouds) -> None:
    """All are asked before the first of them answers."""
    silent = 8.0
    for cloud in clouds.all():
        if cloud is clouds.aws:
            clouds.aws.fault("DescribeInstanceTypes", "late", seconds=silent, times=1)
        else:
            cloud.fault("*", "late", seconds=silent, times=1)
    assert sky.offers(providers(clouds)).select().count() > 100
    # All processes of a machine have one monotonic clock.
    asked = [min(call["at"] for call in cloud.calls()) for cloud in clouds.all()]
    assert max(asked) - min(asked) < silent


def test_a_pool_is_rented_where_it_costs_least(clouds: Clouds) -> None:
    """Of five that sell what is asked for, for one node, on demand."""
    offers = sky.offers(providers(clouds)).accelerator("H100").on_demand().all()
    with sky.Compute(provider=providers(clouds), allocation="on-demand", **WISH) as pool:
        assert offers[0].provider == where() >> pool
        assert 1 == len(clouds.alive())
    assert [] == clouds.alive()


def test_where_one_cloud_has_none_left_the_next_is_asked(clouds: Clouds) -> None:
    """The pool works, on another cloud, and nothing is left on either."""
    clouds.verda.fault("POST /v1/instances", status=503, body=FULL)
    with sky.Compute(provider=[clouds.verda.provider(), clouds.digitalocean.provider()], **WISH) as pool:
        assert "digitalocean" == where() >> pool
    assert clouds.verda.met() > 0
    assert [] == clouds.alive()


def test_where_no_cloud_has_any_the_error_lists_them_all(clouds: Clouds) -> None:
    """Each with its reason."""
    clouds.verda.fault("POST /v1/instances", status=503, body=FULL)
    sold_out = {"id": "unprocessable_entity", "message": "size gpu-h100x1-80gb is temporarily unavailable"}
    clouds.digitalocean.fault("POST /v2/droplets", status=422, body=sold_out)
    with (
        pytest.raises(sky.AllProvidersFailedError) as caught,
        sky.Compute(provider=[clouds.verda.provider(), clouds.digitalocean.provider()], **WISH),
    ):
        pass
    assert {"verda", "digitalocean"} == {name for name, _ in caught.value.reasons}
    assert "Not enough resources" in str(caught.value)
    assert "temporarily unavailable" in str(caught.value)
    assert [] == clouds.alive()


@pytest.mark.everything
def test_pools_on_two_clouds_at_once(clouds: Clouds) -> None:
    """They are opened side by side, and left together."""
    with sky.MultiPool(
        sky.Compute(provider=clouds.verda.provider(), **WISH),
        sky.Compute(provider=clouds.digitalocean.provider(), **WISH),
    ) as (one, other):
        assert ("verda", "digitalocean") == (where() >> one, where() >> other)
        assert 2 == len(clouds.alive())
    assert [] == clouds.alive()


def test_a_lost_node_is_replaced_at_another_cloud(clouds: Clouds, capsys: pytest.CaptureFixture[str]) -> None:
    """Where its own has none left; lists, bill and journal have both, and each ends its own."""
    providers = [clouds.verda.provider(), clouds.digitalocean.provider()]
    with sky.Compute(provider=providers, nodes=2, allocation="on-demand", reconcile_tick_interval=0.5, **WISH) as pool:
        assert ["verda", "verda"] == where() @ pool
        clouds.verda.fault("POST /v1/instances", status=503, body=FULL)
        lost = clouds.verda.alive()[0]["id"]
        clouds.verda.terminate(lost)
        until(lambda: clouds.digitalocean.alive() and pool.current_nodes() == 2, 60)
        assert ["digitalocean", "verda"] == sorted(where() @ pool)
        both = {row["id"] for row in (*clouds.verda.alive(), *clouds.digitalocean.alive())}
        main(["ls", "pool"])
        listed = capsys.readouterr().out
        assert all(name in listed for name in both)
    assert [] == clouds.alive()
    assert [] == clouds.digitalocean.ssh_keys()
    assert pool.receipt is not None
    assert {*both, lost} == {node.instance_id for node in pool.receipt.nodes}
    assert {"verda", "digitalocean"} == {node.provider for node in pool.receipt.nodes}
    assert all(node.ended for node in pool.receipt.nodes)
    written = [launch for launch in launches() if both & set(launch.ids or ())]
    assert {"verda", "digitalocean"} == {launch.provider for launch in written}
    assert not any(launch.open for launch in written)


@pytest.mark.everything
def test_a_bid_that_is_lost_is_made_up_for_at_another_cloud(clouds: Clouds) -> None:
    """Where no listing is left of those that were for sale; what was outbid is destroyed, for its disk is billed."""
    cloud, other = clouds.vastai, clouds.runpod
    wish = {**WISH, "reconcile_tick_interval": 0.5}
    with sky.Compute(provider=[cloud.provider(), other.provider()], selection="first", **wish) as pool:
        assert "vastai" == where() >> pool
        cloud.fault("PUT /api/v0/asks/*", status=410, body={"success": False, "error": "no_such_ask", "msg": GONE})
        cloud.interrupt(cloud.alive()[0]["id"])
        until(lambda: other.alive() and pool.current_nodes() == 1, 60)
        assert "runpod" == where() >> pool
    assert [] == clouds.alive()
