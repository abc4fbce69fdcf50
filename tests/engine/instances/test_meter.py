"""The meter on a clock of its own: what it tells, when it stops a pool, and the receipt."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from skyward.engine.calls.answer import Answer
from skyward.engine.instances.meter import Meter
from skyward.errors import BudgetExceededError
from skyward.model.events import event as events
from skyward.model.instances.cost_report import FirstResult
from skyward.model.instances.instance import InstanceInfo
from skyward.model.instances.machine import Instance, ProviderFacts

FACTS = ProviderFacts(name="cloud", ends_own_bill=True, billing_granularity_s=1.0, minimum_billed_s=60.0)


class Bench:
    """A meter, a clock that stands until it is moved, and what was told."""

    def __init__(self, budget: float | None = None, planned: float | None = None) -> None:
        self.now = 0.0
        self.timers: list[tuple[float, Callable[[], None]]] = []
        self.told: list[events.SkywardEvent] = []
        self.stopped: list[tuple[float, BudgetExceededError, Answer]] = []
        self.meter = Meter(budget=budget, pool="p", clock=lambda: self.now, later=self._later)
        self.meter.begin(FACTS, planned, self._stop, self.told.append)

    def _later(self, seconds: float, do: Callable[[], None]) -> None:
        self.timers.append((self.now + seconds, do))

    def _stop(self, error: BudgetExceededError, answer: Answer) -> None:
        self.stopped.append((self.now, error, answer))

    def until(self, moment: float) -> None:
        """Let time go by, with all that is due in it."""
        while due := [timer for timer in self.timers if timer[0] <= moment]:
            first = min(due, key=lambda timer: timer[0])
            self.timers.remove(first)
            self.now = first[0]
            first[1]()
        self.now = moment

    def hear(
        self,
        kind: Any,
        node: int = 0,
        name: str = "i-0",
        rate: float | None = 36.0,
        *,
        cloud: str = "cloud",
        **facts: Any,
    ) -> None:
        """Have something happen to a machine."""
        info = InstanceInfo(node=node, id=name, provider=cloud, hourly_rate=rate, on_demand_rate=72.0)
        if kind in (events.InstanceLaunched, events.InstanceProvisioned):
            facts = {"provider": cloud, "spot": rate != 72.0, "price_on_demand": 72.0 if rate else rate} | facts
        if kind not in (events.InstanceRequested, events.InstanceBootstrapped, events.NodeReady):
            facts["instance_id"] = name
        self.meter.bill.heard(kind(node=node, instance=info, **facts))

    def costs(self) -> list[events.CostUpdate]:
        """List what was told of the cost."""
        return [event for event in self.told if isinstance(event, events.CostUpdate)]

    def finals(self) -> list[events.CostFinal]:
        """List what was told of the final cost."""
        return [event for event in self.told if isinstance(event, events.CostFinal)]


def a_whole_life(bench: Bench) -> None:
    """One machine: asked for at 2, there at 4, reachable at 34, made at 44, ready at 46, given back at 146."""
    bench.until(2)
    bench.hear(events.InstanceRequested)
    bench.until(4)
    bench.hear(events.InstanceLaunched)
    bench.until(34)
    bench.hear(events.InstanceProvisioned)
    bench.until(44)
    bench.hear(events.InstanceBootstrapped)
    bench.until(46)
    bench.hear(events.NodeReady)
    bench.until(56)
    bench.meter.bill.task_started(1, 0)
    bench.until(60)
    bench.meter.bill.task_started(2, 0)
    bench.until(66)
    bench.meter.bill.task_ended(1, good=True)
    bench.until(76)
    bench.meter.bill.task_ended(2, good=True)
    bench.until(146)
    bench.hear(events.InstanceStopping)
    bench.until(150)
    bench.hear(events.InstanceDestroyed)


def test_a_life_is_told_split_and_billed() -> None:
    """The receipt has each second in its place, and the final event what all of it cost."""
    bench = Bench(planned=1000)
    a_whole_life(bench)
    bench.until(200)
    bench.meter.close(bench.told.append)
    receipt = bench.meter.receipt
    assert receipt is not None
    (node,) = receipt.nodes
    assert (30, 12, 20, 80, 4) == (node.booting, node.preparing, node.computing, node.idle, node.ending)
    first = FirstResult(offers=2, launch=2, boot=30, bootstrap=10, agent=2, waiting=10, first_call=10)
    assert (first, 66.0) == (receipt.first_result, first.total)
    (final,) = bench.finals()
    assert (1.46, 1.46, 146, 36.0) == (
        round(final.total_cost, 6), round(final.savings_vs_ondemand, 6), final.total_seconds, final.hourly_rate,
    )  # fmt: skip
    assert (1, 0, 10.0) == (final.spot_count, final.ondemand_count, receipt.foreseen)
    assert receipt == final.receipt


def test_the_cost_is_told_at_each_change_and_every_ten_seconds_between() -> None:
    """From the launch to the confirmed end, and not before or after."""
    bench = Bench()
    a_whole_life(bench)
    seconds = [cost.elapsed_seconds for cost in bench.costs()]
    assert [float(second) for second in (*range(0, 150, 10), 146)] == seconds
    bench.until(1000)
    assert len(seconds) == len(bench.costs())
    amounts = [cost.accumulated_cost for cost in bench.costs()]
    assert sorted(amounts) == amounts
    assert (0.6, 1.46) == (round(amounts[0], 6), round(amounts[-1], 6))
    assert (36.0, 0.0) == (bench.costs()[0].hourly_rate, bench.costs()[-1].hourly_rate)


@pytest.mark.parametrize("rate", [None, 0.0])
def test_nothing_is_told_where_nothing_is_billed(rate: float | None) -> None:
    """Machines of one's own have a receipt for their time, and no event about money."""
    bench = Bench()
    bench.hear(events.InstanceLaunched, rate=rate)
    bench.until(500)
    bench.hear(events.InstanceDestroyed, rate=rate)
    bench.meter.close(bench.told.append)
    assert ([], []) == (bench.told, bench.timers)
    assert bench.meter.receipt is not None
    assert (500, 0) == (bench.meter.receipt.nodes[0].seconds, bench.meter.receipt.total_cost)


def test_the_cost_stands_still_once_it_is_final() -> None:
    """What the clock says later changes nothing, not even for a machine whose end was never confirmed."""
    bench = Bench()
    bench.hear(events.InstanceLaunched)
    bench.until(100)
    bench.meter.close(bench.told.append)
    before = bench.meter.cost()
    bench.until(5000)
    bench.meter.close(bench.told.append)
    assert (before, 1) == (bench.meter.cost(), len(bench.finals()))
    assert bench.meter.receipt is not None
    assert not bench.meter.receipt.nodes[0].ended


def test_a_replaced_node_has_two_machines_on_its_bill() -> None:
    """The calls of the second are not counted for the first."""
    bench = Bench()
    bench.hear(events.InstanceLaunched)
    bench.hear(events.NodeReady)
    bench.meter.bill.task_started(1, 0)
    bench.until(100)
    bench.hear(events.InstanceStopping)
    bench.until(110)
    bench.hear(events.InstanceDestroyed)
    bench.hear(events.InstanceLaunched, name="i-1", rate=72.0)
    bench.until(120)
    bench.hear(events.NodeReady, name="i-1")
    bench.meter.bill.task_ended(1, good=False)
    bench.meter.bill.task_started(1 | 1 << 48, 0)
    bench.until(150)
    bench.meter.bill.task_ended(1 | 1 << 48, good=True)
    bench.meter.close(bench.told.append)
    receipt = bench.meter.receipt
    assert receipt is not None
    assert [(100, 0), (30, 0)] == [(node.computing, node.idle) for node in receipt.nodes]
    assert (2.3, 1.1) == (round(receipt.total_cost, 6), round(receipt.savings, 6))
    assert 72.0 == bench.finals()[0].hourly_rate


def test_the_price_of_the_offer_counts_where_the_machine_has_none() -> None:
    """A provider that leaves a machine's price out is believed what it offered."""
    bench = Bench()
    bench.hear(events.InstanceLaunched, rate=None, spot=False, price_on_demand=18.0)
    bench.hear(events.InstanceLaunched, name="i-1", rate=None, spot=True, price_spot=9.0, price_on_demand=18.0)
    assert (27.0, 1, 1) == (
        bench.meter.cost().hourly_rate, bench.meter.cost().spot_count, bench.meter.cost().ondemand_count,
    )  # fmt: skip


def test_an_id_that_comes_again_is_another_machine() -> None:
    """Where a provider uses its ids twice, the first machine's bill stays; an event told twice adds none."""
    bench = Bench()
    bench.hear(events.InstanceLaunched)
    bench.hear(events.InstanceLaunched)
    bench.until(100)
    bench.hear(events.InstanceDestroyed)
    bench.hear(events.InstanceLaunched)
    bench.until(200)
    assert 2.0 == round(bench.meter.cost().accumulated, 6)


def test_one_id_at_two_clouds_is_two_machines() -> None:
    """Each is billed for its own life, and what happens to one does not happen to the other."""
    bench = Bench()
    bench.hear(events.InstanceLaunched)
    bench.hear(events.InstanceLaunched, node=1, cloud="elsewhere")
    for node, cloud in enumerate(("cloud", "elsewhere")):
        bench.hear(events.NodeReady, node=node, cloud=cloud)
        bench.meter.bill.task_started(node, node)
    bench.until(100)
    bench.hear(events.InstanceStopping)
    bench.hear(events.InstanceDestroyed)
    bench.until(200)
    assert (3.0, 36.0) == (round(bench.meter.cost().accumulated, 6), bench.meter.cost().hourly_rate)
    bench.meter.close(bench.told.append)
    assert bench.meter.receipt is not None
    assert [(100, 100), (200, 200)] == [(one.seconds, one.computing) for one in bench.meter.receipt.nodes]


def test_an_orphan_of_one_cloud_is_none_of_another() -> None:
    """It is counted beside a machine of the same id, and ends alone."""
    bench = Bench()
    bench.hear(events.InstanceLaunched, name="i-9", cloud="elsewhere")
    bench.meter.bill.orphaned(orphan(), 36.0)
    bench.until(100)
    bench.meter.bill.orphans_ended("elsewhere", ["i-9"])
    assert 72.0 == bench.meter.cost().hourly_rate
    bench.meter.bill.orphans_ended("cloud", ["i-9"])
    assert 36.0 == bench.meter.cost().hourly_rate


def test_a_pool_is_stopped_when_its_budget_is_used_up() -> None:
    """Once, before the money for its end is gone, and nothing is rented after that."""
    bench = Bench(budget=5.0)
    bench.hear(events.InstanceLaunched)
    bench.until(10_000)
    ((moment, error, answer),) = bench.stopped
    # 36 USD an hour are a cent a second: 500 s in all, of which 30 are kept for the end and 1 for the next look.
    assert 468 <= moment <= 470
    assert (5.0, "p") == (error.budget, error.pool)
    assert round(error.cost, 2) == round(moment / 100, 2)
    with pytest.raises(BudgetExceededError, match="was stopped"), bench.meter.renting("cloud", 1, 0.01):
        pytest.fail("rented nevertheless")
    raised = answer.error()
    assert isinstance(raised, BudgetExceededError)
    assert (error.budget, error.cost) == (raised.budget, raised.cost)


def test_who_was_told_of_the_stop_is_not_told_again() -> None:
    """Leaving the pool raises what no call has raised."""
    bench = Bench(budget=1.0)
    bench.meter.raise_undelivered()
    bench.hear(events.InstanceLaunched)
    bench.until(500)
    with pytest.raises(BudgetExceededError, match=r"its budget is \$1\.00\. Raise budget=, or let the pool do less\."):
        bench.meter.raise_undelivered()
    answer = bench.stopped[0][2]
    assert "was stopped" in answer.headline()
    with pytest.raises(BudgetExceededError, match="was stopped"):
        bench.meter.raise_undelivered()
    answer.error()
    bench.meter.raise_undelivered()


def test_machines_that_are_being_rented_count_for_the_budget() -> None:
    """Two launches at a time do not both get the money that is left."""
    bench = Bench(budget=1.0)
    with bench.meter.renting("cloud", 1, 36.0):
        with pytest.raises(BudgetExceededError, match=r"\$0\.60 owed"), bench.meter.renting("cloud", 1, 36.0):
            pytest.fail("rented nevertheless")
        with bench.meter.renting("elsewhere", 1, 36.0):
            pass
    with bench.meter.renting("cloud", 1, 36.0):
        pass


def test_a_budget_forbids_nothing_that_is_free() -> None:
    """Machines without a price fit any budget."""
    bench = Bench(budget=0.01)
    with bench.meter.renting("cloud", 100, None):
        pass
    bench.hear(events.InstanceLaunched, rate=None)
    bench.until(10_000)
    assert [] == bench.stopped


def orphan(**facts: Any) -> Instance:
    """Describe a machine of which the cloud's list is the first to tell."""
    return Instance(id="i-9", node=0, provider="cloud", **facts)


def test_a_machine_that_no_node_has_is_on_the_bill() -> None:
    """From its launch on, at what it was asked for, until it is ended; told twice it is counted once."""
    bench = Bench()
    bench.until(100.0)
    for _ in range(2):
        bench.meter.bill.orphaned(orphan(launched_at=time.time() - 40.0), 36.0)
    bench.until(120.0)
    bench.meter.bill.orphans_ended("cloud", ["i-9", "i-unknown"])
    bench.until(500.0)
    assert 0.6 == pytest.approx(bench.meter.cost().accumulated, abs=0.02)


def test_a_stray_has_not_been_there_longer_than_the_pool() -> None:
    """Whatever the provider's clock says, and what it costs may be in the list alone."""
    bench = Bench()
    bench.until(100.0)
    bench.meter.bill.orphaned(orphan(launched_at=time.time() - 9000.0, hourly_rate=36.0), None)
    assert 1.0 == pytest.approx(bench.meter.cost().accumulated, abs=0.02)


def test_a_stray_that_is_a_node_s_after_all_is_counted_once() -> None:
    """It goes on as the node's machine, and does not end with the orphans."""
    bench = Bench()
    bench.meter.bill.orphaned(orphan(), 36.0)
    bench.hear(events.InstanceLaunched, name="i-9")
    bench.until(100.0)
    bench.meter.bill.orphans_ended("cloud", ["i-9"])
    bench.until(200.0)
    assert 2.0 == pytest.approx(bench.meter.cost().accumulated, abs=0.02)


def test_what_many_machines_cost_is_told_together() -> None:
    """Each event looks at all machines, so a thousand that come at once are not a thousand events."""
    bench = Bench()
    bench.until(1)
    for node in range(1000):
        bench.hear(events.InstanceLaunched, node=node, name=f"i-{node}")
    bench.until(2)
    assert [36.0, 36_000.0] == [cost.hourly_rate for cost in bench.costs()]
    for node in range(1000):
        bench.hear(events.InstanceDestroyed, node=node, name=f"i-{node}")
    bench.meter.close(bench.told.append)
    assert [35_964.0, 0.0] == [cost.hourly_rate for cost in bench.costs()[2:]]
    assert ["CostUpdate", "CostFinal"] == [type(event).__name__ for event in bench.told[-2:]]
    bench.until(10)
    assert isinstance(bench.told[-1], events.CostFinal)
