"""What a pool on a cloud that sells by the hour costs, tells, and is stopped by."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

import skyward as sky
from skyward.engine.journal import launches
from skyward.hookspecs import hookimpl

SAMPLE = Path(__file__).parents[1] / "third_party" / "skyward-sample" / "src"

DOLLAR_A_SECOND = 3600.0


@sky.function
def double(x: int) -> int:
    return 2 * x


@sky.function
def wait(seconds: float) -> float:
    time.sleep(seconds)
    return seconds


@pytest.fixture
def machines() -> Iterator[Path]:
    """The directory that the cloud's machines are in; it is empty when the test ends."""
    # Nodes listen on Unix sockets, whose paths are short.
    with tempfile.TemporaryDirectory(prefix="sky-", dir="/tmp") as directory:
        yield Path(directory)
        assert [] == os.listdir(directory)


@pytest.fixture
def cloud(machines: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[float], Any]:
    """Make a provider of a third party, which sells this machine at a price by the hour."""
    monkeypatch.syspath_prepend(str(SAMPLE))
    provider = import_module("skyward_sample.provider")
    return lambda price: provider.SampleCloud(str(machines), price=price)


def told(pool: sky.Pool) -> list[Any]:
    """Collect a pool's events about machines and money."""
    heard: list[Any] = []
    for kind in (sky.InstanceLaunched, sky.InstanceDestroyed, sky.CostUpdate, sky.CostFinal, sky.ClusterDestroyed):
        pool.on(kind, heard.append)
    return heard


@pytest.mark.slow
def test_a_pool_tells_what_it_costs_and_where_the_time_went(cloud: Callable[[float], Any]) -> None:
    """Events, `pool.cost` and the receipt agree with each other, and with the calls that ran."""
    pool = sky.Compute(provider=cloud(DOLLAR_A_SECOND), nodes=2, console=False, timeout=100)
    heard = told(pool)
    assert (0.0, None) == (pool.cost.accumulated, pool.receipt)
    with pool:
        assert [0.5, 0.5] == wait(0.5) @ pool
        during = pool.cost
        assert pool.receipt is None
    assert (2 * DOLLAR_A_SECOND, 0, 2) == (during.hourly_rate, during.spot_count, during.ondemand_count)
    receipt = pool.receipt
    assert receipt is not None
    assert 2 <= during.accumulated <= receipt.total_cost == pool.cost.accumulated
    # Each machine is billed by the second, at a dollar each.
    for node in receipt.nodes:
        assert node.cost == node.billed_seconds == int(node.billed_seconds)
        assert node.seconds <= node.billed_seconds < node.seconds + 1
        assert 0.5 <= node.computing <= node.seconds
        assert node.ended
    assert (200.0, [0, 1]) == (receipt.foreseen, sorted(node.node for node in receipt.nodes))
    assert receipt.first_result is not None
    assert 0.5 <= receipt.first_result.first_call <= receipt.first_result.total
    kinds = [type(event).__name__ for event in heard]
    assert ["InstanceLaunched", "CostUpdate"] == kinds[:2]
    assert ["InstanceDestroyed", "CostUpdate", "CostFinal", "ClusterDestroyed"] == kinds[-4:]
    assert (receipt, receipt.total_cost) == (heard[-2].receipt, heard[-2].total_cost)
    assert (0.0, 0, 2) == (heard[-2].savings_vs_ondemand, heard[-2].spot_count, heard[-2].ondemand_count)


def test_machines_of_one_s_own_cost_nothing() -> None:
    """No event is about money, and the receipt is about time."""
    pool = sky.Compute(console=False)
    heard = told(pool)
    with pool:
        assert 4 == double(2) >> pool
    assert [] == [event for event in heard if isinstance(event, (sky.CostUpdate, sky.CostFinal))]
    assert 0.0 == pool.cost.accumulated
    assert pool.receipt is not None
    assert pool.receipt.seconds > 0
    assert pool.receipt.first_result is not None


def test_the_log_console_ends_with_the_receipt(
    cloud: Callable[[float], Any], capsys: pytest.CaptureFixture[str]
) -> None:
    """A few lines say what it cost and where the time went."""
    with sky.Compute(provider=cloud(DOLLAR_A_SECOND), console="log") as pool:
        double(2) >> pool
    said = capsys.readouterr().err
    lines = [line for line in said.splitlines() if "skyward ·" in line]
    first = next(index for index, line in enumerate(lines) if "cost $" in line and " for " in line)
    assert pool.receipt is not None
    assert f"cost ${pool.receipt.total_cost:.2f} for" in lines[first]
    assert "of 1 machine" in lines[first + 1]
    assert "time booting" in lines[first + 2]
    assert "first result after" in lines[first + 3]
    assert first + 5 == len(lines)


def processes(directory: Path) -> set[int]:
    """List the processes that live in a directory, or were told of it."""
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            told = (process / "cmdline").read_bytes() + (process / "environ").read_bytes()
            if str(directory).encode() in told or str(directory) in os.readlink(process / "cwd"):
                found.add(int(process.name))
    return found


@pytest.mark.slow
def test_a_budget_stops_a_pool_in_the_middle_of_a_task(cloud: Callable[[float], Any], machines: Path) -> None:
    """The call fails with the figures, the machines are ended at once, and the budget holds."""
    pool = sky.Compute(provider=cloud(DOLLAR_A_SECOND), nodes=2, budget=80.0, console=False)
    heard = told(pool)

    def work() -> None:
        with pool:
            waiting = wait(300) > pool
            assert processes(machines)
            waiting.result()

    with pytest.raises(
        sky.BudgetExceededError, match=r"'pool' was stopped: it has cost .*budget is \$80\.00"
    ) as caught:
        work()
    assert 80.0 == caught.value.budget
    assert 2 <= caught.value.cost <= pool.cost.accumulated <= 80.0
    assert pool.receipt is not None
    assert all(node.ended for node in pool.receipt.nodes)
    assert 2 == sum(isinstance(event, sky.InstanceLaunched) for event in heard)
    assert set() == processes(machines)


@pytest.mark.slow
def test_what_was_caught_inside_is_not_raised_again(cloud: Callable[[float], Any]) -> None:
    """A program that saves what it has may leave its pool in peace; new calls fail in the same way."""
    with sky.Compute(provider=cloud(DOLLAR_A_SECOND), budget=40.0, console=False) as pool:
        with pytest.raises(sky.BudgetExceededError):
            wait(300) >> pool
        with pytest.raises(sky.BudgetExceededError):
            double(2) >> pool
        with pytest.raises(sky.BudgetExceededError):
            double(2) @ pool


def until_stopped(pool: sky.Pool, then: Callable[[], object]) -> None:
    """Open a pool, call nothing until its machine was given back, and do something else then."""
    gone = threading.Event()
    pool.on(sky.InstanceDestroyed, lambda event: gone.set())
    with pool:
        assert gone.wait(30)
        assert 0 == pool.instance_count
        then()


@pytest.mark.slow
def test_a_stop_that_nobody_noticed_is_raised_by_leaving(cloud: Callable[[float], Any]) -> None:
    """The machines are ended while the program does something else, and the end of the block says so."""
    pool = sky.Compute(provider=cloud(DOLLAR_A_SECOND), budget=40.0, console=False)
    with pytest.raises(sky.BudgetExceededError, match="was stopped"):
        until_stopped(pool, lambda: None)
    assert not pool.is_active


@pytest.mark.slow
def test_another_error_of_the_block_is_not_hidden(cloud: Callable[[float], Any]) -> None:
    """What the program itself raised after the stop comes out."""
    pool = sky.Compute(provider=cloud(DOLLAR_A_SECOND), budget=40.0, console=False)
    with pytest.raises(ZeroDivisionError):
        until_stopped(pool, lambda: 1 // 0)


def deaf(cloud: Any, answers: Callable[[], bool]) -> Any:
    """Make a provider that confirms the end of machines only if asked at the right time."""

    class Deaf(type(cloud)):  # type: ignore[misc]  # a class of a module that is found at run time
        @hookimpl
        async def skyward_terminate(self, infra: Any, ids: Any) -> None:
            if not answers():
                raise sky.SkywardError("There was no answer.")
            await super().skyward_terminate(infra, ids)

    return Deaf(cloud.directory, cloud.price)


@pytest.mark.slow
def test_a_machine_whose_end_nobody_confirmed_may_still_be_billed(
    cloud: Callable[[float], Any], machines: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The receipt counts it until the pool was left, and says that it has no end."""
    never = deaf(cloud(DOLLAR_A_SECOND), lambda: False)
    pool = sky.Compute(provider=never, shutdown_timeout=1.0, console="log")
    with pytest.raises(sky.LeftBehindError, match="Nothing else ends what is left"), pool:
        double(2) >> pool
    assert pool.receipt is not None
    (node,) = pool.receipt.nodes
    assert not node.ended
    assert node.cost == pool.cost.accumulated >= 1
    assert f"may still be billed: {node.instance_id}" in capsys.readouterr().err
    # What its machines share is still there with them.
    [room] = machines.iterdir()
    shutil.rmtree(room)


@pytest.mark.slow
def test_an_end_that_is_confirmed_late_is_one(cloud: Callable[[float], Any]) -> None:
    """A machine is billed until a last look has found that it is gone, and no longer."""
    began = time.monotonic()
    given_up = threading.Event()
    late = deaf(cloud(DOLLAR_A_SECOND), given_up.is_set)
    pool = sky.Compute(provider=late, shutdown_timeout=1.0, console=False)
    pool.on(sky.Error, lambda event: given_up.set())
    with pool:
        double(2) >> pool
    assert given_up.is_set()
    assert pool.receipt is not None
    (node,) = pool.receipt.nodes
    assert node.ended
    # The provider is asked again after 0.4 seconds at least.
    assert 0.4 < node.ending < node.seconds < time.monotonic() - began


def test_what_a_budget_cannot_pay_is_never_rented(cloud: Callable[[float], Any]) -> None:
    """Two machines that cost more by the time they are given back are refused before the first of them."""
    pool = sky.Compute(provider=cloud(DOLLAR_A_SECOND), nodes=2, budget=59.0, console=False)
    heard = told(pool)
    refused = r"'pool' rents no more: 2 machines at \$3,600\.00 an hour .* \$60\.00 .* budget is \$59\.00"
    with pytest.raises(sky.BudgetExceededError, match=refused):
        pool.open()
    assert ([], 0.0) == (heard, pool.cost.accumulated)


def test_a_pool_that_works_goes_on_with_the_nodes_that_its_budget_pays(cloud: Callable[[float], Any]) -> None:
    """More nodes than the budget pays are not rented, and the ones there are go on."""
    refused = threading.Event()
    pool = sky.Compute(provider=cloud(DOLLAR_A_SECOND), budget=65.0, console=False)
    pool.on(sky.Error, lambda event: refused.set() if "rents no more" in event.message else None)
    with pool:
        pool.resize(3)
        assert refused.wait(30)
        assert 4 == double(2) >> pool
        assert 1 == pool.instance_count
    assert pool.receipt is not None
    assert 1 == len(pool.receipt.nodes)


def test_a_dearer_offer_is_not_fallen_back_to_when_the_budget_forbids_it(
    cloud: Callable[[float], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the cheap machines are sold out, the error says what the others would cost; the journal is closed."""
    monkeypatch.setenv("SKYWARD_STATE", str(tmp_path))
    base = cloud(DOLLAR_A_SECOND)

    class Short(type(base)):  # type: ignore[misc]  # a class of a module that is found at run time
        @hookimpl
        async def skyward_offers(self) -> Any:
            (cheap,) = await super().skyward_offers()
            return [cheap, evolve(cheap, instance_type="sample.large", on_demand_price=10 * cheap.on_demand_price)]

        @hookimpl
        async def skyward_launch(self, request: Any, infra: Any) -> Any:
            raise sky.CapacityError("None is left.")

    pool = sky.Compute(provider=Short(base.directory, base.price), budget=100.0, console=False)
    with pytest.raises(sky.BudgetExceededError, match=r"1 machine at \$36,000\.00 an hour cost at least \$300\.00"):
        pool.open()
    assert [(), ()] == [launch.ids for launch in launches()]


@pytest.mark.parametrize("wrong", [0, -1, "20", True, float("nan"), float("inf")])
def test_a_budget_is_an_amount_of_money(wrong: Any) -> None:
    """Anything else is refused before anything happens."""
    with pytest.raises(sky.ConfigError, match="budget must be a finite number above zero"):
        sky.Compute(budget=wrong)


def test_a_pool_within_its_budget_is_left_alone(cloud: Callable[[float], Any]) -> None:
    """A budget that is not reached changes nothing."""
    with sky.Compute(provider=cloud(1.0), budget=20.0, console=False) as pool:
        assert 4 == double(2) >> pool
    assert 0 < pool.cost.accumulated < 20.0
