"""
What a pool leaves behind on purpose.
"""

from __future__ import annotations

from attrs import frozen

from skyward.model.events.event_base import SkywardEvent

__all__ = ["InstanceLingers"]


@frozen(kw_only=True)
class InstanceLingers(SkywardEvent):
    """
    Report that an instance waits for the next pool, after its own was left.

    Args:
        seconds: How long it waits until it ends by itself.
        cost: What that costs at most, in USD.
    """

    instance_id: str
    node: int
    seconds: float
    cost: float = 0.0
