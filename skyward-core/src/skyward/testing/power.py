"""The switch of a rehearsal's machine: what runs on it is really killed, and nothing starts on it again."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

from skyward import private
from skyward.node.agent.descendants import DIRECTORY, MARK, end_group, end_marked

__all__ = ["fail_bootstrap", "remove", "switch_off"]

_ROUNDS = 3


def switch_off(host: str) -> None:
    """
    Kill all that runs on a machine, and let nothing start there.

    Args:
        host: The machine's directory.
    """
    # An agent cannot make its directory where a file is.
    private.remove(host)
    private.directory(Path(host).parent)
    Path(host).touch()
    for _ in range(_ROUNDS):
        found = list(_agents(host))
        for pid, marks in found:
            end_group(pid)
            for mark in marks:
                end_marked(mark)
        if not found:
            break
    if Path(host).is_dir():
        private.remove(host)
        Path(host).touch()


def remove(host: str) -> None:
    """
    Take a machine away.

    Args:
        host: The machine's directory.
    """
    switch_off(host)
    Path(host).unlink(missing_ok=True)


def fail_bootstrap(host: str) -> None:
    """
    Make a node that starts on a machine end before it is ready, however busy this machine is.

    Args:
        host: The machine's directory.
    """
    private.directory(host)
    # An agent cannot make the directory of its files where a file is.
    Path(host, "files").touch()


def _agents(host: str) -> Iterator[tuple[int, list[str]]]:
    """Find the agents that were started on a machine, each with the mark that its descendants carry."""
    entry = f"{DIRECTORY}={host}"
    if not Path("/proc/self/environ").exists():
        command = ["ps", "-axEww", "-o", "pid=,command="]
        listing = subprocess.run(command, capture_output=True, text=True, check=False).stdout
        for line in listing.splitlines():
            number, _, variables = line.strip().partition(" ")
            if f" {entry} " in f"{variables} ":
                yield int(number), []
        return
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            pid = int(path.parent.name)
            if pid != os.getpid() and entry.encode() in path.read_bytes().split(b"\0"):
                yield pid, _marks(path)
        except OSError:
            continue


def _marks(environ: Path) -> list[str]:
    prefix = f"{MARK}=".encode()
    variables = environ.read_bytes().split(b"\0")
    return [os.fsdecode(each.removeprefix(prefix)) for each in variables if each.startswith(prefix)]
