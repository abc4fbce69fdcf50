"""
A query is a value that each step makes narrower; what has no meaning is refused at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import skyward as sky
from skyward.errors import ConfigError
from skyward.hookspecs import Offer
from skyward.market.query import Query
from skyward.market.repository import Offers
from tests.market.clouds import Cloud, gpu

SOLD = (
    gpu("NVIDIA H100 80GB HBM3", 2.5, spot_price=1.0, accelerator_memory_gb=80, instance_type="h100", region="r1"),
    gpu("H100 PCIe", 16.0, accelerator_count=8, accelerator_memory_gb=80, instance_type="h100x8", region="r2"),
    gpu("A100", 1.5, spot_price=1.2, accelerator_memory_gb=40, instance_type="a100", region="r1", vcpus=12),
    gpu("MI300X", 3.0, instance_type="mi300x", region="r2", memory_gb=256, available=False),
    Offer(provider="cloud", instance_type="cpu", region="r1", vcpus=4, memory_gb=16, on_demand_price=0.1),
    Offer(provider="cloud", instance_type="unpriced", region="r2", vcpus=64, memory_gb=512),
)


@pytest.fixture
def offers() -> Offers:
    """Give a repository of what one cloud with two regions sells."""
    return sky.offers([Cloud(sold=SOLD, regions=("r1", "r2"))])


def types(query: Query) -> list[str]:
    """Return the names of the machines that a query finds, in its order."""
    return [offer.instance_type for offer in query.all()]


@pytest.mark.parametrize(
    ("ask", "expected"),
    [
        (lambda offers: offers.select(), ["cpu", "h100", "a100", "mi300x", "h100x8", "unpriced"]),
        (lambda offers: offers.accelerator("H100"), ["h100", "h100x8"]),
        (lambda offers: offers.accelerator("H100:4"), ["h100x8"]),
        (lambda offers: offers.accelerator("A100"), ["a100"]),
        (lambda offers: offers.accelerator(sky.accelerators.A100()), []),
        (lambda offers: offers.accelerator(sky.accelerators.A100(memory="40GB")), ["a100"]),
        (lambda offers: offers.accelerator(sky.accelerators.H100(form_factor="SXM")), ["h100"]),
        (lambda offers: offers.provider("Cloud").limit(2), ["cpu", "h100"]),
        (lambda offers: offers.region("R1"), ["cpu", "h100", "a100"]),
        (lambda offers: offers.architecture("hopper"), ["h100", "h100x8"]),
        (lambda offers: offers.manufacturer("amd"), ["mi300x"]),
        (lambda offers: offers.cpu_only(), ["cpu", "unpriced"]),
        (lambda offers: offers.select().accelerator_memory("48GB"), ["h100", "mi300x", "h100x8"]),
        (lambda offers: offers.select().accelerator_memory(40, 80), ["h100", "a100", "h100x8"]),
        (lambda offers: offers.select().accelerator_count(8), ["h100x8"]),
        (lambda offers: offers.select().vcpus(min=12), ["a100", "unpriced"]),
        (lambda offers: offers.select().memory("0.25TB"), ["mi300x", "unpriced"]),
        (lambda offers: offers.select().spot(), ["h100", "a100"]),
        (lambda offers: offers.select().on_demand().max_price(2), ["cpu", "a100"]),
        (lambda offers: offers.select().max_price(1.2), ["cpu", "h100", "a100"]),
        (lambda offers: offers.cpu_only().order_by("-vcpus"), ["unpriced", "cpu"]),
        (lambda offers: offers.cpu_only().order_by("provider").order_by("-memory_gb"), ["unpriced", "cpu"]),
        (lambda offers: offers.architecture("Hopper").region("r2").on_demand().accelerator_count(2), ["h100x8"]),
    ],
)
def test_each_step_narrows(offers: Offers, ask: Callable[[Offers], Query], expected: list[str]) -> None:
    """What is found is what meets all that was asked for, cheapest first."""
    assert expected == types(ask(offers))
    assert len(expected) == ask(offers).count()


def test_the_cheapest_are_those_that_can_be_had(offers: Offers) -> None:
    """Neither what has no price nor what is sold out; one without a number, a list with one."""
    assert "cpu" == offers.select().cheapest().instance_type
    assert ["cpu", "h100", "a100", "h100x8"] == [offer.instance_type for offer in offers.select().cheapest(10)]
    assert ["cpu", "h100"] == [offer.instance_type for offer in offers.select().limit(2).cheapest(10)]
    assert ["cpu"] == [offer.instance_type for offer in offers.select().order_by("-vcpus").cheapest(1)]


def test_where_nothing_is_found_there_is_none(offers: Offers) -> None:
    """And an empty list, and no count."""
    query = offers.accelerator("L4")
    assert (None, None) == (query.first(), query.cheapest())
    assert ([], [], 0) == (query.all(), query.cheapest(3), query.count())


def test_the_first_is_that_of_the_order(offers: Offers) -> None:
    """The lowest price where no order is given."""
    assert "cpu" == offers.select().first().instance_type
    assert "unpriced" == offers.select().order_by("-vcpus").first().instance_type


def test_a_query_is_a_value(offers: Offers) -> None:
    """A step changes nothing, and the same steps make the same query."""
    query = offers.accelerator("H100")
    assert query.spot() == offers.accelerator("H100").spot() != query
    assert {query.spot(): 1}[query.spot()] == 1
    assert query.wanted.way is None


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda q: q.accelerator("H1000"), "accelerator='H1000' is no accelerator .* Did you mean H100"),
        (lambda q: q.accelerator(None), r"not None. Write cpu_only\(\)"),
        (lambda q: q.provider("clod"), "provider='clod' is none .* Did you mean \"cloud\""),
        (lambda q: q.region("r3"), "region='r3' is none .* Accepted: r1, r2"),
        (lambda q: q.architecture("Hoper"), "architecture='Hoper' is none .* Did you mean \"Hopper\""),
        (lambda q: q.manufacturer("Nvida"), "manufacturer='Nvida' is none .* Did you mean \"NVIDIA\""),
        (lambda q: q.manufacturer(3), "manufacturer=3 is none"),
        (lambda q: q.accelerator_memory("much"), "min_gb must be an amount of memory"),
        (lambda q: q.accelerator_memory(80, 40), "max_gb=40 is less than min_gb=80"),
        (lambda q: q.accelerator_count(0), "accelerator_count must be a finite number above zero"),
        (lambda q: q.vcpus("4"), "vcpus must be a finite number above zero, not '4'"),
        (lambda q: q.memory(-1), "memory must be finite and more than zero"),
        (lambda q: q.max_price(-1), "max_price must be a finite number above zero"),
        (lambda q: q.max_price(False), "max_price must be a finite number"),
        (lambda q: q.order_by("vcpu"), 'Did you mean "vcpus"'),
        (lambda q: q.limit(0), "limit must be a whole number of at least 1"),
        (lambda q: q.cheapest(0), "n must be a whole number of at least 1"),
        (lambda q: q.spot().on_demand(), "exclude each other"),
        (lambda q: q.cpu_only().accelerator("T4"), "exclude each other"),
        (lambda q: q.accelerator_count(2).cpu_only(), "exclude each other"),
    ],
)
def test_what_has_no_meaning_is_refused(offers: Offers, ask: Callable[[Query], Any], message: str) -> None:
    """At the step itself, with the nearest that would be right."""
    with pytest.raises(ConfigError, match=message):
        ask(offers.select())


def test_any_region_may_be_asked_for_where_a_provider_does_not_say(offers: Offers) -> None:
    """What it sells there is seen when it is asked."""
    silent = sky.offers([Cloud(sold=SOLD)])
    assert 0 == silent.region("r3").count()
    assert 3 == silent.region("r1").count()
    with pytest.raises(ConfigError, match="region must not be blank"):
        silent.region(" ")


def test_what_was_written_can_t_be_more_than_a_value(offers: Offers) -> None:
    """Text with SQL in it is a name that nothing has."""
    assert 0 == sky.offers([Cloud(sold=SOLD)]).region("r1' OR '1'='1").count()
    assert 6 == offers.select().count()
