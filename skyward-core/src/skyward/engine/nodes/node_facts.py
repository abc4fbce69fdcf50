"""What a node says of itself, as values of ours, and what it is to know of itself, as JSON allows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from skyward.model.instances.instance import NetworkInfo

if TYPE_CHECKING:
    from skyward.model.instances.instance import InstanceInfo

# Linux allows 15 characters, other systems a few more.
_INTERFACE = 64


def network_of(sent: object) -> NetworkInfo:
    """
    Read what a node says of its network: a short name, and a number.

    Raises:
        TypeError: If it is no mapping.
    """
    if not isinstance(sent, Mapping):
        raise TypeError(f"network is no mapping, but {sent!r:.60}")
    interface, bandwidth = sent.get("interface"), sent.get("bandwidth_gbps")
    return NetworkInfo(
        interface=None if interface is None else str(interface)[:_INTERFACE],
        bandwidth_gbps=None if bandwidth is None else float(bandwidth),
    )


def facts_of(info: InstanceInfo, **more: object) -> dict[str, Any]:
    """Render what a worker knows about itself, as JSON allows."""
    facts: dict[str, Any] = json.loads(json.dumps(info.to_dict()))
    return facts | more
