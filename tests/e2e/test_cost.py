"""What a pool on a cloud that sells by the hour costs, tells, and is stopped by."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import skyward as sky
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
    """A few lines say what it cost and where the time went, and the last what the pool did."""
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
    assert f"1 call done, in {lines[-1].partition('in ')[2].partition(' on')[0]} on 1 node, $" in lines[-1]
    assert first + 6 == len(lines)


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


@pytest.mark.parametrize("wrong", [0, -1, "20", True, float("nan"), float("inf")])
def test_a_budget_is_an_amount_of_money(wrong: Any) -> None:
    """Anything else is refused before anything happens."""
    with pytest.raises(sky.ConfigError, match="budget must be a finite number above zero"):
        sky.Compute(budget=wrong)
