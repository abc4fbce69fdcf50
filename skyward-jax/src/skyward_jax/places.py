"""
What a rank's place in a pool is to JAX.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from attrs import astuple, frozen

from skyward import InstanceInfo

__all__ = ["Held", "devices", "is_met"]


@frozen
class Held:
    """
    Hold what a rank sends the others of its process; or what all of them have.

    Args:
        name: The world that it is in; empty if that is none, or none that the broadcast can have.
        attached: Whether JAX's backends are in it now.
        used: Whether it has been in one.
        keys: Whether it has left keys at the coordinator.

    >>> one, other = Held("3"), Held("3", attached=False)
    >>> Held.of_all([one.render(), other.render()])
    Held(name='3', attached=False, used=True, keys=False)
    >>> Held.of_all([one.render(), Held("", used=False).render()]).name
    ''
    """

    name: str
    attached: bool = True
    used: bool = True
    keys: bool = False

    def render(self) -> str:
        """Render it as text."""
        return json.dumps(astuple(self))

    @classmethod
    def of_all(cls, said: Iterable[str]) -> Held:
        """
        Return what all ranks have together: a world that is the same for all, backends if all have them.

        Args:
            said: What `render` gave on each of them.
        """
        each = [cls(*json.loads(text)) for text in said]
        names = {held.name for held in each}
        return cls(
            names.pop() if len(names) == 1 else "",
            attached=all(held.attached for held in each),
            used=any(held.used for held in each),
            keys=any(held.keys for held in each),
        )


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
    Return whether the world that is there is what `jax.distributed.initialize` is asked for.

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
