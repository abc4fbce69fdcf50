"""
What happens to nodes that are ready: silence, illness, and the loss of their instances.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from attrs import frozen

from skyward.model.events.event_base import SkywardEvent

__all__ = ["InstancePreempted", "LossCause", "NodeRecovered", "NodeSuspected", "NodeUnhealthy"]

LossCause: TypeAlias = Literal["silence", "agent", "instance", "notice"]
"""How it is known that a node was lost, or will be."""


@frozen(kw_only=True)
class NodeSuspected(SkywardEvent):
    """
    Report that `node` has sent nothing for `silent` seconds: it gets no new calls until it is heard, or is lost.

    Args:
        reason: What is known of why.
    """

    node: int
    silent: float
    reason: str = ""


@frozen(kw_only=True)
class NodeRecovered(SkywardEvent):
    """Report that `node` is heard again after `silent` seconds, and is used as before."""

    node: int
    silent: float


@frozen(kw_only=True)
class InstancePreempted(SkywardEvent):
    """
    Report that the instance of `node` was lost, or that the provider will reclaim it at `ends_at` (seconds since 1970).

    Where that is not `certain`, the provider only recommends to leave; nothing is done about it.

    Args:
        cause: How that is known: by the node's silence, the end of its agent, the provider, or a notice before the end.
    """

    reason: str
    node: int
    instance_id: str = ""
    certain: bool = True
    ends_at: float | None = None
    cause: LossCause | None = None


@frozen(kw_only=True)
class NodeUnhealthy(SkywardEvent):
    """
    Report that `node` failed a check of its health.

    Args:
        check: Which one: `"user"` is that of `health_checker=`; others are built in.
        reason: What is wrong, in words.
        replaced: Whether the node is drained and replaced for it; if not, it goes on.
    """

    check: str
    reason: str
    node: int
    instance_id: str = ""
    replaced: bool = False
