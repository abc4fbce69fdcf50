"""However a cloud answers, a pool gets its machines from the best offer that has them, or one error that says why."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, ClassVar

import pytest
from attrs import evolve

import skyward as sky
from skyward.engine.instances.identity import owner
from skyward.engine.instances.launch import BATCH, LIFE, SIDE_BY_SIDE
from skyward.hookspecs import Instance, Offer, Tags, hookimpl
from skyward.model.events import event as events
from skyward.plan.instances.owned_instances import GRACE
from skyward.plan.offers.choice import REMEMBERED
from skyward.testing import NeverBoots, NoCapacity, Quota, SlowApi
from tests.simulated.engine import SimulatedEngine
from tests.simulated.pool import compute
from tests.simulated.provider import ALWAYS, SMALL, Fails, Hangs, ScriptedCloud

OFFERS = (SMALL, evolve(SMALL, zone="b", spot_price=0.2), evolve(SMALL, region="us", zone="c", spot_price=0.3))


@sky.function
def double(x: int) -> int:
    """Double."""
    return 2 * x


def asked(cloud: ScriptedCloud) -> list[tuple[str | None, bool]]:
    """List the zones and markets that machines were asked for in."""
    return [(request.cluster.offer.zone, request.spot) for request in cloud.requests]


def refused(settings: dict[str, Any], *clouds: ScriptedCloud, error: type[Exception], match: str) -> Exception:
    """Open a pool in vain, and return the error; nothing is left."""
    pool, _ = compute(*clouds, **settings)
    with pytest.raises(error, match=match) as caught:
        pool.open()
    assert [] == [row for cloud in clouds for row in cloud.there]
    return caught.value


@pytest.mark.parametrize(
    ("gone", "order"),
    [
        ([], [("a", True)]),
        ([NoCapacity(zone="a"), NoCapacity(zone="b")], [("a", True), ("b", True), ("c", True)]),
        ([NoCapacity(spot=True)], [("a", True), ("b", True), ("c", True), ("a", False)]),
        ([NoCapacity(region="eu"), NoCapacity(spot=True)], [*zip("abca", [True] * 3 + [False], strict=True)]),
    ],
    ids=["first", "zones", "market", "both"],
)
def test_next_offer_is_tried_where_one_has_no_capacity(
    engine: SimulatedEngine, gone: Sequence[Any], order: list[tuple[str, bool]]
) -> None:
    """Cheapest first, spot before on demand, no offer twice, and no time lost between them."""
    cloud = ScriptedCloud(*gone, offers=OFFERS)
    pool, _ = compute(cloud)
    with pool:
        assert 4 == double(2) >> pool
        assert 16.0 == pytest.approx(engine.now)
    assert order == asked(cloud)[: len(order)]
    assert len({*asked(cloud)}) == len(asked(cloud))


def test_nodes_that_an_offer_lacks_come_from_the_next(engine: SimulatedEngine) -> None:
    """A partial answer is kept, and only the rest is asked for again."""
    cloud = ScriptedCloud(NoCapacity(zone="a", left=2), offers=OFFERS)
    pool, _ = compute(cloud, nodes=5)
    with pool:
        assert [6] * 5 == double(3) @ pool
    assert [((0, 1, 2, 3, 4), "a"), ((2, 3, 4), "b")] == [(one.nodes, one.cluster.offer.zone) for one in cloud.requests]
    assert 5 == cloud.most == len(cloud.rows)


def test_a_quota_rules_out_the_other_zones_of_its_region(engine: SimulatedEngine) -> None:
    """It holds for a family, a region and a market."""
    cloud = ScriptedCloud(Fails("launch", lambda: sky.QuotaError("None allowed.")), offers=OFFERS)
    pool, _ = compute(cloud)
    with pool:
        pass
    assert [("a", True), ("c", True)] == asked(cloud)


GPU = evolve(
    SMALL, instance_type="gpu", accelerator_name="H100", accelerator_count=8, spot_price=9.0, on_demand_price=44.0
)


class Narrow(ScriptedCloud):
    """A cloud whose answer holds only what has as many accelerators as are asked for, as those of real ones do."""

    asked_for: ClassVar[list[str]] = []

    @hookimpl
    async def skyward_offers(self, spec: sky.Spec) -> Sequence[Offer]:  # type: ignore[override]
        self.asked_for.append(str(spec.accelerator))
        wanted = spec.accelerator
        return [one for one in self.offers if wanted is None or one.accelerator_count == wanted.count]


def test_what_comes_near_is_asked_for_once_more(engine: SimulatedEngine) -> None:
    """A cloud that narrows its answer hides what is on sale in another number: it is asked again, and that is shown."""
    cloud = Narrow(offers=(SMALL, evolve(GPU, accelerator_memory_gb=80)))
    refused(
        {"accelerator": "H100:16"},
        cloud,
        error=sky.NoAvailableProviderError,
        match=r"Nearest is gpu in a, .* with accelerator=8 × H100 80GB. Write accelerator=\"H100-80GB:8\" to get it",
    )
    assert ["H100:16", "H100", "H100:2", "H100:4", "H100:8"] == cloud.asked_for


@pytest.mark.parametrize(
    ("accelerator", "rented"),
    [
        ("H100", "1 × H100 80GB"),
        ("H100-94GB", "1 × H100 94GB"),
        (sky.accelerators.H100(memory="94GB"), "1 × H100 94GB"),
        (sky.accelerators.H100(), "1 × H100 80GB"),
    ],
    ids=str,
)
def test_the_variant_that_was_rented_is_told(engine: SimulatedEngine, accelerator: Any, rented: str) -> None:
    """In the events of each machine, and on the receipt."""
    large = evolve(GPU, instance_type="large", accelerator_count=1, accelerator_memory_gb=94, spot_price=3.0)
    cloud = ScriptedCloud(
        offers=(large, evolve(large, instance_type="small", accelerator_memory_gb=80, spot_price=2.0))
    )
    pool, heard = compute(cloud, accelerator=accelerator)
    with pool:
        pass
    kinds = (events.InstanceLaunching, events.InstanceLaunched, events.InstanceProvisioned)
    assert {rented} == {event.accelerator for kind in kinds for event in heard.of(kind)}
    [final] = heard.of(events.CostFinal)
    assert [rented] == [node.accelerator for node in final.receipt.nodes]


def test_a_limit_of_the_account_rents_nothing_dearer(engine: SimulatedEngine) -> None:
    """It closes every size that it counts, and machines with accelerators are no way around it."""
    sizes = [evolve(SMALL, instance_type=f"size-{number}", spot_price=None) for number in range(5)]
    cloud = ScriptedCloud(Fails("launch", lambda: sky.QuotaError("None allowed."), times=ALWAYS))
    cloud.offers = (*sizes, GPU)
    error = refused({"max_provision_attempts": 1}, cloud, error=sky.QuotaError, match="None allowed")
    assert [False] == [bool(request.cluster.offer.accelerator_count) for request in cloud.requests]
    assert "It is a limit of the account in eu for machines without accelerators on demand." in str(error)
    assert "gpu in a, spot at $9/h, has 8 × H100, which is not asked for. max_hourly_cost=9 would allow" in str(error)


def test_a_dearer_machine_is_rented_where_it_is_allowed(engine: SimulatedEngine) -> None:
    """`max_hourly_cost` says so, whatever accelerators it has."""
    cloud = ScriptedCloud(NoCapacity(instance_type="small"), offers=(SMALL, GPU))
    refused({"max_provision_attempts": 1}, cloud, error=sky.CapacityError, match="would allow it")
    pool, _ = compute(cloud, max_hourly_cost=9.0)
    with pool:
        assert ["gpu"] == [row.request.cluster.offer.instance_type for row in cloud.there]


def test_a_stock_that_is_emptied_rents_nothing_dearer(engine: SimulatedEngine) -> None:
    """What is left when offers are asked again is held against what was there at first."""
    large = evolve(SMALL, instance_type="large", spot_price=3.0, on_demand_price=5.0)
    cloud = ScriptedCloud(NoCapacity(instance_type="small"), offers=(SMALL, large))

    def sell_out(hook: str) -> None:
        if hook == "launch":
            cloud.offers = (large, GPU)

    cloud.when = sell_out
    refused({}, cloud, error=sky.CapacityError, match=r"large in a, spot at \$3/h, costs more than twice \$0.5/h")
    assert {"small"} == {request.cluster.offer.instance_type for request in cloud.requests}


def test_a_cloud_that_fails_every_launch_is_given_up(engine: SimulatedEngine) -> None:
    """One error within two minutes, however much it says that it sells."""
    many = [evolve(SMALL, instance_type=f"size-{number}") for number in range(100)]
    cloud = ScriptedCloud(Fails("launch", lambda: sky.ProvisionError("500: Oops."), times=ALWAYS), offers=many)
    error = refused({"nodes": 40}, cloud, error=sky.ProvisionError, match=r"it failed every launch for \d+ s: .*Oops")
    assert engine.now <= 120.0
    assert len(str(error)) < 2000


def test_a_cloud_that_sells_out_meanwhile_is_asked_on(engine: SimulatedEngine) -> None:
    """What it says of its machines shows that it works."""
    many = [evolve(SMALL, instance_type=f"size-{number}", spot_price=None) for number in range(12)]
    failures = [sky.ProvisionError("500."), sky.ProvisionError("500."), sky.CapacityError("None.")] * 4
    # What has no answer is asked for twice.
    answers = [error for error in failures[:-1] for _ in range(2 if type(error) is sky.ProvisionError else 1)]
    cloud = ScriptedCloud(Fails("launch", lambda: answers.pop(0), times=len(answers)), offers=many)
    pool, _ = compute(cloud, nodes=1)
    with pool:
        assert "size-11" == cloud.there[0].request.cluster.offer.instance_type


def test_what_was_tried_is_listed_where_nothing_is_left(engine: SimulatedEngine) -> None:
    """One error: what was tried, each with its reason, and what was not tried."""
    cloud = ScriptedCloud(NoCapacity(), offers=(*OFFERS, evolve(SMALL, zone="d", available=False)))
    error = refused({"max_provision_attempts": 1}, cloud, error=sky.CapacityError, match=r"(?s)Tried:.*available")
    first, *rest = str(error).splitlines()
    assert "all 6 offers had no capacity, such as small in a, spot at $0.1/h: There is no small left in a." in first
    assert 6 == sum("There is no" in line for line in rest)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (sky.CapacityError("None."), sky.CapacityError),
        (sky.QuotaError("None."), sky.QuotaError),
        (sky.ProvisionError("None."), sky.ProvisionError),
    ],
)
def test_the_error_is_of_the_kind_of_the_refusals(
    engine: SimulatedEngine, error: Exception, kind: type[Exception]
) -> None:
    """Where all were refused for one reason."""
    cloud = ScriptedCloud(Fails("launch", lambda: error, times=ALWAYS), offers=OFFERS)
    found = refused({"max_provision_attempts": 1}, cloud, error=sky.SkywardError, match="None.")
    assert kind is type(found)


@pytest.mark.parametrize(
    "error",
    [sky.CredentialsError("No."), sky.ConfigError("No."), ValueError("No.")],
    ids=lambda error: type(error).__name__,
)
def test_what_no_other_offer_mends_ends_it_at_once(engine: SimulatedEngine, error: Exception) -> None:
    """A key that is refused, a setting, a bug of the plugin: one request, one error."""
    cloud = ScriptedCloud(Fails("launch", lambda: error, times=ALWAYS), offers=OFFERS)
    refused({}, cloud, error=sky.SkywardError, match=r"No\.")
    assert 1 == len(cloud.requests)


def test_nothing_that_fits_rents_nothing(engine: SimulatedEngine) -> None:
    """The error says which wish excludes how many."""
    cloud = ScriptedCloud(offers=OFFERS)
    refused({"max_hourly_cost": 0.01}, cloud, error=sky.NoAvailableProviderError, match=r"excludes 3 of 3\. Nearest")
    assert ([], []) == (cloud.requests, cloud.open)


def test_machines_are_asked_for_in_batches(engine: SimulatedEngine) -> None:
    """No request is for more than `BATCH`."""
    cloud = ScriptedCloud()
    pool, _ = compute(cloud, nodes=BATCH + 3)
    with pool:
        assert BATCH + 3 == pool.current_nodes()
    assert [BATCH, 3] == [len(request.nodes) for request in cloud.requests]


def test_a_share_of_the_nodes_is_spot(engine: SimulatedEngine) -> None:
    """At least as many as asked for; the others are on demand."""
    cloud = ScriptedCloud()
    pool, _ = compute(cloud, nodes=4, allocation=0.5)
    with pool:
        assert [False, False, True, True] == sorted(row.request.spot for row in cloud.there)


def test_machines_that_never_run_are_given_up_and_replaced(engine: SimulatedEngine) -> None:
    """After `provision_timeout` each; no sooner, and no more than a look later."""
    cloud = ScriptedCloud(NeverBoots(times=2))
    pool, heard = compute(cloud, provision_timeout=60.0, provision_retry_delay=0.0)
    with pool:
        assert 4 == double(2) >> pool
    assert 3 == len(cloud.rows)
    lives = [(row.ended_at or 0.0) - row.since for row in cloud.rows[:2]]
    assert all(60.0 <= life <= 60.0 + 5.0 + cloud.ends for life in lives)
    assert 2 == sum("did not run within 60 s" in event.message for event in heard.of(sky.Error))


def test_attempts_are_counted_and_then_used_up(engine: SimulatedEngine) -> None:
    """Three for each node unless the option says otherwise, each machine given back before the next is had."""
    cloud = ScriptedCloud(NeverBoots(times=ALWAYS))
    refused({"provision_timeout": 60.0}, cloud, error=sky.ProvisionError, match="did not run within 60 s")
    assert (3, 2) == (len(cloud.rows), cloud.most)


def test_a_refused_offer_is_asked_for_again_after_a_while(engine: SimulatedEngine) -> None:
    """Not within `REMEMBERED` seconds as long as there is another."""
    cloud = ScriptedCloud(Fails("launch", lambda: sky.CapacityError("None.")), offers=OFFERS)
    pool, _ = compute(cloud)
    with pool:
        pool.resize(2)
        engine.until(lambda: pool.current_nodes() == 2)
        engine.pass_by(REMEMBERED)
        pool.resize(3)
        engine.until(lambda: pool.current_nodes() == 3)
    assert ["a", "b", "b", "a"] == [zone for zone, _ in asked(cloud)]


def test_a_pool_that_finds_nothing_looks_again_with_growing_pauses(engine: SimulatedEngine) -> None:
    """What is for sale is asked for anew; a machine that is free by then is rented."""
    cloud = ScriptedCloud(Fails("launch", lambda: sky.CapacityError("None."), times=4))
    pool, _ = compute(cloud)
    with pool:
        pass
    launches = cloud.times("launch")
    assert [0.0, 0.0, 2.0, 2.0, 6.0] == pytest.approx(launches)
    assert 3 == len(cloud.times("offers"))


def selling_out(cloud: ScriptedCloud, *, after: int) -> None:
    """Have a cloud sell nothing any more once it was asked for machines so often."""

    def sell_out(hook: str) -> None:
        if hook == "launch" and len(cloud.requests) > after:
            cloud.offers = ()

    cloud.when = sell_out


def test_a_stock_that_is_emptied_by_a_partial_launch_is_one_error(engine: SimulatedEngine) -> None:
    """What was for sale is gone when it is looked for again: the error says so, and is one of capacity."""
    cloud = ScriptedCloud(NoCapacity(left=2), offers=(evolve(SMALL, on_demand_price=None),))
    selling_out(cloud, after=0)
    refused({"nodes": 3}, cloud, error=sky.CapacityError, match="Nothing is left to try. It sells nothing")


def test_a_working_pool_outlives_a_stock_that_is_empty_for_a_moment(engine: SimulatedEngine) -> None:
    """It asks again, later each time, as for what was refused."""
    cloud = ScriptedCloud(Fails("launch", lambda: sky.CapacityError("None."), skip=1, times=1))
    cloud.offers = (evolve(SMALL, on_demand_price=None),)
    pool, _ = compute(cloud)
    with pool:
        selling_out(cloud, after=1)
        engine.loop.call_soon_threadsafe(cloud.take, cloud.rows[0])
        engine.until(lambda: cloud.offers == ())
        engine.pass_by(3.0)
        cloud.when, cloud.offers = (lambda hook: None), (SMALL,)
        assert 4 == engine.result(double(2) > pool)
    assert 2 == len(cloud.rows)


def test_a_quota_that_holds_for_all_is_one_error(engine: SimulatedEngine) -> None:
    """Nothing is rented for a part of the nodes."""
    refused({"nodes": 2}, ScriptedCloud(Quota(machines=1)), error=sky.QuotaError, match="may have 1 machines")


def test_a_budget_keeps_a_dearer_offer_from_being_rented(engine: SimulatedEngine) -> None:
    """Where the cheap machines are sold out, the error says what the others would cost."""
    dear = evolve(SMALL, instance_type="large", spot_price=None, on_demand_price=36000.0)
    cloud = ScriptedCloud(NoCapacity(instance_type="small"), offers=(SMALL, dear), minimum_billed_s=60.0)
    settings = {"budget": 100.0, "max_hourly_cost": 40000.0}
    refused(settings, cloud, error=sky.BudgetExceededError, match=r"1 machine at \$36,000\.00 an hour cost")
    assert 0 == len(cloud.rows)


def test_every_machine_bears_its_tags(engine: SimulatedEngine) -> None:
    """Pool, node, owner, client, token and an expiry that is well away."""
    cloud = ScriptedCloud()
    pool, _ = compute(cloud, nodes=2, ttl=600)
    with pool:
        tags = [row.request.tags_of(row.node) for row in cloud.there]
    assert [0, 1] == [one.node for one in tags]
    assert all(one.owner and one.client and one.token and one.pool_id for one in tags)
    assert all(one.expires_at and one.expires_at > time.time() + 3500 for one in tags)


class Unwritable(ScriptedCloud):
    """A cloud whose tags cannot be changed."""

    skyward_renew = None  # type: ignore[assignment]


def test_no_expiry_is_written_where_it_cannot_be_put_off(engine: SimulatedEngine) -> None:
    """A pool that lives would be listed as forgotten."""
    cloud = Unwritable()
    pool, _ = compute(cloud, ttl=600)
    with pool:
        assert [None] == [row.request.tags.expires_at for row in cloud.there]


def test_an_account_that_may_not_put_an_expiry_off_gets_no_pool(engine: SimulatedEngine) -> None:
    """It is asked with the first machine, before a node is made; another failure is no obstacle."""
    cloud = ScriptedCloud(Fails("renew", lambda: sky.CredentialsError("Not allowed.", hint="Allow it."), times=ALWAYS))
    refused({}, cloud, error=sky.CredentialsError, match=r"listed as forgotten.* Not allowed\. Allow it\.")
    assert 1 == len(cloud.rows)
    pool, _ = compute(ScriptedCloud(Fails("renew", times=ALWAYS)))
    with pool:
        assert 4 == engine.result(double(2) > pool)


@pytest.mark.parametrize("ahead", [4500.0, -4500.0, 30.0])
def test_expiries_are_written_and_judged_by_the_clouds_clock(
    engine: SimulatedEngine, caplog: pytest.LogCaptureFixture, ahead: float
) -> None:
    """A client whose clock is 75 minutes slow gives its machines no expiry that is over, and logs a warning."""
    cloud = ScriptedCloud()
    cloud.ahead, now = ahead, time.time() + ahead
    tags = Tags(pool_id="a1", pool_name="mine", owner=owner(), expires_at=now - GRACE + 60.0)
    old = Instance(id="old", node=0, provider="cloud", tags=tags)
    gone = evolve(old, id="gone", tags=evolve(tags, pool_name="gone", expires_at=now - GRACE - 60.0))
    cloud.owned = [old, gone]
    pool, _ = compute(cloud, ttl=600)
    with pool:
        engine.pass_by(LIFE)
    [expiry] = [row.request.tags.expires_at for row in cloud.rows]
    assert expiry == pytest.approx(now + LIFE, abs=30.0)
    assert 3 == len(cloud.expiries)
    assert all(later == pytest.approx(now + LIFE, abs=30.0) for later in cloud.expiries)
    told = [record.message for record in caplog.records if record.levelname == "WARNING"]
    assert ["'gone'"] == [word for line in told for word in line.split() if "of pool" in line and "'" in word]
    assert (abs(ahead) > 60) is any(line.startswith("This computer's clock is 1 h") for line in told)


@pytest.mark.parametrize("hook", ["preflight", "offers", "open"])
@pytest.mark.parametrize("kind", [Fails, Hangs])
def test_a_cloud_that_fails_before_anything_is_rented(
    engine: SimulatedEngine, hook: str, kind: type[Fails | Hangs]
) -> None:
    """One error that names provider and hook; a silent one is waited for no longer than its limit."""
    cloud = ScriptedCloud(kind(hook, times=ALWAYS))
    refused({"max_provision_attempts": 1}, cloud, error=sky.SkywardError, match=rf"cloud.* skyward_{hook}")
    assert ([], []) == (cloud.rows, cloud.open)
    assert engine.now <= 400.0


def test_machines_of_this_user_that_nobody_looks_after_are_told_of(
    engine: SimulatedEngine, caplog: pytest.LogCaptureFixture
) -> None:
    """A cloud that cannot list them is let be."""
    cloud = ScriptedCloud(Fails("owned", times=ALWAYS))
    pool, _ = compute(cloud)
    with pool:
        assert 1 == len(cloud.times("owned"))
    assert [] == [record for record in caplog.records if record.levelname == "WARNING"]


def test_many_machines_are_asked_for_side_by_side(engine: SimulatedEngine) -> None:
    """After the first request has shown that there are any: 1,000 nodes wait for eight answers and not for 32."""
    cloud = ScriptedCloud(SlowApi(seconds=2.0))
    pool, _ = compute(cloud, nodes=9 * BATCH)
    with pool:
        assert 9 * BATCH == pool.current_nodes()
    first, *others = cloud.times("launch")
    assert [first + 2.0 + 2.0 * (number // SIDE_BY_SIDE) for number in range(8)] == pytest.approx(others)


def test_a_cloud_that_runs_out_is_asked_one_after_the_other(engine: SimulatedEngine) -> None:
    """As soon as that is known; in all as often as if none had been asked for side by side: twice for what it lacks."""
    cloud = ScriptedCloud(SlowApi(seconds=2.0), NoCapacity(left=2 * BATCH))
    pool, _ = compute(cloud, nodes=12 * BATCH, max_provision_attempts=1)
    with pytest.raises(sky.SkywardError, match="There is no small left"):
        pool.open()
    times = cloud.times("launch")
    assert [1, SIDE_BY_SIDE] == [times.count(moment) for moment in sorted(set(times))[:2]]
    assert 2 + 2 * (12 - 2) == len(times)
    assert sorted(set(times[8:])) == times[8:]
    assert [] == cloud.there


def test_disks_that_a_cloud_does_not_keep_are_refused_before_it_is_asked(engine: SimulatedEngine) -> None:
    """Neither for offers nor for a check: the error names the clouds that keep them."""
    cloud = ScriptedCloud()
    settings = {"volumes": [sky.Disk("data")]}
    error = refused(settings, cloud, error=sky.ConfigError, match="cloud keeps no disks, and volumes= has 'data'")
    for name in ("AWS", "DigitalOcean", "RunPod", "VastAI", "Verda"):
        assert f"sky.{name}" in str(error)
    assert [] == cloud.calls
    one = ScriptedCloud(disks=1)
    both = {"volumes": [sky.Disk("a"), sky.Disk("b")]}
    refused(both, one, error=sky.ConfigError, match="cloud attaches 1 disk to a machine, and volumes= has 2")
    assert [] == one.calls


@pytest.mark.parametrize("provider", [sky.Local(), sky.SSH(["host.example"])])
def test_machines_that_are_there_anyway_have_no_disks(provider: Any) -> None:
    """A folder is there without being attached."""
    with (
        pytest.raises(sky.ConfigError, match="keeps no disks"),
        sky.Compute(provider=provider, volumes=[sky.Disk("data")], console=False),
    ):
        pytest.fail("opened")
