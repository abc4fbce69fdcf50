"""Which machines of this user linger and how they are reached, on the disk: a file for each pool that was left."""

from __future__ import annotations

from typing import Any

import attrs
from attrs import frozen

from skyward.engine.instances.record_folder import RecordFolder
from skyward.model.instances.machine import Instance
from skyward.plan.instances.lingering import Lingering
from skyward.plan.offers.choice import Candidate

__all__ = ["LeftMachine", "LeftPool", "forget", "lingering", "read", "take", "write"]


@frozen(kw_only=True)
class LeftMachine:
    """
    Hold one machine that lingers.

    Args:
        instance: The machine; its address says which host key it has.
        candidate: The offer, and its market.
        mark: The name of its last node, which is that of the node's directory.
        token: Names the request that rented it.
        rented_at: When that was, in seconds since 1970.
        made: Digest of what was made of it: its image, and what plugins added.
    """

    instance: Instance
    candidate: Candidate
    mark: str
    token: str
    rented_at: float
    made: str


@frozen(kw_only=True)
class LeftPool:
    """
    Hold what it takes to go on with the machines of a pool that was left.

    Args:
        private_key: What logs in at them, as a text.
        machines: The machines.
        shared: What the machines of each region share, as its provider made it.
    """

    private_key: str = attrs.field(repr=False)
    machines: tuple[LeftMachine, ...]
    shared: tuple[tuple[str | None, Any], ...]


LINGERING: RecordFolder[Lingering, LeftPool] = RecordFolder("lingering", Lingering, LeftPool)
"""The pools whose machines linger, or should have ended."""

write, lingering, read, take, forget = (
    LINGERING.write,
    LINGERING.heads,
    LINGERING.read,
    LINGERING.take,
    LINGERING.forget,
)
