"""What becomes of the machines of one offer: ranks, what plugins change, and what users hear of a machine."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve

import skyward as sky
from skyward.engine.instances.blueprint import draw
from skyward.hookspecs import Cluster, Instance, Offer, Topology
from skyward.model.instances.machine import SSHAddress

GPUS = Offer(
    provider="cloud",
    instance_type="gpus",
    vcpus=16,
    memory_gb=64,
    accelerator_name="T4",
    accelerator_count=4,
    accelerator_memory_gb=16,
    on_demand_price=2.0,
)
NONE = Offer(provider="cloud", instance_type="plain", on_demand_price=0.1)


def cluster(*plugins: Any, worker: sky.Worker | None = None, **spec: Any) -> Cluster:
    """Describe a pool before its offer is known."""
    made = sky.Spec(plugins=plugins, **spec)
    unknown = Offer(provider="cloud", instance_type="")
    facts: dict[str, Any] = {"worker": worker} if worker is not None else {}
    return Cluster(pool_id="a1", pool_name="pool", spec=made, offer=unknown, provider="cloud", nodes=1, **facts)


@pytest.mark.parametrize(
    ("worker", "offer", "ranks"),
    [(None, NONE, 1), (sky.Worker(per_node=3), NONE, 3), (sky.Worker(per_node="accelerator"), GPUS, 4)],
    ids=["one", "number", "accelerator"],
)
def test_a_node_has_the_ranks_that_are_asked_for(worker: sky.Worker | None, offer: Offer, ranks: int) -> None:
    """A number, or one for each accelerator."""
    assert ranks == draw(cluster(worker=worker), offer).cluster.ranks_per_node


def test_one_rank_an_accelerator_wants_accelerators() -> None:
    """The error says what to do."""
    with pytest.raises(sky.ConfigError, match=r"the nodes have none\. Give a number"):
        draw(cluster(worker=sky.Worker(per_node="accelerator")), NONE)


def test_a_plugin_lays_ranks_out() -> None:
    """And says whether they form one job; another number of the user's contradicts it."""
    plugin = sky.Plugin.create("job").with_topology(lambda cluster: Topology(ranks_per_node=2, collective=True))
    made = draw(cluster(plugin), GPUS)
    assert (2, True) == (made.cluster.ranks_per_node, made.collective)
    with pytest.raises(sky.ConfigError, match=r"needs 2 ranks on each node, which per_node=3 forbids"):
        draw(cluster(plugin, worker=sky.Worker(per_node=3)), GPUS)


def test_plugins_are_asked_with_the_offer_and_the_layout_known() -> None:
    """They may refuse, change the image, and add steps."""
    seen: list[tuple[str, int]] = []

    def validate(found: Cluster) -> None:
        seen.append((found.offer.instance_type, found.ranks_per_node))

    plugin = (
        sky.Plugin.create("all")
        .with_validate(validate)
        .with_image_transform(lambda image, cluster: evolve(image, pip=(*image.pip, "x")))
        .with_bootstrap(lambda cluster: ("echo hi",))
    )
    made = draw(cluster(plugin, worker=sky.Worker(per_node=2)), GPUS)
    assert [("gpus", 2)] == seen
    assert ((), ("x",)) == (made.cluster.spec.image.pip, made.image.pip)
    assert 1 == len(made.ops)


def test_slices_need_the_plugin_that_cuts_them() -> None:
    """No user rents a whole GPU by mistake."""
    wanted = sky.accelerators.A100(mig="1g.5gb")
    with pytest.raises(sky.ConfigError, match=r"slices of 1g\.5gb, and no plugin cuts"):
        draw(cluster(accelerator=wanted), GPUS)


def test_any_plugin_may_cut_slices() -> None:
    """Core knows it by what the plugin says of itself, and not by its name."""
    cutter = sky.Plugin.create("cutter").with_topology(lambda cluster: Topology(ranks_per_node=7, partitions=True))
    drawn = draw(cluster(cutter, accelerator=sky.accelerators.A100(mig="1g.5gb")), GPUS)
    assert 7 == drawn.cluster.ranks_per_node
    idle = sky.Plugin.create("mig")
    with pytest.raises(sky.ConfigError, match=r"no plugin cuts the nodes. GPUs .*\[sky\.plugins\.mig\(\)\]"):
        draw(cluster(idle, accelerator=sky.accelerators.A100(mig="1g.5gb")), GPUS)


def test_a_place_in_the_pool_is_described_with_offer_and_machine() -> None:
    """As users and events see it."""
    machine = Instance(id="i-1", node=3, provider="cloud", ip="1.2.3.4", spot=True, hourly_rate=0.5, region="eu")
    info = draw(cluster(worker=sky.Worker(per_node=2)), GPUS).info(3, machine)
    assert (3, 2, "a1", "i-1", "1.2.3.4", "eu") == (
        info.node,
        info.workers_per_node,
        info.job_id,
        info.id,
        info.ip,
        info.region,
    )
    assert (True, 0.5, 2.0) == (info.spot, info.hourly_rate, info.on_demand_rate)
    assert ("T4", 4, 16) == (info.gpu_model, info.gpu_count, info.gpu_vram_gb)
    plain = draw(cluster(), NONE).info(0, machine)
    assert (0, None, 22) == (plain.accelerators, plain.accelerator, plain.ssh_port)
    mapped = evolve(machine, address=SSHAddress(host="1.2.3.4", port=40022))
    assert 40022 == draw(cluster(), NONE).info(0, mapped).ssh_port


@pytest.mark.parametrize(("name", "trainium"), [("Trainium2", True), ("Inferentia2", False), ("T4", False)])
def test_a_place_tells_whether_its_accelerators_are_trainium(name: str, trainium: bool) -> None:
    """They want another runtime than GPUs."""
    found = draw(cluster(), evolve(GPUS, accelerator_name=name)).info(0, Instance(id="i", node=0, provider="cloud"))
    assert found.accelerator is not None
    assert trainium is found.accelerator.is_trainium


JOB = sky.Plugin.create("job").with_topology(lambda cluster: Topology(collective=True))


@pytest.mark.parametrize(
    ("joined", "reach", "plugins", "message"),
    [
        (True, False, (), r"cluster=True asks for nodes that reach each other, and the machines of cloud have no"),
        (False, True, (JOB,), r"cluster=False has 2 nodes work each by itself, and a plugin makes one job"),
    ],
    ids=["no network", "a collective plugin"],
)
def test_nodes_that_cannot_work_as_they_are_to_are_refused(
    joined: bool, reach: bool, plugins: tuple[Any, ...], message: str
) -> None:
    """Before anything is rented; one node is always together with itself."""
    made = evolve(cluster(*plugins), joined=joined, nodes_reach_each_other=reach)
    with pytest.raises(sky.ConfigError, match=message):
        draw(evolve(made, nodes=2), NONE)
    draw(made, NONE)


@pytest.mark.parametrize("joined", [None, True])
def test_nodes_may_work_together(joined: bool | None) -> None:
    """Where they reach each other, and nothing forbids it."""
    assert draw(evolve(cluster(JOB), nodes=2, joined=joined), NONE).collective
