"""
The variables by which torch and what is built on it learn who they are, as torchrun sets them.
"""

from __future__ import annotations

from collections.abc import Mapping

from skyward import InstanceInfo

__all__ = ["environment", "threads"]


def environment(info: InstanceInfo, *, own_device: bool) -> dict[str, str]:
    """
    Render what a rank finds in its environment.

    A call that is no broadcast, and a broadcast to one rank, is a world of one.

    Args:
        info: The rank's place.
        own_device: Whether the rank sees no accelerator but its own, which is number 0 to it then.

    >>> here = InstanceInfo(node=1, worker=1, total_nodes=2, workers_per_node=2, broadcast=7, head_port=2500)
    >>> made = environment(here, own_device=False)
    >>> made["RANK"], made["WORLD_SIZE"], made["LOCAL_RANK"], made["MASTER_PORT"]
    ('3', '4', '1', '2500')
    >>> environment(here, own_device=True)["LOCAL_RANK"]
    '0'
    """
    if not info.broadcast or info.total_workers == 1:
        info = InstanceInfo(job_id=info.job_id)
    local = 0 if own_device else info.worker
    facts = {
        "RANK": info.global_worker_index,
        "WORLD_SIZE": info.total_workers,
        "LOCAL_RANK": local,
        "LOCAL_WORLD_SIZE": info.workers_per_node,
        "GROUP_RANK": info.node,
        "NODE_RANK": info.node,
        "GROUP_WORLD_SIZE": info.total_nodes,
        "MASTER_ADDR": info.head_addr,
        "MASTER_PORT": info.head_port,
        # The store at that port is there already, and nobody else is to open one.
        "TORCHELASTIC_USE_AGENT_STORE": info.total_workers > 1,
        "TORCHELASTIC_RUN_ID": info.job_id,
    }
    return {name: str(value) for name, value in facts.items()}


def threads(env: Mapping[str, str], *, vcpus: float | None, ranks: int) -> dict[str, str]:
    """
    Share a machine's processors among the ranks on it; each would take all of them otherwise.

    Args:
        env: What the user says, which holds.
        vcpus: How many processors there are; None where it is not known.
        ranks: How many ranks share them.

    >>> threads({}, vcpus=8, ranks=2), threads({"OMP_NUM_THREADS": "8"}, vcpus=8, ranks=2)
    ({'OMP_NUM_THREADS': '4'}, {})
    """
    if ranks == 1 or "OMP_NUM_THREADS" in env:
        return {}
    return {"OMP_NUM_THREADS": str(max(1, int(vcpus or 1) // ranks))}
