"""What becomes of the machines of one offer: the pool as hooks see it, the image, what plugins add to it."""

from __future__ import annotations

from typing import Any

from attrs import evolve, frozen

from skyward import plugin as hooks
from skyward.errors import ConfigError
from skyward.model.accelerators.accelerator import PARTITION_KEYWORD, is_trainium
from skyward.model.instances.cluster import Cluster
from skyward.model.instances.instance import AcceleratorInfo, InstanceInfo
from skyward.model.instances.machine import Instance, SSHAddress
from skyward.model.instances.offer import Offer
from skyward.model.spec.image import Image
from skyward.origin import install
from skyward.registry import plugins_checked

SSH_PORT = 22
"""Port of SSH servers that nothing else is said of."""


@frozen(kw_only=True, eq=False)
class Blueprint:
    """
    Hold what the machines of one offer are made into.

    Args:
        cluster: The pool, as hooks see it.
        image: What its nodes hold, with what plugins changed.
        ops: What plugins add to making them.
        collective: Whether the ranks of a broadcast form one job.
    """

    cluster: Cluster
    image: Image
    ops: tuple[Any, ...]
    collective: bool = False

    def info(self, node: int, instance: Instance) -> InstanceInfo:
        """Describe a place in the pool."""
        offer = self.cluster.offer
        accelerator = None
        if offer.accelerator_name:
            accelerator = AcceleratorInfo(
                type=offer.accelerator_name,
                count=offer.accelerator_count,
                memory_gb=offer.accelerator_memory_gb,
                is_trainium=is_trainium(offer.accelerator_name),
            )
        return InstanceInfo(
            node=node,
            workers_per_node=self.cluster.ranks_per_node,
            job_id=self.cluster.pool_id,
            accelerators=offer.accelerator_count or 0,
            accelerator=accelerator,
            id=instance.id,
            provider=instance.provider,
            ip=instance.ip,
            private_ip=instance.private_ip,
            spot=instance.spot,
            hourly_rate=instance.hourly_rate,
            on_demand_rate=offer.on_demand_price,
            instance_type=instance.instance_type,
            region=instance.region,
            vcpus=offer.vcpus,
            memory_gb=offer.memory_gb,
            gpu_count=int(offer.accelerator_count or 0),
            gpu_model=offer.accelerator_name,
            gpu_vram_gb=offer.accelerator_memory_gb,
            ssh_port=ssh_port(instance.address) or SSH_PORT,
        )


def ssh_port(address: object) -> int | None:
    """Return the port that an address says the machine's SSH server is reached at, if it says one."""
    return address.port if isinstance(address, SSHAddress) else None


def draw(cluster: Cluster, offer: Offer) -> Blueprint:
    """
    Decide what becomes of the machines of an offer.

    Args:
        cluster: The pool, whatever its offer.
        offer: The offer.

    Raises:
        ConfigError: If a plugin refuses it, or the ranks cannot be laid out.
        PluginError: If a hook raises.
    """
    plugins = cluster.spec.plugins
    cluster = evolve(cluster, offer=offer, ranks_per_node=1)
    topology = hooks.topology(plugins, cluster)
    _check_slices(cluster, partitions=topology.partitions)
    cluster = evolve(cluster, ranks_per_node=topology.ranks_per_node or _ranks(cluster))
    _check_joined(cluster, collective=topology.collective)
    plugins_checked(plugins)
    hooks.validated(plugins, cluster)
    image = hooks.transform_image(plugins, cluster.spec.image, cluster)
    ops = hooks.bootstrap_ops(plugins, cluster)
    return Blueprint(cluster=cluster, image=image, ops=ops, collective=topology.collective)


def _check_joined(cluster: Cluster, *, collective: bool) -> None:
    """Refuse nodes that cannot work together although they are to, and those that are to and may not."""
    if cluster.nodes == 1:
        return
    if cluster.joined and not cluster.nodes_reach_each_other:
        raise ConfigError(
            f"cluster=True asks for nodes that reach each other, and the machines of {cluster.provider} have no "
            "network between them.",
            hint="Choose another provider, one node, or leave cluster= out.",
        )
    if cluster.joined is False and collective:
        raise ConfigError(
            f"cluster=False has {cluster.nodes} nodes work each by itself, and a plugin makes one job of their ranks.",
            hint="Leave cluster= out, or the plugin.",
        )


def _check_slices(cluster: Cluster, *, partitions: bool) -> None:
    """Refuse slices that no plugin cuts."""
    profile = None if cluster.spec.accelerator is None else cluster.spec.accelerator.mig
    if profile is not None and not partitions:
        keyword = PARTITION_KEYWORD
        raise ConfigError(
            f"accelerator= asks for slices of {profile}, and no plugin cuts the nodes' GPUs into them.",
            hint=f"Write plugins=[sky.plugins.{keyword}()], which {install(keyword)} brings, or leave {keyword}= out.",
        )


def _ranks(cluster: Cluster) -> int:
    if cluster.worker.per_node != "accelerator":
        return cluster.worker.per_node
    if not cluster.offer.accelerator_count:
        raise ConfigError(
            'per_node="accelerator" wants one rank for each accelerator, and the nodes have none. '
            "Give a number, or ask for an accelerator."
        )
    return int(cluster.offer.accelerator_count)
