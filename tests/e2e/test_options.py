"""Each option does what it says: with another value, something else happens."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from attrs import define, field

import skyward as sky
from skyward.hookspecs import hookimpl
from skyward.model.cluster import Cluster
from skyward.model.machine import Instance, LaunchRequest, ProviderFacts
from skyward.model.offer import Offer
from skyward.model.op import Shell
from skyward.model.spec import Spec
from skyward.providers.local import Local


@sky.function
def double(x: int) -> int:
    return 2 * x


@sky.function
def wait(seconds: float) -> float:
    time.sleep(seconds)
    return seconds


@define(eq=False)
class Shop:
    """Sell this machine, at a price, after some launches that fail, and as slowly as asked."""

    name: str = "shop"
    price: float = 1.0
    sold_out: bool = False
    failures: int = 0
    launch_s: float = 0.0
    terminate_s: float = 0.0
    launches: list[float] = field(factory=list)
    listings: int = 0

    @hookimpl
    def skyward_facts(self) -> ProviderFacts:
        return ProviderFacts(name=self.name, ends_own_bill=True)

    @hookimpl
    async def skyward_offers(self, spec: Spec) -> Sequence[Offer]:
        kind = Offer(provider=self.name, instance_type="one", on_demand_price=self.price, available=not self.sold_out)
        return () if self.sold_out else (kind,)

    @hookimpl
    async def skyward_open(self, cluster: Cluster) -> str:
        return await Local().skyward_open(cluster)

    @hookimpl
    async def skyward_launch(self, request: LaunchRequest, infra: str) -> Sequence[Instance]:
        self.launches.append(time.monotonic())
        await asyncio.sleep(self.launch_s)
        if len(self.launches) <= self.failures:
            raise sky.CapacityError("No machine is left.")
        return await Local().skyward_launch(request, infra)

    @hookimpl
    async def skyward_instances(self, cluster: Cluster, infra: str) -> Sequence[Instance]:
        self.listings += 1
        return await Local().skyward_instances(cluster, infra)

    @hookimpl
    async def skyward_terminate(self, infra: str, ids: Sequence[str]) -> None:
        await asyncio.sleep(self.terminate_s)
        await Local().skyward_terminate(infra, ids)

    @hookimpl
    async def skyward_release(self, infra: str) -> None:
        await Local().skyward_release(infra)


def _compute(**keywords: Any) -> sky.Pool:
    return sky.Compute(**{"console": "silent", "logging": False, **keywords})


@pytest.mark.parametrize("attempts", [1, 2, 4])
def test_max_provision_attempts(attempts: int) -> None:
    """A launch that fails is tried so often, and no more."""
    shop = Shop(failures=99)
    with pytest.raises(sky.CapacityError, match="No machine is left"):
        _compute(provider=shop, max_provision_attempts=attempts, provision_retry_delay=0.0).open()
    assert attempts == len(shop.launches)


@pytest.mark.slow
def test_a_launch_that_fails_at_first_is_tried_again() -> None:
    """The pool opens as soon as one attempt succeeds."""
    shop = Shop(failures=1)
    with _compute(provider=shop, max_provision_attempts=2, provision_retry_delay=0.0) as pool:
        assert 2 == double(1) >> pool
    assert 2 == len(shop.launches)


@pytest.mark.slow
@pytest.mark.parametrize(("delay", "least", "most"), [(0.0, 0.0, 1.9), (0.6, 0.6, 1.9), (None, 2.0, 20.0)])
def test_provision_retry_delay(delay: float | None, least: float, most: float) -> None:
    """The next attempt comes so many seconds later; if nothing is said, later each time."""
    shop = Shop(failures=1)
    with _compute(provider=shop, provision_retry_delay=delay):
        first, second = shop.launches
    assert least <= second - first < most


@pytest.mark.slow
def test_provision_timeout() -> None:
    """A provider that does not answer is given up after so many seconds."""
    with pytest.raises(sky.ProvisionError, match=r"shop gave no answer to skyward_launch within 0\.1 s"):
        _compute(provider=Shop(launch_s=60), provision_timeout=0.1, max_provision_attempts=1).open()


def test_bootstrap_timeout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment that takes longer is an error that says so."""
    monkeypatch.setenv("SKYWARD_CACHE", str(tmp_path))
    slow = sky.Plugin.create("slow").with_bootstrap(lambda cluster: (Shell("exec sleep 30", scope="environment"),))
    began = time.monotonic()
    with pytest.raises(sky.ProvisionError, match=r"(?i)longer|within|time"):
        _compute(plugins=[slow], bootstrap_timeout=0.5, max_provision_attempts=1).open()
    assert time.monotonic() - began < 20


@pytest.mark.slow
def test_default_compute_timeout() -> None:
    """It is the limit of calls that have none of their own."""
    with _compute(default_compute_timeout=0.2) as pool:
        with pytest.raises(sky.TaskTimeoutError, match=r"timeout of 0\.2 s"):
            wait(30) >> pool
        assert 0.4 == wait(0.4).with_timeout(20) >> pool


@pytest.mark.parametrize(("cooldown", "desired"), [(0.0, 2), (1000.0, 1)])
@pytest.mark.slow
def test_autoscale_cooldown(cooldown: float, desired: int) -> None:
    """The pool keeps its size for so long, whatever waits."""
    with _compute(nodes=(1, 2), autoscale_cooldown=cooldown, reconcile_tick_interval=0.05) as pool:
        pool.map(wait, [0.05] * 12)
        assert desired == pool.snapshot()["desired"]


@pytest.mark.parametrize(("idle", "desired"), [(0.0, 1), (1000.0, 2)])
@pytest.mark.slow
def test_autoscale_idle_timeout(idle: float, desired: int) -> None:
    """A node that has nothing to do is given up after so long."""
    with _compute(
        nodes=sky.Nodes(desired=2, min=1, max=2),
        autoscale_cooldown=0.0,
        autoscale_idle_timeout=idle,
        reconcile_tick_interval=0.05,
    ) as pool:
        for _ in range(12):
            pool.run(wait(0.05), target=0)
        assert desired == pool.snapshot()["desired"]


@pytest.mark.slow
def test_reconcile_tick_interval() -> None:
    """The provider is asked for the machines so often, and the size is looked at."""
    seldom, often = Shop(), Shop()
    with _compute(provider=seldom, reconcile_tick_interval=30.0) as pool:
        wait(0.5) >> pool
    with _compute(provider=often, reconcile_tick_interval=0.02, nodes=(1, 2), autoscale_cooldown=0.0) as pool:
        while often.listings < 20 or pool.snapshot()["desired"] < 2:
            pool.map(wait, [0.03] * 12)
    # A machine that was just rented is looked for some times, whatever the interval.
    assert seldom.listings < 10


@pytest.mark.slow
def test_shutdown_timeout() -> None:
    """Leaving waits so long for the provider, and then names what may still exist."""
    errors: list[sky.Error] = []
    pool = _compute(provider=Shop(terminate_s=60), shutdown_timeout=0.3)
    pool.on(sky.Error, errors.append)
    with pool:
        began = time.monotonic()
    assert time.monotonic() - began < 20
    assert [True] == ["may still exist" in error.message and "node-0" in error.message for error in errors]


@pytest.mark.parametrize(("mode", "shown"), [("log", True), ("silent", False)])
def test_console(mode: Any, shown: bool, capsys: pytest.CaptureFixture[str]) -> None:
    """What is shown goes to the terminal's error stream, or nothing does."""
    with _compute(console=mode):
        pass
    assert shown is bool(capsys.readouterr().err)


def test_on_event() -> None:
    """The handler hears of everything, in the order of things."""
    heard: list[str] = []
    with _compute(on_event=lambda event: heard.append(type(event).__name__)):
        pass
    assert "ClusterRequested" == heard[0]
    assert heard.index("NodeReady") < heard.index("ClusterDestroyed")


def _chosen(selection: Any, *shops: Shop) -> str:
    with _compute(provider=list(shops), selection=selection) as pool:
        assert 2 == double(1) >> pool
    return [shop.name for shop in shops if shop.launches][-1]


@pytest.mark.parametrize(
    ("selection", "chosen"),
    [
        ("first", "dear"),
        ("cheapest", "cheap"),
        ("available", "dear"),
        (lambda providers, spec: providers[2], "middle"),
        (lambda providers, spec: [providers[1], providers[0]], "cheap"),
    ],
)
@pytest.mark.slow
def test_selection(selection: Any, chosen: str) -> None:
    """It decides which provider's machines are taken."""
    shops = (Shop(name="dear", price=3.0), Shop(name="cheap", price=1.0), Shop(name="middle", price=2.0))
    assert chosen == _chosen(selection, *shops)


@pytest.mark.slow
def test_selection_of_what_is_available() -> None:
    """A provider that has nothing now is passed over."""
    assert "stocked" == _chosen("available", Shop(name="empty", sold_out=True), Shop(name="stocked", price=9.0))


@pytest.mark.slow
def test_next_provider_is_tried_when_one_fails() -> None:
    """When all fail, each is listed with its reason."""
    assert "other" == _chosen("first", Shop(name="empty", failures=99), Shop(name="other"))
    with pytest.raises(
        sky.AllProvidersFailedError, match=r"(?s)'pool': one: .*No machine is left.*\n  two: .*No machine"
    ) as caught:
        _compute(
            provider=[Shop(name="one", failures=99), Shop(name="two", failures=99)], max_provision_attempts=1
        ).open()
    assert ["one", "two"] == sorted(provider for provider, _ in caught.value.reasons)


@pytest.mark.slow
def test_timeout() -> None:
    """A node lives so long and no longer; another takes its place."""
    replaced: list[sky.InstanceReplaced] = []
    with _compute(timeout=1.5).on(sky.InstanceReplaced, replaced.append) as pool:
        deadline = time.monotonic() + 30
        while not replaced:
            assert time.monotonic() < deadline
            assert 2 == double(1) >> pool
    assert replaced[0].node == 0
