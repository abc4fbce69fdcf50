"""A machine that a pool has rented, and what it was rented with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attrs import field, frozen

if TYPE_CHECKING:
    from skyward.engine.instances.blueprint import Blueprint
    from skyward.model.instances.machine import Instance
    from skyward.model.instances.machine_image import MachineImage
    from skyward.plan.instances.instance_record import Key
    from skyward.plan.offers.choice import Candidate


@frozen(kw_only=True)
class Resumed:
    """
    Say which node a machine is already, that an earlier client has left.

    Args:
        mark: The node's own name on its machine.
        before: What its agent lets its next client in by, one of them.
        session: What it lets the client in by from then on.
    """

    mark: str
    before: tuple[str, ...] = field(repr=False)
    session: str = field(repr=False)


@frozen(kw_only=True, eq=False)
class Rented:
    """
    Hold a machine, and what it was rented with.

    Args:
        instance: The machine.
        candidate: The offer, and its market.
        blueprint: What is made of it.
        infra: What the pool's machines in its region share.
        token: Names the request that rented it.
        machine_image: What it boots from; None is what it boots by itself.
        at: When it was rented, in seconds of the loop's clock.
        before: The name of the node that it was for an earlier pool, after which it lingered; empty if it was none.
        resumed: Which node it is already; None where one is to be made of it.
    """

    instance: Instance
    candidate: Candidate
    blueprint: Blueprint
    infra: Any
    token: str
    machine_image: MachineImage | None = None
    at: float = 0.0
    before: str = ""
    resumed: Resumed | None = None

    def mark(self, pool_id: str, node: int) -> str:
        """Return the name of a node of a pool on this machine, which no other node has."""
        return f"{pool_id}-{node}-{self.token[-6:]}" if self.resumed is None else self.resumed.mark

    def life(self, longest: float | None, now: float) -> float | None:
        """
        Return the life that the machine has left: one that lingered has had a part of it.

        Args:
            longest: The longest life of a machine, in seconds; None for no limit.
            now: The moment, by the loop's clock.
        """
        if longest is None or not self.before:
            return longest
        return max(1.0, longest - (now - self.at))

    @property
    def key(self) -> Key:
        """Return what names the instance in the pool's table."""
        return self.instance.provider, self.instance.id
