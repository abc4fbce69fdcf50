"""The backend of a process group, where none is asked for."""

from __future__ import annotations

from skyward import InstanceInfo

__all__ = ["default_backend"]


def default_backend(info: InstanceInfo, gpus: int) -> str:
    """
    Return the backend that suits a pool: NCCL for what is on GPUs, and gloo for the rest.

    NCCL refuses two ranks on one GPU, which nodes of this machine are: each numbers its ranks from 0.
    Gloo carries what is on a GPU too, by way of main memory.

    Args:
        info: The rank's place.
        gpus: How many GPUs it sees.

    >>> default_backend(InstanceInfo(provider="aws", total_nodes=2), gpus=1)
    'cpu:gloo,cuda:nccl'
    >>> default_backend(InstanceInfo(provider="local", total_nodes=2), gpus=1)
    'gloo'
    """
    several_nodes = info.total_workers > info.workers_per_node
    shared = info.provider == "local" and (several_nodes or info.workers_per_node > gpus)
    return "gloo" if shared or not gpus else "cpu:gloo,cuda:nccl"
