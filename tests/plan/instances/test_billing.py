"""What machines cost: rounding, sums, budgets, and where time went."""

from __future__ import annotations

import contextlib
import math
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given, strategies as st

from skyward.errors import BudgetExceededError
from skyward.plan.instances.billing import (
    ENDING_S,
    BilledLife,
    Tariff,
    billed_seconds,
    check_launch,
    check_running,
    committed,
    cost_at,
    highest_rate,
    receipt_of,
)

CENT_A_SECOND = Tariff(hourly_rate=36.0, on_demand_rate=72.0, granularity_s=1.0, minimum_s=60.0)

TIMES = st.floats(0.0, 1e6)
TARIFFS = st.builds(
    Tariff,
    hourly_rate=st.floats(0.0, 100.0),
    on_demand_rate=st.none() | st.floats(0.0, 100.0),
    granularity_s=st.sampled_from([0.0, 1.0, 60.0, 3600.0]),
    minimum_s=st.sampled_from([0.0, 60.0, 600.0]),
)


@st.composite
def lives(draw: st.DrawFn) -> BilledLife:
    """Draw a machine whose moments come in order, some of them never."""
    moments = sorted(draw(st.lists(TIMES, min_size=6, max_size=6)))
    last = draw(st.integers(1, 6))
    names = ("launched", "reachable", "bootstrapped", "ready", "stopping", "ended")
    known: dict[str, Any] = dict(zip(names, moments, strict=True))
    passed = {name: moment for name, moment in known.items() if name in names[:last]}
    # One that is lost on its way skips what comes between.
    for name in draw(st.sets(st.sampled_from(names[1:5]))):
        passed.pop(name, None)
    return BilledLife(
        node=draw(st.integers(0, 3)),
        instance_id="i",
        tariff=draw(TARIFFS),
        spot=draw(st.booleans()),
        computed=draw(TIMES),
        **passed,
    )


@pytest.mark.parametrize(
    ("seconds", "granularity", "minimum", "billed"),
    [
        (0.0, 1, 60, 60),
        (59.2, 1, 60, 60),
        (60.0, 1, 60, 60),
        (60.1, 1, 60, 61),
        (3600.0, 3600, 0, 3600),
        (3600.0000000001, 3600, 0, 3600),
        (3600.1, 3600, 0, 7200),
        (0.0, 3600, 0, 3600),
        (12.5, 0, 0, 12.5),
        (12.5, 0, 60, 60),
        (61.0, 60, 90, 120),
        (-1.0, 0, 0, 0),
    ],
)
def test_time_is_rounded_as_the_cloud_does(seconds: float, granularity: float, minimum: float, billed: float) -> None:
    """Granules that began count whole, and a short life counts as the shortest that is billed."""
    assert billed == billed_seconds(seconds, granularity, minimum)


@given(TIMES, st.sampled_from([0.0, 1.0, 60.0, 3600.0]), st.sampled_from([0.0, 60.0, 600.0]))
def test_rounding_goes_up_by_less_than_a_granule(seconds: float, granularity: float, minimum: float) -> None:
    """What is billed is no less than what was used, and no more than a granule above it or the minimum."""
    billed = billed_seconds(seconds, granularity, minimum)
    least = max(seconds, minimum)
    assert least * (1 - 1e-8) - 1e-6 <= billed <= max(least + granularity, granularity)
    assert granularity == 0.0 or math.isclose(0.0, math.remainder(billed, granularity), abs_tol=1e-6)


@given(st.lists(lives(), max_size=3), TIMES, TIMES)
def test_cost_never_decreases(machines: list[BilledLife], one: float, other: float) -> None:
    """As time goes by a pool owes more or the same, and so it is with what it would owe if it ended."""
    earlier, later = sorted((one, other))
    assert cost_at(machines, earlier).accumulated <= cost_at(machines, later).accumulated
    assert committed(machines, earlier) <= committed(machines, later)


@given(st.lists(lives(), max_size=3), TIMES)
def test_what_ending_adds_is_counted(machines: list[BilledLife], now: float) -> None:
    """What is owed once all is given back is never less than what is owed now."""
    assert cost_at(machines, now).accumulated <= committed(machines, now)


@given(st.lists(lives(), max_size=3), st.lists(lives(), max_size=3), TIMES)
def test_pools_add_up(ones: list[BilledLife], others: list[BilledLife], now: float) -> None:
    """The cost of all machines is that of some plus that of the rest."""
    whole, one, other = cost_at(ones + others, now), cost_at(ones, now), cost_at(others, now)
    assert math.isclose(whole.accumulated, one.accumulated + other.accumulated, abs_tol=1e-6)
    assert math.isclose(whole.hourly_rate, one.hourly_rate + other.hourly_rate, abs_tol=1e-6)
    assert math.isclose(whole.savings, one.savings + other.savings, abs_tol=1e-3)
    assert whole.spot_count == one.spot_count + other.spot_count
    assert whole.ondemand_count == one.ondemand_count + other.ondemand_count


@given(lives(), TIMES)
def test_the_parts_of_a_machine_s_time_add_up(life: BilledLife, later: float) -> None:
    """Booting, preparing, computing, idle and ending are the whole life, and none of them is negative."""
    (node,) = receipt_of([life], life.launched + later).nodes
    parts = (node.booting, node.preparing, node.computing, node.idle, node.ending)
    assert all(part >= -1e-6 for part in parts)
    assert math.isclose(node.seconds, sum(parts), abs_tol=1e-6)
    assert node.billed_seconds == 0.0 or node.billed_seconds >= node.seconds * (1 - 1e-8) - 1e-6


@given(st.lists(lives(), max_size=3), TIMES)
def test_a_receipt_is_the_sum_of_its_machines(machines: list[BilledLife], now: float) -> None:
    """The total is what the machines cost, and the same that the pool said it costs."""
    receipt = receipt_of(machines, now)
    assert math.isclose(receipt.total_cost, sum(node.cost for node in receipt.nodes), abs_tol=1e-6)
    assert receipt.total_cost == cost_at(machines, now).accumulated


def test_time_is_split_by_what_a_machine_was_about() -> None:
    """A machine that did all there is to do has a number for each of it."""
    life = BilledLife(
        node=0, instance_id="a", launched=10, reachable=50, bootstrapped=60, ready=70, stopping=170, ended=180,
        computed=30, tariff=CENT_A_SECOND,
    )  # fmt: skip
    (node,) = receipt_of([life], 1000).nodes
    assert (40, 20, 30, 70, 10) == (node.booting, node.preparing, node.computing, node.idle, node.ending)
    assert (170, 170, True) == (node.seconds, node.billed_seconds, node.ended)
    assert math.isclose(1.7, node.cost)


@pytest.mark.parametrize(
    ("moments", "parts"),
    [
        ({}, (100, 0, 0, 0, 0)),
        ({"reachable": 40}, (40, 60, 0, 0, 0)),
        ({"reachable": 40, "stopping": 60}, (40, 20, 0, 0, 40)),
        ({"stopping": 30}, (30, 0, 0, 0, 70)),
        ({"ready": 40, "stopping": 90}, (40, 0, 25, 25, 10)),
    ],
)
def test_a_moment_that_never_came_is_that_of_the_next(moments: dict[str, float], parts: tuple[float, ...]) -> None:
    """A machine that was lost on its way spent its time in the phase that it was lost in."""
    (node,) = receipt_of([BilledLife(node=0, instance_id="a", launched=0, computed=25, **moments)], 100).nodes
    assert parts == (node.booting, node.preparing, node.computing, node.idle, node.ending)


def test_savings_are_against_on_demand() -> None:
    """A machine at half the price saves as much as it costs; one whose other price is not known saves nothing."""
    spot = BilledLife(node=0, instance_id="a", launched=0, tariff=CENT_A_SECOND, spot=True)
    unknown = evolve(spot, tariff=evolve(CENT_A_SECOND, on_demand_rate=None), spot=False)
    cost = cost_at([spot, unknown], 100)
    assert math.isclose(1.0, cost.savings)
    assert math.isclose(2.0, cost.accumulated)
    assert (72.0, 1, 1, 100.0) == (cost.hourly_rate, cost.spot_count, cost.ondemand_count, cost.seconds)


def test_what_has_ended_costs_no_more() -> None:
    """A machine counts until its end was confirmed, and its rate counts for nothing after that."""
    life = BilledLife(node=0, instance_id="a", launched=0, ended=100, tariff=CENT_A_SECOND)
    assert cost_at([life], 100) == cost_at([life], 5000)
    assert (1.0, 0.0, 0) == (cost_at([life], 100).accumulated, cost_at([life], 100).hourly_rate, life.spot)


def test_what_costs_nothing_is_not_counted() -> None:
    """Machines without a price have times and no bill."""
    free = BilledLife(node=0, instance_id="a", launched=0, tariff=Tariff(granularity_s=3600))
    cost, receipt = cost_at([free], 100), receipt_of([free], 100)
    assert (0, 0, 0) == (cost.accumulated, cost.ondemand_count, cost.seconds)
    assert (100, 100, 0) == (receipt.seconds, receipt.nodes[0].seconds, receipt.nodes[0].billed_seconds)


def test_the_highest_rate_is_that_of_one_moment() -> None:
    """A replacement does not count together with what it replaced."""
    first = BilledLife(node=0, instance_id="a", launched=0, ended=10, tariff=CENT_A_SECOND)
    second = evolve(first, instance_id="b", launched=10, ended=None)
    assert 36.0 == highest_rate([first, second])
    assert 72.0 == highest_rate([first, evolve(second, launched=9)])
    assert 0.0 == highest_rate([])


def test_what_was_foreseen_is_each_node_once_for_the_time_it_was_given() -> None:
    """Replacements were not foreseen, and without a planned time nothing was."""
    first = BilledLife(node=0, instance_id="a", launched=0, ended=10, tariff=CENT_A_SECOND)
    again = evolve(first, instance_id="b", launched=10, tariff=evolve(CENT_A_SECOND, hourly_rate=99.0))
    other = evolve(first, node=1, instance_id="c")
    assert 20.0 == receipt_of([first, again, other], 20, planned_s=1000).foreseen
    assert receipt_of([first], 20).foreseen is None


@pytest.mark.parametrize(("count", "budget"), [(1, 0.61), (2, 1.21)])
def test_machines_are_rented_where_the_budget_pays_them_to_the_end(count: int, budget: float) -> None:
    """The shortest time that is billed fits, for all machines together."""
    assert math.isclose(count * 0.6, check_launch([], CENT_A_SECOND, count, budget=budget, now=0, pool="p"))


@pytest.mark.parametrize(("count", "budget"), [(1, 0.6), (2, 1.2), (2, 0.61)])
def test_nothing_is_rented_that_a_budget_cannot_pay_to_the_end(count: int, budget: float) -> None:
    """Where the shortest time that is billed would use it up, nothing is rented."""
    with pytest.raises(BudgetExceededError, match=r"rents no more"):
        check_launch([], CENT_A_SECOND, count, budget=budget, now=0, pool="p")


def test_a_refused_launch_says_its_figures() -> None:
    """The error names the machines, what they cost at least, what is owed, and the budget."""
    life = BilledLife(node=0, instance_id="a", launched=0, tariff=CENT_A_SECOND)
    said = (
        r"'train' rents no more: 2 machines at \$36\.00 an hour cost at least \$1\.20 by the time they are terminated, "
        r"with \$2\.30 owed for others, and the budget is \$3\.00\."
    )
    with pytest.raises(BudgetExceededError, match=said) as caught:
        check_launch([life], CENT_A_SECOND, 2, budget=3.0, now=170, reserved=0.3, pool="train")
    assert (3.0, 3.5) == (caught.value.budget, round(caught.value.cost, 6))


def test_a_pool_is_stopped_before_ending_it_breaks_the_budget() -> None:
    """What is kept back pays for the machine until it is gone, to the second."""
    life = BilledLife(node=0, instance_id="a", launched=0, tariff=CENT_A_SECOND)
    limit = 10.0 * 100 - ENDING_S - 1
    check_running([life], budget=10.0, now=limit - 1, within=1, pool="p")
    with pytest.raises(BudgetExceededError, match=r"has cost \$9\.69.* raise to \$10\.00, and its budget is \$10\.00"):
        check_running([life], budget=10.0, now=limit, within=1, pool="p")


def test_a_granule_that_would_begin_is_not_waited_for() -> None:
    """Where hours are billed whole, a pool is stopped in time for the next one not to begin."""
    life = BilledLife(node=0, instance_id="a", launched=0, tariff=Tariff(hourly_rate=6.0, granularity_s=3600))
    check_running([life], budget=10.0, now=3600 - ENDING_S - 2, within=1, pool="p")
    with pytest.raises(BudgetExceededError, match=r"has cost \$6\.00"):
        check_running([life], budget=10.0, now=3600 - ENDING_S, within=1, pool="p")


def test_a_pool_that_is_being_left_is_not_stopped() -> None:
    """What is given back already cannot be given back sooner."""
    life = BilledLife(node=0, instance_id="a", launched=0, stopping=99, tariff=CENT_A_SECOND)
    check_running([life], budget=0.5, now=100, within=1, pool="p")


@given(st.lists(lives(), max_size=3), TARIFFS, st.integers(1, 8), st.floats(0.01, 1000.0), TIMES)
def test_what_may_be_rented_may_also_run(
    machines: list[BilledLife], tariff: Tariff, count: int, budget: float, now: float
) -> None:
    """A launch that was allowed is not stopped in the same moment."""
    with contextlib.suppress(BudgetExceededError):
        check_launch(machines, tariff, count, budget=budget, now=now, pool="p")
        new = [BilledLife(node=9, instance_id=f"new-{index}", launched=now, tariff=tariff) for index in range(count)]
        assert committed([*machines, *new], now) <= budget * (1 + 1e-9)
