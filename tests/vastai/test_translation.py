"""What Vast.ai tells becomes offers and instances, and what is asked for a question; nothing is guessed."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from skyward.hookspecs import InstanceState, SSHAddress, Tags
from skyward.model.accelerators import accelerator_factories as accelerators
from skyward.model.instances.key_pair import KeyPair
from skyward.model.spec.spec import Spec
from skyward.rest import Misread
from skyward_vastai.catalogue import Wish, disk_gb, query, to_offer
from skyward_vastai.instances import described, state
from skyward_vastai.label import LONGEST, label, tags_of

LISTED: dict[str, Any] = {
    "id": 31000071,
    "gpu_name": "A100 SXM4",
    "num_gpus": 2,
    "gpu_ram": 81920,
    "dph_base": 2.0,
    "dph_total": 2.05,
    "min_bid": 1.0,
    "cpu_cores": 128,
    "cpu_cores_effective": 32.0,
    "cpu_ram": 524288,
    "cpu_arch": "amd64",
    "disk_space": 900.5,
    "geolocation": "Oregon, US",
    "rentable": True,
}

RENTED: dict[str, Any] = {
    "id": 27000001,
    "label": label(Tags(pool_id="a1", pool_name="train", node=3, owner="me@here", client="c", token="t")),
    "actual_status": "running",
    "intended_status": "running",
    "cur_state": "running",
    "next_state": "running",
    "status_msg": "success",
    "is_bid": False,
    "dph_total": 0.42,
    "num_gpus": 1,
    "gpu_name": "RTX 4090",
    "geolocation": ", DE",
    "start_date": 1800000000.5,
    "public_ipaddr": " 203.0.113.7\n",
    "ports": {"22/tcp": [{"HostIp": "0.0.0.0", "HostPort": "40123"}]},
}


def test_a_listing_is_an_offer_of_one_machine() -> None:
    """Its own number tells the zone, its country the region; prices are for all its GPUs and the disk."""
    offer = to_offer(LISTED, Wish(bid_factor=1.2))
    assert ("2x A100 SXM4", "US", "US-31000071") == (offer.instance_type, offer.region, offer.zone)
    assert (2.0, 80.0, "x86_64", 900.5) == (
        offer.accelerator_count,
        offer.accelerator_memory_gb,
        offer.architecture,
        offer.disk_gb,
    )
    assert 2.05 == offer.on_demand_price
    assert 1.25 == pytest.approx(offer.spot_price)
    assert {"ask": 31000071, "bid": 1.2} == dict(offer.data)


def test_a_listing_names_the_machine_that_it_is_of() -> None:
    """One that failed its health checks twice is known by that in later listings."""
    assert 55 == to_offer({**LISTED, "machine_id": 55}, Wish()).data["machine"]


def test_memory_is_our_share_and_not_the_whole_machines() -> None:
    """The API tells that of the machine; where the number of its processors is null, it is unknown."""
    assert (32.0, 128.0) == (to_offer(LISTED, Wish()).vcpus, to_offer(LISTED, Wish()).memory_gb)
    assert to_offer({**LISTED, "cpu_cores": None}, Wish()).memory_gb is None
    assert 512.0 == to_offer({**LISTED, "cpu_cores_effective": 256.0}, Wish()).memory_gb


@pytest.mark.parametrize(
    "changes",
    [{"dph_total": "2.05"}, {"dph_total": None}, {"dph_total": 0}, {"num_gpus": 1.5}, {"gpu_name": None}, {"id": "x"}],
)
def test_a_listing_that_cannot_be_read_is_no_offer(changes: dict[str, Any]) -> None:
    """A price as text or null is not guessed at."""
    with pytest.raises(Misread, match=next(iter(changes))):
        to_offer({**LISTED, **changes}, Wish())


def test_a_field_that_vanished_is_named() -> None:
    """Its name stands in the error."""
    with pytest.raises(Misread, match="'dph_base' is missing"):
        to_offer({name: value for name, value in LISTED.items() if name != "dph_base"}, Wish())


@pytest.mark.parametrize(("least", "spot"), [(None, None), (120.0, None), (0.0, 0.051)])
def test_a_bid_is_within_what_is_taken(least: float | None, spot: float | None) -> None:
    """None at all above 128 USD, and 0.001 at least."""
    found = to_offer({**LISTED, "min_bid": least}, Wish(bid_factor=1.2)).spot_price
    assert found == (spot if spot is None else pytest.approx(spot))


def test_the_question_narrows_down_to_what_can_be_used() -> None:
    """Listings that end too early, cannot be reached directly, or have another number of GPUs are not asked for."""
    asked = query(Spec(accelerator="H100:8", timeout=86400, disk_gb=200, vcpus=32, region="FR"), Wish(cuda="12.8"))
    assert {"gte": 86400} == asked["duration"]
    assert {"gte": 1} == asked["direct_port_count"]
    assert {"eq": 8} == asked["num_gpus"]
    assert ({"gte": 200}, 200) == (asked["disk_space"], asked["allocated_storage"])
    assert {"in": ["FR"]} == asked["geolocation"]
    assert {"gte": 12.8} == asked["cuda_max_good"]
    assert {"gte": 32} == asked["cpu_cores_effective"]
    assert {"in": ["amd64", "arm64"]} == asked["cpu_arch"]


@pytest.mark.parametrize(
    ("asked", "least"), [("A100", 40), ("A100:2", 40), (accelerators.A100(), 80), ("A100-40GB", 40), ("T4", 16)]
)
def test_the_question_asks_for_the_smallest_memory_that_will_do(asked: Any, least: int) -> None:
    """A name alone means any, and a driver reports a little less than a card is sold under."""
    ram = query(Spec(accelerator=asked), Wish())["gpu_ram"]["gte"]
    assert 0.9 * least * 1024 - 1 <= ram <= least * 1024


def test_unverified_machines_are_let_in_by_leaving_the_filter_out() -> None:
    """`verified: false` would ask for nothing but them."""
    assert {"eq": True} == query(Spec(), Wish())["verified"]
    assert "verified" not in query(Spec(), Wish(verified=False))
    assert "duration" not in query(Spec(), Wish())


@pytest.mark.parametrize(("asked", "rented"), [(None, 32), (1, 8), (40.2, 41)])
def test_a_disk_is_rented_whole_and_never_smaller_than_there_are(asked: float | None, rented: int) -> None:
    """What is priced is what is rented."""
    assert rented == disk_gb(Spec(disk_gb=asked))


def test_a_machine_that_runs_is_reached_at_its_hosts_address_and_the_mapped_port() -> None:
    """Blanks around the address are none of it, and no proxy is between."""
    instance = described(RENTED, KeyPair(), known_hosts="/pins/27000001")
    assert isinstance(instance.address, SSHAddress)
    assert ("203.0.113.7", 40123, "root", "/pins/27000001") == (
        instance.address.host,
        instance.address.port,
        instance.address.user,
        instance.address.known_hosts,
    )
    assert (InstanceState.RUNNING, 3, "DE", 0.42) == (
        instance.state,
        instance.node,
        instance.region,
        instance.hourly_rate,
    )


@pytest.mark.parametrize("missing", [{"ports": None}, {"ports": {}}, {"public_ipaddr": None}])
def test_a_machine_without_an_address_is_on_its_way(missing: dict[str, Any]) -> None:
    """It runs for us once it can be reached."""
    instance = described({**RENTED, **missing}, KeyPair())
    assert (InstanceState.PENDING, None) == (instance.state, instance.address)


OUTBID = {"is_bid": True, "intended_status": "stopped", "cur_state": "stopped", "next_state": "stopped"}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"actual_status": None}, InstanceState.PENDING),
        ({"actual_status": "created"}, InstanceState.PENDING),
        ({"actual_status": "loading"}, InstanceState.PENDING),
        ({"actual_status": "rebooting"}, InstanceState.PENDING),
        ({"actual_status": None, "cur_state": "stopped"}, InstanceState.PENDING),
        ({"actual_status": "running"}, InstanceState.RUNNING),
        ({"actual_status": "stopped"}, InstanceState.ENDING),
        ({"actual_status": "frozen"}, InstanceState.ENDING),
        ({"actual_status": "exited"}, InstanceState.ENDING),
        ({"actual_status": "unknown"}, InstanceState.ENDING),
        ({"actual_status": "offline"}, InstanceState.ENDING),
        ({**OUTBID, "actual_status": "exited"}, InstanceState.ENDING),
        ({**OUTBID, "actual_status": None}, InstanceState.ENDING),
        ({**OUTBID, "actual_status": "running"}, InstanceState.ENDING),
        ({"actual_status": "created", "status_msg": "Error: OCI runtime create failed: x"}, InstanceState.ENDING),
    ],
)
def test_whatever_is_billed_and_of_no_use_is_to_be_ended(changes: dict[str, Any], expected: InstanceState) -> None:
    """A machine that was outbid is stopped, and its disk is billed on: it never counts as gone."""
    assert expected is state({**RENTED, **changes})


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"actual_status": "offline", "status_msg": "no heartbeat"}, "its status is offline: no heartbeat"),
        ({"actual_status": "exited", "status_msg": None}, "its status is exited"),
        ({**OUTBID, "actual_status": "running"}, "it is stopped, as a bid that was outbid is"),
        ({"actual_status": "loading", "status_msg": "pulling"}, None),
    ],
)
def test_the_reason_is_in_vasts_words(changes: dict[str, Any], expected: str | None) -> None:
    """The word for its state, and what its host says; what runs or is on its way needs none."""
    assert expected == described({**RENTED, **changes}).reason


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"is_bid": None}, "'is_bid' is not true or false but None"),
        ({"dph_total": "0.42"}, "'dph_total' is not a number"),
        ({"ports": {"22/tcp": [{"HostPort": "many"}]}}, "'HostPort' is not the number of a port but 'many'"),
    ],
)
def test_what_cannot_be_read_of_a_machine_hides_it_not(
    changes: dict[str, Any], said: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A price as text, or a port that is none, is not guessed at: it is not known, with a warning."""
    name = 27100000 + len(said)
    assert str(name) == described({**RENTED, **changes, "id": name}, KeyPair()).id
    assert f"provider=vastai instance='{name}' field=" in caplog.text
    assert said in caplog.text


def test_a_slow_pull_is_told() -> None:
    """Where nothing runs yet, what it does is known."""
    assert "image pull" == described({**RENTED, "actual_status": "loading"}).doing
    assert described(RENTED, KeyPair()).doing is None


NAMES = st.text(max_size=300)
WORDS = st.from_regex(r"[0-9a-f]{1,16}", fullmatch=True)


@given(pool=WORDS, token=WORDS, client=WORDS, owner=NAMES, name=NAMES, node=st.integers(0, 10**6) | st.none())
def test_a_label_tells_whose_a_machine_is_whatever_it_is_called(
    pool: str, token: str, client: str, owner: str, name: str, node: int | None
) -> None:
    """It fits; what has no room is cut from owner and name alone."""
    written = label(Tags(pool_id=pool, pool_name=name, owner=owner, client=client, token=token, node=node))
    found = tags_of(written)
    assert len(written) <= LONGEST
    assert found is not None
    assert (pool, token, client, node, None) == (
        found.pool_id,
        found.token,
        found.client,
        found.node,
        found.expires_at,
    )
    assert owner.startswith(found.owner)
    assert name.startswith(found.pool_name)


@pytest.mark.parametrize("text", [None, "", "web", "skyward", "skyward///////", "skyward-notes/1/2/3/4/5/6"])
def test_others_labels_are_none_of_ours(text: str | None) -> None:
    """A machine that was rented by hand is never touched."""
    assert tags_of(text) is None
