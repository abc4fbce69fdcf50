"""From a spec to nodes: what is checked before anything is rented, what nodes hear, how long a step may take."""

from __future__ import annotations

import datetime as dt
import threading
from typing import Any

import pytest
from attrs import evolve

import skyward as sky
from skyward.engine.instances.provisioning import START_TIMEOUT
from skyward.hookspecs import Cluster, LaunchCommand, LaunchContext
from skyward.testing import NoCapacity
from tests.simulated.engine import SimulatedEngine
from tests.simulated.pool import compute
from tests.simulated.provider import SMALL, ScriptedCloud

ZONES = (("a", 0.1), ("b", 0.2), ("c", 0.3))


class Token:
    """A class of the user's."""


def plugin_with_a_lock() -> sky.Plugin:
    """Make a plugin whose hook for workers holds what cannot travel."""
    lock = threading.Lock()

    def held(info: sky.InstanceInfo) -> Any:
        return lock

    return sky.Plugin.create("locked").with_around_process(held)


@pytest.mark.parametrize(
    ("settings", "error", "said"),
    [
        ({"image": sky.Image(python="3.9")}, sky.ConfigError, r"asks for Python 3\.9 but this client runs Python"),
        ({"plugins": [plugin_with_a_lock()]}, sky.PluginError, "locked cannot be sent to nodes: .*lock"),
        ({"accelerator": "A100", "per_node": "accelerator"}, sky.NoAvailableProviderError, "accelerator='A100'"),
        ({"per_node": "accelerator"}, sky.ConfigError, "the nodes have none"),
    ],
    ids=["python", "pickling", "accelerator", "ranks"],
)
def test_what_cannot_work_is_refused_before_anything_is_rented(
    engine: SimulatedEngine, settings: dict[str, Any], error: type[Exception], said: str
) -> None:
    """An image of another Python, a plugin that does not travel, ranks that cannot be laid out."""
    cloud = ScriptedCloud()
    with pytest.raises(error, match=said):
        compute(cloud, **settings)[0].open()
    assert ([], []) == (cloud.requests, cloud.open)


def config(cloud: ScriptedCloud, row: int = 0) -> dict[str, Any]:
    """Return what the agent of a machine was told."""
    [host] = cloud.rows[row].machine.hosts
    assert host.agent is not None
    return host.agent.config


@pytest.mark.parametrize(
    ("worker", "lanes", "slots"),
    [
        (sky.Worker(), 1, 1),
        (sky.Worker(concurrency=4, executor="thread"), 1, 4),
        (sky.Worker(concurrency=4, executor="process"), 4, 1),
        (sky.Worker(per_node=2), 2, 1),
    ],
    ids=["one", "threads", "processes", "ranks"],
)
def test_an_agent_is_told_its_lanes(engine: SimulatedEngine, worker: sky.Worker, lanes: int, slots: int) -> None:
    """One for each worker process, and how many calls it runs at once."""
    cloud = ScriptedCloud()
    pool, _ = compute(cloud, worker=worker)
    with pool:
        told = config(cloud)
    assert (lanes, slots) == (len(told["lanes"]), told["slots"])


def test_ranks_of_a_node_have_one_accelerator_each(engine: SimulatedEngine) -> None:
    """Shown by its variables."""
    offer = evolve(SMALL, accelerator_name="T4", accelerator_count=2, accelerator_memory_gb=16)
    cloud = ScriptedCloud(offers=(offer,))
    pool, _ = compute(cloud, accelerator="T4", worker=sky.Worker(per_node="accelerator"))
    with pool:
        told = config(cloud)
    assert ["0", "1"] == [lane["env"]["CUDA_VISIBLE_DEVICES"] for lane in told["lanes"]]
    assert [0, 1] == [lane["facts"]["worker"] for lane in told["lanes"]]


def test_a_plugin_changes_how_workers_are_started(engine: SimulatedEngine) -> None:
    """Each of them, knowing node, rank and lane."""
    seen: list[tuple[int, int]] = []

    def launcher(command: LaunchCommand, context: LaunchContext) -> LaunchCommand:
        seen.append((context.node, context.rank))
        return evolve(command, argv=("numactl", *command.argv), env={**command.env, "RANK": str(context.rank)})

    cloud = ScriptedCloud()
    pool, _ = compute(cloud, nodes=2, plugins=[sky.Plugin.create("bound").with_launcher(launcher)])
    with pool:
        assert ["numactl", "numactl"] == [config(cloud, row)["lanes"][0]["argv"][0] for row in (0, 1)]
        assert "0" == config(cloud)["lanes"][0]["env"]["RANK"]
    assert [(0, 0), (1, 0)] == seen


def test_only_spot_machines_look_for_notices(engine: SimulatedEngine) -> None:
    """By the provider's command."""
    for allocation, told in (("spot", ["ask"]), ("on-demand", [])):
        cloud = ScriptedCloud(notice_command=("ask",))
        pool, _ = compute(cloud, allocation=allocation)
        with pool:
            assert told == config(cloud)["notice"]


def test_workers_that_do_not_come_up_in_time_are_given_up(engine: SimulatedEngine) -> None:
    """After `START_TIMEOUT`, or the limit of the bootstrap if that is longer; the machine is given back."""

    class Slow(ScriptedCloud):
        def add(self, request: Any, node: int) -> Any:
            row = super().add(request, node)
            row.machine.starts = 1e6
            return row

    for limit, waited in ((10.0, START_TIMEOUT), (200.0, 200.0)):
        cloud = Slow()
        pool, _ = compute(cloud, bootstrap_timeout=limit, max_provision_attempts=1)
        with pytest.raises(sky.ProvisionError, match=rf"were not ready within {waited:g} s"):
            pool.open()
        assert [] == cloud.there


def test_a_plugin_that_refuses_an_offer_has_it_passed_over(engine: SimulatedEngine) -> None:
    """The first offer is refused as a mistake, a later one as an offer that will not do."""

    def validate(cluster: Cluster) -> None:
        if cluster.offer.zone == "b":
            raise sky.ConfigError("Not in b.")

    offers = tuple(evolve(SMALL, zone=zone, spot_price=None, on_demand_price=price) for zone, price in ZONES)
    cloud = ScriptedCloud(NoCapacity(zone="a"), offers=offers)
    pool, _ = compute(cloud, max_hourly_cost=1.0, plugins=[sky.Plugin.create("picky").with_validate(validate)])
    with pool:
        assert ["c"] == [row.request.cluster.offer.zone for row in cloud.there]
    assert ["a", "c"] == [one.cluster.offer.zone for one in cloud.requests]


@pytest.mark.parametrize(
    ("settings", "strangers", "opened"),
    [
        ({}, False, True),
        ({}, True, False),
        ({"trust": "code"}, True, True),
        ({"trust": "data"}, False, False),
        ({"trust": sky.Data(dt.tzinfo)}, False, False),
        ({"trust": sky.Data(Token)}, True, True),
    ],
)
def test_what_a_machine_sends_is_opened_as_its_owner_is_trusted(
    engine: SimulatedEngine, settings: dict[str, Any], strangers: bool, opened: bool
) -> None:
    """As data where it belongs to strangers, unless the spec says otherwise; what its worker raised first always is."""
    pool, _ = compute(ScriptedCloud(strangers=strangers), **settings)
    with pool:
        call = sky.function(Token)() > pool
        if opened:
            assert isinstance(engine.result(call), Token)
        else:
            with pytest.raises(
                sky.ResultError, match=r"holds .*Token, and this machine is trusted with data only.*sky\.Data\(Token\)"
            ):
                engine.result(call)
