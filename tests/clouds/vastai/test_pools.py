"""Pools on Vast.ai go on when listings vanish, bids are outbid, and containers fail; nothing is left of any of it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

import skyward as sky
from skyward.errors import CapacityError
from skyward.model.events import event as events
from tests.clouds.vastai.cloud import Cloud
from tests.waiting import until

pytestmark = [pytest.mark.clouds, pytest.mark.timeout(120)]


@sky.function
def add(a: int, b: int) -> int:
    """Add."""
    return a + b


@sky.function
def second_time(folder: str) -> int:
    """Wait for the end the first time, and come back the second time."""
    mark = Path(folder, "begun")
    if mark.exists():
        return 5
    mark.touch()
    time.sleep(40)
    return 0


def pool(vastai: Cloud, **wishes: Any) -> Any:
    """Return a pool of one node that is never shown."""
    usual = {
        "accelerator": "RTX 4090",
        "allocation": "on-demand",
        "bootstrap_timeout": 20,
        "provision_retry_delay": 0.1,
        "console": False,
    }
    return sky.Compute(provider=vastai.provider(), **{**usual, **wishes})


@pytest.mark.everything
def test_a_listing_that_vanished_is_passed_over(vastai: Cloud) -> None:
    """The next one is rented."""
    said = {"success": False, "error": "no_such_ask", "msg": "error 410/3907: no_such_ask no longer available."}
    vastai.fault("PUT /api/v0/asks/*", status=410, body=said, times=1)
    with pool(vastai) as opened:
        assert 5 == (add(2, 3) >> opened)
        [row] = vastai.alive()
        assert 1 == vastai.met()
        [_, second] = vastai.calls("PUT /api/v0/asks/")
        assert second["name"] == f"PUT /api/v0/asks/{row['ask']}/"


@pytest.mark.everything
def test_an_outbid_machine_is_destroyed_at_once_and_its_call_done_elsewhere(vastai: Cloud, tmp_path: Path) -> None:
    """It is stopped and billed for its disk: the pool does not wait for it to win again, nor for its own end."""
    with pool(vastai, allocation="spot") as opened:
        future = second_time(str(tmp_path)) > opened
        until(Path(tmp_path, "begun").exists)
        [first] = vastai.alive()
        assert first["spot"]
        vastai.interrupt(first["id"])
        until(lambda: first["id"] not in {row["id"] for row in vastai.alive()})
        assert 5 == future.result(timeout=60)


def test_a_container_that_cannot_be_made_is_destroyed_and_replaced(vastai: Cloud) -> None:
    """What its host says of it is final, though its state goes on to be that of one on its way."""
    vastai.fault("PUT /api/v0/asks/*", "never", times=1)
    failed: list[str] = []

    def fail(event: object) -> None:
        if isinstance(event, events.InstanceLaunched) and not failed:
            [row] = vastai.alive()
            failed.append(row["id"])
            vastai.contract(row["id"], status="created", says="Error: OCI runtime create failed: no such runtime")

    with pool(vastai, on_event=fail) as opened:
        assert 5 == (add(2, 3) >> opened)
        assert failed
        assert failed[0] not in {row["id"] for row in vastai.alive()}


def test_the_error_of_a_pool_says_what_vast_says_of_its_machine(vastai: Cloud) -> None:
    """`status_msg` is in the pool's error, instead of the fact alone that the machine is of no use."""
    vastai.fault("PUT /api/v0/asks/*", "never")

    def fail(event: object) -> None:
        if isinstance(event, events.InstanceLaunched):
            for row in vastai.alive():
                vastai.contract(row["id"], status="created", says="Error: OCI runtime create failed: no such runtime")

    with pytest.raises(sky.SkywardError, match="OCI runtime create failed: no such runtime"):
        pool(vastai, on_event=fail, max_provision_attempts=1).open()
    assert [] == vastai.alive()


def test_a_slow_pull_is_told_while_it_lasts(vastai: Cloud) -> None:
    """The image is a phase of the way to a node that works."""
    vastai.fault("PUT /api/v0/asks/*", "slow", seconds=3.0, times=1)
    told: list[object] = []
    with pool(vastai, on_event=told.append) as opened:
        assert 5 == (add(2, 3) >> opened)
    assert ["image pull"] == [each.step for each in told if isinstance(each, events.BootstrapProgress)][:1]


def test_where_no_bid_is_taken_a_pool_of_bids_ends_with_the_reason(vastai: Cloud) -> None:
    """And nothing is left."""
    said = {"success": False, "error": "invalid_price", "msg": "bid is too low"}
    vastai.fault("PUT /api/v0/asks/*", status=400, body=said)
    with pytest.raises(CapacityError, match="raise bid_factor"), pool(vastai, allocation="spot", accelerator="H100:8"):
        pass
