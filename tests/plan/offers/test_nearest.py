"""What comes nearest has the accelerators that were asked for, and the error says what to write to get it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given, strategies as st

from skyward.model.accelerators.accelerator import Accelerator
from skyward.model.accelerators.accelerator_factories import Custom
from skyward.model.instances.offer import Offer
from skyward.model.spec.spec import Spec
from skyward.plan.offers.choice import choose, in_order
from skyward.plan.offers.nearest import Rejection, broader, changes, has_device, nearest


def gpu(name: str, memory: float | None, count: float = 1, price: float | None = 1.0, **more: Any) -> Offer:
    """Return an offer with accelerators."""
    return Offer(
        provider="x",
        instance_type=f"{count:g}{name}-{memory or ''}",
        accelerator_name=name,
        accelerator_memory_gb=memory,
        accelerator_count=count,
        on_demand_price=price,
        **more,
    )


CPU = Offer(provider="x", instance_type="cpu", vcpus=4, memory_gb=16, on_demand_price=0.1)
T4 = gpu("T4", 16, price=0.5)
SMALL, LARGE = gpu("A100", 40, price=1.2), gpu("A100", 80, price=1.9)
EIGHT = gpu("A100-SXM4-40GB", 40, 8, 9.0, region="us", vcpus=96)


@pytest.mark.parametrize(
    ("asked", "sold", "said"),
    [
        (
            {"accelerator": "A100-80GB"},
            [CPU, T4, SMALL],
            'Nearest is 1A100-40, $1.2/h on demand, with accelerator=1 × A100 40GB. Write accelerator="A100-40GB" to',
        ),
        ({"accelerator": "A100-40GB"}, [CPU, T4, LARGE], 'Write accelerator="A100-80GB" to get it.'),
        ({"accelerator": "A100:4"}, [CPU, T4, LARGE, SMALL], 'Write accelerator="A100-40GB" to get it.'),
        ({"accelerator": "A100:16"}, [CPU, SMALL, EIGHT], 'Write accelerator="A100-40GB:8" to get it.'),
        ({"accelerator": "A100-80GB:8"}, [CPU, LARGE, EIGHT], "with accelerator=8 × A100 40GB. Write acc"),
        (
            {"accelerator": "A100:8", "region": "eu", "vcpus": 128},
            [CPU, T4, EIGHT],
            'with vcpus=96, region=us. Write vcpus=96, region="us" to get it.',
        ),
        ({"accelerator": "T4", "memory_gb": 8}, [CPU, T4], "with memory_gb=unknown. Leave out memory_gb to get it."),
        ({"accelerator": "T4:2", "vcpus": 8}, [CPU, T4], 'Write accelerator="T4" and leave out vcpus to get it.'),
        (
            {"accelerator": "A100", "allocation": "spot", "max_hourly_cost": 0.2},
            [CPU, SMALL],
            'Write allocation="on-demand", max_hourly_cost=1.2 to get it.',
        ),
        ({"accelerator": "A100-80GB"}, [CPU, evolve(SMALL, available=False)], "none left, with accelerator=1 × A100"),
        (
            {"accelerator": "A100"},
            [gpu("A100", 10)],
            'Write accelerator=sky.accelerators.Custom("A100", memory="10GB") to get it.',
        ),
        (
            {"accelerator": "A100"},
            [CPU, T4, gpu("H100", 80)],
            "accelerator='A100' excludes 3 of 3. A100 is not among them; the accelerators there are H100, T4.",
        ),
        ({"accelerator": "A100"}, [CPU], "accelerator='A100' excludes 1 of 1. A100 is not among them."),
        ({"machine": "1A100-88"}, [CPU, T4, EIGHT, LARGE], 'Write machine="1A100-80" to get it.'),
        ({"machine": "1A100-80"}, [CPU, evolve(LARGE, available=False), SMALL], 'Write machine="1A100-40" to get it.'),
        ({"machine": "cpu", "vcpus": 8}, [T4, CPU], "Nearest is cpu, $0.1/h on demand, with vcpus=4. Write vcpus=4"),
    ],
)  # fmt: skip
def test_the_nearest_is_told_with_what_to_write(asked: dict[str, Any], sold: list[Offer], said: str) -> None:
    """The accelerator counts first, and a machine without it is never the nearest."""
    assert said in choose(Spec(**asked), sold).why_not


OFFERS = st.lists(
    st.builds(
        Offer,
        provider=st.just("x"),
        instance_type=st.sampled_from("abc"),
        region=st.none() | st.sampled_from(["eu", "us"]),
        vcpus=st.none() | st.floats(1, 64),
        memory_gb=st.none() | st.floats(1, 512),
        disk_gb=st.none() | st.floats(1, 512),
        architecture=st.none() | st.sampled_from(["x86_64", "arm64"]),
        accelerator_name=st.none() | st.sampled_from(["A100", "H100 NVL", "T4", "unheard of", "v5p-8"]),
        accelerator_count=st.sampled_from([0, 0.5, 1, 8]),
        accelerator_memory_gb=st.none() | st.sampled_from([16, 40, 60, 80, 94]),
        spot_price=st.none() | st.floats(0.01, 100),
        on_demand_price=st.none() | st.floats(0.01, 100),
        available=st.booleans(),
    ),
    min_size=1,
    max_size=6,
)
ASKED = st.fixed_dictionaries(
    {},
    optional={
        "accelerator": st.sampled_from(
            ["A100", "A100-80GB:8", "H100-SXM", "H100:8", "T4:8", "v5p-16", Custom("unheard of", memory=99)]
        ),
        "vcpus": st.floats(1, 64),
        "memory_gb": st.floats(1, 512),
        "disk_gb": st.floats(1, 512),
        "architecture": st.sampled_from(["x86_64", "arm64"]),
        "machine": st.sampled_from("abcd"),
        "region": st.sampled_from(["eu", "us"]),
        "allocation": st.sampled_from(["spot", "on-demand", "spot-if-available"]),
        "max_hourly_cost": st.floats(0.01, 100),
    },
)


@given(ASKED, OFFERS)
def test_what_is_written_gets_the_nearest(asked: Mapping[str, Any], offers: list[Offer]) -> None:
    """It has the accelerators that were asked for, is named wherever one is sold, and what is said to write gets it."""
    spec = Spec(**asked)
    rejections = choose(spec, offers).rejections
    near = nearest(spec, rejections)
    assert (near is not None) is any(has_device(spec, one.offer) for one in rejections)
    if near is None:
        return
    assert has_device(spec, near.offer)
    written = changes(spec, near.offer)
    assert (written is None) is (not near.offer.available or near.offer.least_price is None)
    if written is None:
        return
    # Wishes are read as if they were typed anew.
    got = Spec(**{name: value for name, value in (asked | written).items() if value is not None})  # type: ignore[operator]
    assert [near.offer] == [made.offer for made in in_order(got, choose(got, [near.offer]))][:1]


def test_the_price_decides_between_equals() -> None:
    """Of offers that miss as much, the cheapest."""
    dear = evolve(SMALL, instance_type="dear", on_demand_price=2.0)
    found = nearest(Spec(accelerator="A100-80GB"), [Rejection(one, ("accelerator=",)) for one in (dear, SMALL)])
    assert found is not None
    assert SMALL == found.offer


def test_a_broader_question_finds_every_memory_and_number() -> None:
    """Whatever else is asked for; of what no catalogue has, there is nothing broader."""
    asked = Spec(accelerator="A100-80GB:16", vcpus=500, memory_gb=9000, machine="p4d", max_hourly_cost=1, region="eu")
    found = broader(asked)
    assert [("A100", count) for count in (1, 2, 4, 8)] == [
        (one.accelerator.name, one.accelerator.count) for one in found if one.accelerator
    ]
    assert {(None, None, None, None, "eu")} == {
        (one.vcpus, one.memory_gb, one.machine, one.max_hourly_cost, one.region) for one in found
    }
    assert () == broader(Spec()) == broader(Spec(accelerator=Accelerator("x", custom=True)))
