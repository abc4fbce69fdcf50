"""
Which network interface leads to the other nodes.
"""

from __future__ import annotations

import os

from skyward import InstanceInfo

__all__ = ["name_interface"]


def name_interface(info: InstanceInfo) -> None:
    """
    Set the interface of the backends to the one with the address that the other nodes know, unless the user does.

    Args:
        info: The rank's place.
    """
    if info.network_interface:
        for name in ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"):
            os.environ.setdefault(name, info.network_interface)
