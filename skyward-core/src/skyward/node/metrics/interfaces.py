"""
Which network interface a node's traffic goes through, and how fast it is, as Linux reports it.
"""

from __future__ import annotations

import socket
import struct
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

__all__ = ["chosen", "default_interface", "network"]

_SIOCGIFADDR = 0x8915
_MBPS_PER_GBPS = 1000


def network(addresses: Iterable[str | None], root: str = "/") -> dict[str, Any]:
    """
    Describe the network of this machine, with the fields of `NetworkInfo`; None stands for what is not known.

    Args:
        addresses: Those at which the machine is reached, the one that counts first.
        root: Where the kernel's files are.
    """
    if sys.platform != "linux":
        return {"interface": None, "bandwidth_gbps": None}
    base = Path(root)
    name = chosen(_interfaces(), addresses, default_interface(_text(base / "proc/net/route")))
    speed = _text(base / f"sys/class/net/{name}/speed").strip() if name else ""
    # Virtual interfaces say -1, and some nothing.
    gbps = int(speed) / _MBPS_PER_GBPS if speed.isdecimal() and int(speed) else None
    return {"interface": name, "bandwidth_gbps": gbps}


def chosen(interfaces: Mapping[str, str], addresses: Iterable[str | None], default: str | None) -> str | None:
    """
    Choose the interface that has one of the addresses, else the one that leads out.

    Args:
        interfaces: IPv4 address of each interface.
        addresses: Those that are looked for, the one that counts first.
        default: The interface of the default route.

    >>> chosen({"lo": "127.0.0.1", "eth0": "10.0.0.5"}, ["10.0.0.5", "203.0.113.7"], None)
    'eth0'
    >>> chosen({"lo": "127.0.0.1", "eth0": "10.0.0.5"}, ["203.0.113.7"], "eth0")
    'eth0'
    """
    of_address = {address: name for name, address in reversed(tuple(interfaces.items()))}
    return next((of_address[address] for address in addresses if address in of_address), default)


def default_interface(routes: str) -> str | None:
    """
    Read `/proc/net/route`: the interface of the default route, of several the one that is preferred.

    Args:
        routes: The text.

    >>> default_interface("Iface Destination Gateway Flags RefCnt Use Metric Mask\\nens5 00000000 0 3 0 0 100 0")
    'ens5'
    """
    found: list[tuple[int, str]] = []
    for line in routes.splitlines()[1:]:
        words = line.split()
        if len(words) >= 8 and words[1] == "00000000" and words[7].strip("0") == "" and words[6].isdecimal():
            found.append((int(words[6]), words[0]))
    return min(found)[1] if found else None


def _interfaces() -> dict[str, str]:
    import fcntl

    found = {}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        for _, name in socket.if_nameindex():
            try:
                answer = fcntl.ioctl(sock.fileno(), _SIOCGIFADDR, struct.pack("256s", name.encode()[:15]))
            except OSError:
                # It has no IPv4 address.
                continue
            found[name] = socket.inet_ntoa(answer[20:24])
    return found


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeError):
        return ""
