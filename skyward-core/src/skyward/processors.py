"""
Shares a machine's processors among the tasks on it, because libraries of linear algebra take all of them in each.

They read how many they may have when they are loaded, so it is in the environment that a worker is started with.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from attrs import evolve

from skyward.model.instances.cluster import Cluster, LaunchCommand

__all__ = ["OPENMP", "sharing", "threads"]

OPENMP = "OMP_NUM_THREADS"
"""The variable that most of these libraries read."""


def sharing(command: LaunchCommand, cluster: Cluster, variables: Iterable[str] = (OPENMP,)) -> LaunchCommand:
    """
    Return a worker's command with the share of its machine that each of its tasks gets.

    Args:
        command: The command; what its environment says already holds, and on this machine what the client's says.
        cluster: The pool.
        variables: What is to be set.

    >>> from skyward.model.instances.offer import Offer
    >>> from skyward.model.spec.spec import Spec
    >>> offer = Offer(provider="cloud", instance_type="m7", vcpus=8)
    >>> cluster = Cluster(
    ...     pool_id="a1", pool_name="train", spec=Spec(), offer=offer, provider="cloud", nodes=2, ranks_per_node=2,
    ... )
    >>> dict(sharing(LaunchCommand(argv=["python"]), cluster).env)
    {'OMP_NUM_THREADS': '4'}
    """
    here = cluster.provider == "local"
    env = {**os.environ, **command.env} if here else command.env
    # All nodes of this machine share its processors.
    tasks = cluster.ranks_per_node * cluster.worker.concurrency * (cluster.nodes if here else 1)
    vcpus = min(cluster.offer.vcpus or 1, _usable()) if here else cluster.offer.vcpus
    return evolve(command, env={**command.env, **threads(env, vcpus=vcpus, tasks=tasks, variables=variables)})


def threads(
    env: Mapping[str, str], *, vcpus: float | None, tasks: int, variables: Iterable[str] = (OPENMP,)
) -> dict[str, str]:
    """
    Return the variables that limit each of a machine's tasks to its share of the processors.

    Args:
        env: What the user says, which holds.
        vcpus: How many processors there are; None where it is not known.
        tasks: How many tasks share them.
        variables: What is to be set.

    >>> threads({}, vcpus=8, tasks=2), threads({"OMP_NUM_THREADS": "8"}, vcpus=8, tasks=2)
    ({'OMP_NUM_THREADS': '4'}, {})
    """
    if tasks == 1:
        return {}
    share = str(max(1, int(vcpus or 1) // tasks))
    return {name: share for name in variables if name not in env}


def _usable() -> int:
    """Count the processors that this process may run on."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1
