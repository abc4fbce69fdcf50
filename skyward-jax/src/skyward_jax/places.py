"""
What a rank's place in a pool is to JAX.
"""

from __future__ import annotations

from skyward import InstanceInfo

__all__ = ["devices", "is_met"]


def devices(info: InstanceInfo, *, own_device: bool) -> list[int] | None:
    """
    List the accelerators of a node that are a rank's own; None if all that it sees are.

    Args:
        info: The rank's place.
        own_device: Whether the rank sees no accelerator but its own.

    >>> devices(InstanceInfo(worker=1, workers_per_node=2, accelerators=8), own_device=False)
    [4, 5, 6, 7]
    """
    share = int(info.accelerators) // info.workers_per_node
    if own_device or info.workers_per_node == 1 or not share:
        return None
    return list(range(info.worker * share, (info.worker + 1) * share))


def is_met(asked: dict[str, object], *, rank: int, ranks: int) -> bool:
    """
    Tell whether the world that is there is what `jax.distributed.initialize` is asked for.

    Where its ranks meet is not looked at: they have met.

    Args:
        asked: The arguments that were given.
        rank: The process's rank in it.
        ranks: How many ranks it has.

    >>> is_met({"coordinator_address": "10.0.0.1:1234", "num_processes": 2, "process_id": 1}, rank=1, ranks=2)
    True
    >>> is_met({"num_processes": 1, "process_id": 0}, rank=1, ranks=2)
    False
    """
    return asked.get("num_processes") in (None, ranks) and asked.get("process_id") in (None, rank)
