"""
The smallest machine that will do is chosen.
"""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest

from skyward.errors import ConfigError, NoAvailableProviderError
from skyward.model.accelerators.accelerator import Accelerator
from skyward.model.accelerators.fit import select_instance


def offer(name: str, vcpus: float, memory_gb: float, **more: object) -> SimpleNamespace:
    """Return an offer with what is always there, and more."""
    return SimpleNamespace(instance_type=name, vcpus=vcpus, memory_gb=memory_gb, **more)


OFFERS = [
    offer("a100x8", 96, 1152, accelerator_name="A100-SXM4-40GB", accelerator_count=8, accelerator_memory_gb=40),
    offer("h100x8", 192, 2048, accelerator_name="NVIDIA H100 80GB HBM3", accelerator_count=8),
    offer("h100x1", 32, 256, accelerator_name="H100", accelerator_count=1, accelerator_memory_gb=80),
    offer("large", 64, 256),
    offer("small", 4, 16, accelerator_name=None, accelerator_count=0),
]


@pytest.mark.parametrize(
    ("wishes", "expected"),
    [
        ({}, "small"),
        ({"cpu": 8}, "large"),
        ({"memory": "128GB"}, "large"),
        ({"memory": 300}, "a100x8"),
        ({"accelerator": "H100"}, "h100x1"),
        ({"accelerator": "H100:4"}, "h100x8"),
        ({"accelerator": "H100", "cpu": 33}, "h100x8"),
        ({"accelerator": "H100", "cpu": 32, "memory": "128GB"}, "h100x1"),
        ({"accelerator": "A100"}, "a100x8"),
        ({"accelerator": Accelerator("A100", memory_gb=40)}, "a100x8"),
    ],
)
def test_the_smallest_that_will_do_is_chosen(wishes: dict[str, object], expected: str) -> None:
    """Accelerators count first, so that no user pays for one who asked for none."""
    assert expected == select_instance(OFFERS, **wishes).instance_type  # type: ignore[arg-type]


def test_of_machines_alike_the_cheapest_is_chosen() -> None:
    """The lower of the two prices counts."""
    dear = offer("dear", 4, 16, on_demand_price=2.0, spot_price=None)
    cheap = offer("cheap", 4, 16, on_demand_price=3.0, spot_price=0.5)
    assert cheap is select_instance([dear, cheap])


def test_of_equals_the_first_is_chosen() -> None:
    """The order of the offers is kept where nothing else decides."""
    first, second = offer("first", 4, 16), offer("second", 4, 16)
    assert first is select_instance(iter([first, second]))


def test_where_none_will_do_each_wish_is_counted() -> None:
    """The error says which requirement excludes how many."""
    with pytest.raises(
        NoAvailableProviderError,
        match=r"None of 5 offers will do: accelerator='A100-80GB' excludes 5, cpu=16 excludes 1, memory='64GB' exclud",
    ):
        select_instance(OFFERS, accelerator="A100-80GB", cpu=16, memory="64GB")


def test_no_offers_are_said_to_be_none() -> None:
    """Nothing to choose from is an error, not None."""
    with pytest.raises(NoAvailableProviderError, match=r"None of 0 offers will do"):
        select_instance([])


@pytest.mark.parametrize("cpu", [0, -1, math.nan, math.inf, True, "8"])
def test_vcpus_are_a_number(cpu: object) -> None:
    """What no machine can have is refused by name."""
    with pytest.raises(ConfigError, match=r"^cpu must be a number of vCPUs above zero"):
        select_instance(OFFERS, cpu=cpu)  # type: ignore[arg-type]


def test_an_unknown_accelerator_is_refused() -> None:
    """A typing error is not the same as nothing on offer."""
    with pytest.raises(ConfigError, match=r"accelerator='H1000' is no accelerator"):
        select_instance(OFFERS, accelerator="H1000")
