"""
Which process group is torch's default one; torch has no public way of putting one aside and taking it up again.

What is relied on here is the same from torch 2.4 on, and held by the suite `frameworks`.
"""

from __future__ import annotations

from typing import Any

import torch.distributed as dist
from torch.distributed import distributed_c10d as c10d

__all__ = [
    "ALONE",
    "alive",
    "close_all",
    "current",
    "entered",
    "entered_anywhere",
    "made",
    "number_from",
    "numbered",
    "use",
]

ALONE = 1 << 40
"""The number that groups of one rank are counted from; ranks number those they share by the broadcast."""


def current() -> Any:
    """Return the default group; None if there is none."""
    return c10d.GroupMember.WORLD


def use(group: Any) -> None:
    """Make a group the default one; None for none."""
    c10d._update_default_pg(group)


def alive(group: Any) -> bool:
    """Return whether a group was not destroyed."""
    return group is not None and group in c10d._world.pg_map


def made(make: Any, *, count: int, **settings: Any) -> Any:
    """
    Make a group, and leave no default one.

    Args:
        make: torch's `init_process_group`.
        count: What it is numbered with; the same on all its ranks, whose keys in the store begin with it.
        settings: As torch takes them.
    """
    use(None)
    c10d._world.group_count = count
    make(**settings)
    group = current()
    use(None)
    return group


def numbered() -> int:
    """Return the number of the next group."""
    count: int = c10d._world.group_count
    return count


def number_from(count: int) -> None:
    """Set the number of the next group."""
    c10d._world.group_count = count


def entered(group: Any) -> int:
    """Count the collectives that this process has entered in a group; 0 where its backend does not count."""
    try:
        count: int = group._get_sequence_number_for_group()
    except RuntimeError:
        return 0
    return count


def entered_anywhere() -> int:
    """Count the collectives that this process has entered in all groups that there are."""
    return sum(map(entered, tuple(c10d._world.pg_map)))


def close_all(group: Any, *, broken: bool) -> None:
    """
    Destroy a group and all that there are beside it.

    Args:
        group: The group; one that is destroyed already is no error.
        broken: Whether its ranks may be in different places, so that none is to be waited for.
    """
    if not alive(group):
        return
    use(group)
    if broken and dist.get_backend(group) != "gloo":
        c10d._abort_process_group()
    else:
        dist.destroy_process_group()
