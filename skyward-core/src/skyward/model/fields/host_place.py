"""
Where a host is, as people write it: `user@host:port`.
"""

from __future__ import annotations

from typing import NamedTuple

from skyward.errors import ConfigError
from skyward.model.fields.port import port

__all__ = ["HostPlace", "place", "places"]


class HostPlace(NamedTuple):
    """The login user, the host and the port; None is what `~/.ssh/config` says."""

    user: str | None
    host: str
    port: int | None


def place(text: str, parameter: str) -> HostPlace:
    """
    Split a host from its user and its port.

    Args:
        text: What was written; an IPv6 address with a port is in brackets.
        parameter: Name of the parameter it was given for.

    Raises:
        ConfigError: If there is no host in it, or the port is none.

    >>> place("ubuntu@10.0.0.5:2222", "hosts")
    HostPlace(user='ubuntu', host='10.0.0.5', port=2222)
    >>> place("[::1]:2222", "hosts")[1:], place("::1", "hosts")[1:], place("gpu-box", "hosts")[1:]
    (('::1', 2222), ('::1', None), ('gpu-box', None))
    """
    user, _, rest = text.strip().removeprefix("ssh://").rpartition("@")
    host, colon, written = rest.rpartition(":")
    number = None
    if rest.startswith("[") and rest.endswith("]"):
        host = rest[1:-1]
    elif not colon or (":" in host and not host.endswith("]")):
        host = rest
    elif not (written.isascii() and written.isdecimal()):
        raise ConfigError(f"{parameter} has {rest!r}, whose port {written!r} is no number.")
    else:
        host, number = host.strip("[]"), port(int(written), f"the port of {rest!r}")
    if not host or any(character.isspace() or character == "," for character in user + host):
        raise ConfigError(f"{parameter} has {text!r}, which names no host.", hint="Write user@host:port.")
    return HostPlace(user or None, host, number)


def places(text: str, parameter: str) -> tuple[HostPlace, ...]:
    """
    Split a chain of hosts, the first to be entered first; `"none"` is no host at all.

    Args:
        text: The hosts, with commas between them.
        parameter: Name of the parameter it was given for.

    Raises:
        ConfigError: If one of them is no host.

    >>> [each.host for each in places("me@gate,inner:2222", "jump")], places("none", "jump")
    (['gate', 'inner'], ())
    """
    if text.strip().lower() == "none":
        return ()
    return tuple(place(each, parameter) for each in text.split(","))
