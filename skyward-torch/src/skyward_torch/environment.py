"""
The variables by which torch and what is built on it identify a process, as torchrun sets them.
"""

from __future__ import annotations

from skyward import InstanceInfo

__all__ = ["environment"]


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
        # The store at that port is there already, and no other is to be opened.
        "TORCHELASTIC_USE_AGENT_STORE": info.total_workers > 1,
        "TORCHELASTIC_RUN_ID": info.job_id,
        # A rank that fails ends its broadcast, and whatever comes next is another one.
        "TORCHELASTIC_RESTART_COUNT": 0,
        "TORCHELASTIC_MAX_RESTARTS": 0,
        "TORCH_NCCL_ASYNC_ERROR_HANDLING": 1,
        # All ranks have one role, as with torchrun if nothing else is said.
        "ROLE_NAME": "default",
        "ROLE_RANK": info.global_worker_index,
        "ROLE_WORLD_SIZE": info.total_workers,
    }
    return {name: str(value) for name, value in facts.items()}
