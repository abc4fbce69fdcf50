"""What programs read of machines, images, pools and offers: plain values under keys that stay."""

from __future__ import annotations

from attrs import evolve

from skyward.cli.json_facts import detached_facts, instance_facts, offer_facts
from skyward.model.instances.machine import Instance
from skyward.model.instances.offer import Offer
from skyward.model.instances.tags import Tags
from skyward.plan.instances.detached_pool import Detached

TRAIN = Instance(
    id="i-1", node=0, provider="aws", tags=Tags(pool_id="a1", pool_name="train", owner="ada@box", expires_at=1000.0)
)


def test_a_machine_has_its_pool_and_its_expiry() -> None:
    """What is not known is null, never a word."""
    facts = instance_facts(TRAIN)
    assert ("train", "a1", "ada@box", 1000.0, None) == tuple(
        facts[key] for key in ("pool", "pool_id", "owner", "expires_at", "region")
    )
    assert (None, None) == (instance_facts(evolve(TRAIN, tags=None))["pool"], instance_facts(TRAIN)["hourly_rate"])


def test_a_machine_without_a_client_ends_when_its_lease_does() -> None:
    """Unless it is being ended, as its tags say."""
    waits = {("aws", "i-1"): ("lingering", 4600.0)}
    facts = instance_facts(TRAIN, waits)
    assert ("lingering", 4600.0) == (facts["state"], facts["expires_at"])
    ending = evolve(TRAIN, tags=Tags(pool_id="a1", expires_at=0.0))
    assert 0 == instance_facts(ending, waits)["expires_at"]


def test_a_detached_pool_has_no_secret() -> None:
    """But all that the table has."""
    about = Detached(
        pool_id="a1",
        pool_name="train",
        provider="aws",
        machines=("i-1",),
        calls=3,
        hourly_rate=1.5,
        since=10.0,
        ends_at=20.0,
        runtime="4f",
    )
    assert {
        "pool": "train",
        "pool_id": "a1",
        "provider": "aws",
        "machines": ["i-1"],
        "calls": 3,
        "hourly_rate": 1.5,
        "left_at": 10.0,
        "ends_at": 20.0,
        "client_died": False,
    } == detached_facts(about)


def test_an_offer_has_both_prices() -> None:
    """One in which it is not sold is null."""
    facts = offer_facts(Offer(provider="aws", instance_type="p5", accelerator_name="H100", accelerator_count=8))
    assert ("H100", 8, None, None) == tuple(
        facts[key] for key in ("accelerator", "accelerator_count", "spot_price", "on_demand_price")
    )
