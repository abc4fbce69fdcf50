"""
What plugins ask of nodes whose ranks form one job.
"""

from __future__ import annotations

from skyward.errors import ConfigError
from skyward.model.instances.cluster import Cluster

__all__ = ["check_collective"]


def check_collective(cluster: Cluster, framework: str, group: str) -> None:
    """
    Refuse nodes whose ranks cannot form one job, before anything is rented for them.

    Args:
        cluster: The pool.
        framework: What makes one job of them, such as `"JAX"`.
        group: What it calls the ranks that do, such as `"world"`.

    Raises:
        ConfigError: If a process is to run several tasks at once, or nodes have no network between them.

    >>> from skyward.model.instances.offer import Offer
    >>> from skyward.model.spec.spec import Spec
    >>> offer = Offer(provider="cloud", instance_type="small")
    >>> cluster = Cluster(
    ...     pool_id="a1", pool_name="train", spec=Spec(), offer=offer, provider="cloud", nodes=2,
    ...     nodes_reach_each_other=False,
    ... )
    >>> check_collective(cluster, "JAX", "world")
    Traceback (most recent call last):
        ...
    skyward.errors.ConfigError: The machines of cloud have no network between them, over which the ranks of 2 nodes...
    """
    if cluster.worker.concurrency > 1:
        raise ConfigError(
            f"{framework} has one {group} for all that a process does, and "
            f"concurrency={cluster.worker.concurrency} asks for several tasks at once.",
            hint="Give nodes more ranks instead: per_node=.",
        )
    if cluster.nodes > 1 and not cluster.nodes_reach_each_other:
        raise ConfigError(
            f"The machines of {cluster.provider} have no network between them, over which the ranks of "
            f"{cluster.nodes} nodes could form a {group}.",
            hint="Rent one node with more accelerators, or choose another provider.",
        )
