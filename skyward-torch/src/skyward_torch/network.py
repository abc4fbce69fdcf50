"""
Which network interface leads to the other nodes.
"""

from __future__ import annotations

import os
import socket
import struct
import sys

from skyward import InstanceInfo

__all__ = ["interface_of", "name_interface"]

_SIOCGIFADDR = 0x8915


def name_interface(info: InstanceInfo) -> None:
    """
    Tell the backends which interface has the address that the other nodes know, unless the user does.

    Args:
        info: The rank's place.
    """
    found = (info.network.interface if info.network else None) or interface_of(info.private_ip or "127.0.0.1")
    if found:
        for name in ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"):
            os.environ.setdefault(name, found)


def interface_of(address: str) -> str | None:
    """
    Find the interface that has an IPv4 address; None where none has, or the system does not tell.

    Args:
        address: The address.

    >>> interface_of("203.0.113.77") is None
    True
    """
    if sys.platform != "linux":
        return None
    import fcntl

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        for _, name in socket.if_nameindex():
            try:
                answer = fcntl.ioctl(sock.fileno(), _SIOCGIFADDR, struct.pack("256s", name.encode()[:15]))
            except OSError:
                # It has no IPv4 address.
                continue
            if socket.inet_ntoa(answer[20:24]) == address:
                return name
    return None
