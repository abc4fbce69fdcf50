"""Machines of an earlier pool that a new one begins with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from attrs import field, frozen

from skyward.engine.instances.detached_records import Inheritance
from skyward.engine.instances.lingering_records import LeftMachine
from skyward.engine.instances.rented import Resumed
from skyward.model.instances.key_pair import KeyPair

if TYPE_CHECKING:
    from skyward.model.spec.spec import Spec
    from skyward.ssh.visits import KeptVisit

__all__ = ["Adopted"]


@frozen(kw_only=True, eq=False)
class Adopted:
    """
    Hold machines of an earlier pool that are this program's now.

    Args:
        pool_id: The use of the pool that they were rented for, which the new pool goes on with: it is written on them.
        key: What logs in at them.
        spec: The spec that they are alike in.
        machines: The machines.
        shared: What those of each region share.
        visits: The connections to them.
        resumed: The nodes that they are already, by their marks; empty where nodes are to be made of them.
        inheritance: The calls that those have; None where there are none.
        members: The latest version of the members that they know.
        ends_at: When their lease ends, in seconds since 1970.
    """

    pool_id: str
    key: KeyPair
    spec: Spec
    machines: tuple[LeftMachine, ...]
    shared: tuple[tuple[str | None, Any], ...]
    visits: KeptVisit
    resumed: Mapping[str, Resumed] = field(factory=dict)
    inheritance: Inheritance | None = None
    members: int = 0
    ends_at: float = 0.0

    @property
    def places(self) -> tuple[int, ...]:
        """List the nodes that they are already, by their indices."""
        return tuple(sorted(machine.instance.node for machine in self.machines if machine.mark in self.resumed))

    @property
    def billed(self) -> bool:
        """Return whether any of them costs money."""
        return any(machine.candidate.price for machine in self.machines)
