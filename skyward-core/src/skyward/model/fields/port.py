"""
TCP ports, and which of a node's are to be reached on the client.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

from skyward.errors import ConfigError
from skyward.model.fields.setting import whole

__all__ = ["PortLike", "PortsLike", "port", "ports", "ssh_port"]

PortLike: TypeAlias = int | str | tuple[int, int]
PortsLike: TypeAlias = PortLike | Iterable[PortLike]

_LAST = 65535


def port(value: object, parameter: str, *, least: int = 1) -> int:
    """
    Return the number of a TCP port, checked.

    Args:
        value: What was written.
        parameter: Name of the parameter it was given for.
        least: The smallest number that is taken; 0 where it means any that is free.

    Raises:
        ConfigError: If there is no such port.

    >>> port(65536, "port")
    Traceback (most recent call last):
    ...
    skyward.errors.ConfigError: port must be a number from 1 to 65535, not 65536.
    """
    number = whole(value, parameter, least=least)
    if number > _LAST:
        raise ConfigError(f"{parameter} must be a number from {least} to {_LAST}, not {value!r}.")
    return number


def ssh_port(value: int) -> int:
    """
    Return the port of an SSH server that a provider's `ssh_port` names, checked.

    Args:
        value: What was written.

    Raises:
        ConfigError: If there is no such port.

    >>> ssh_port(2222)
    2222
    """
    return port(value, "ssh_port")


def ports(value: PortsLike) -> tuple[tuple[int, int], ...]:
    """
    Return ports as pairs of the node's and the client's.

    Args:
        value: A port, or several, each as a number that is the same on both sides, as a pair `(remote, local)`, or as
            the text `"LOCAL:REMOTE"`, which ssh, docker and kubectl write so.

    Raises:
        ConfigError: If one is no port, or two have one port on the client.

    >>> ports([8888, (6006, 16006), "8080:80"])
    ((8888, 8888), (6006, 16006), (80, 8080))
    """
    given: Any = value
    if isinstance(given, (int, str)) or _is_pair(given):
        given = [given]
    elif not isinstance(given, Iterable) or isinstance(given, (bytes, dict)):
        raise ConfigError(f"ports must be a list of ports, not {given!r}.", hint="Write ports=[8888].")
    pairs = [_pair(each, f"ports[{index}]") for index, each in enumerate(given)]
    seen: set[int] = set()
    for _, local in pairs:
        if local in seen:
            raise ConfigError(
                f"ports has port {local} of this machine twice.", hint=f'Give one another, as in "18888:{local}".'
            )
        seen.add(local)
    return tuple(pairs)


def _is_pair(value: object) -> bool:
    """Return whether a value is a pair of numbers, and so one entry; a list of numbers is several."""
    return isinstance(value, tuple) and len(value) == 2 and all(isinstance(each, int) for each in value)


def _pair(value: object, parameter: str) -> tuple[int, int]:
    """Return one entry as the node's port and the client's."""
    match value:
        case str():
            return _written(value, parameter)
        case tuple() | list():
            if len(value) != 2:
                raise ConfigError(f"{parameter} must be a pair (remote, local), not {value!r}.")
            return port(value[0], f"{parameter}[0]"), port(value[1], f"{parameter}[1]")
    number = port(value, parameter)
    return number, number


def _written(text: str, parameter: str) -> tuple[int, int]:
    """Return a text as the node's port and the client's."""
    words = text.strip().split(":")
    # isdecimal alone takes the digits of every script.
    if len(words) > 2 or not all(word.isascii() and word.isdecimal() for word in words):
        raise ConfigError(f'{parameter} must be a port or "LOCAL:REMOTE", not {text!r}.', hint='Write "8888:80".')
    return port(int(words[-1]), parameter), port(int(words[0]), parameter)
