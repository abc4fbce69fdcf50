"""
The agent's program: start it, give it its client, end all that it started.

    python -m skyward.node.agent.agent_main CONNECTED_FD
    python -m skyward.node.agent.agent_main --wait CONNECTED_FD
    python -m skyward.node.agent.agent_main --listen DIRECTORY SESSION

The first serves the client at the other end of a socket, in the directory that the environment names; the second the
same, in the directory that the client sends once it has a node for it; the third the client that will come and knows
the session's name.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import sys
from collections.abc import Awaitable, Callable

from skyward import private
from skyward.node.agent.agent import Agent
from skyward.node.agent.descendants import DIRECTORY, MARK, adopt_orphans, end_children


async def serve(directory: str, begin: Callable[[Agent], Awaitable[None]]) -> None:
    """
    Serve a client until it leaves.

    Args:
        directory: The node's directory, this user's alone; made now if it is missing, and removed at the end.
        begin: Returns the agent its client.
    """
    loop = asyncio.get_running_loop()
    agent = Agent(loop, directory)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        loop.add_signal_handler(number, agent.interrupt)
    loop.add_signal_handler(signal.SIGCHLD, agent.reap)
    parent = os.path.dirname(directory)
    for path in (directory, os.path.join(directory, "files")):
        private.directory(path)
    try:
        await begin(agent)
        await agent.finished
        end_children()
    finally:
        if not agent.leaves_results:
            private.remove(directory)
        if os.path.basename(parent).startswith("skyward-"):
            # The pool's directory, if this was its last node: the client may not live to remove it.
            with contextlib.suppress(OSError):
                os.rmdir(parent)


def main() -> None:
    """Start an agent, as the command line says."""
    adopt_orphans()
    if sys.argv[1] == "--listen":
        directory, session = sys.argv[2:]
        read_variables(os.path.join(directory, "shell_vars"))
        asyncio.run(serve(directory, lambda agent: agent.listen(session)))
        return
    sock = socket.socket(fileno=int(sys.argv[-1]))
    if sys.argv[1] == "--wait":
        node = read_node(sock)
        if node is None:
            return
        os.environ[MARK], directory = node["mark"], node["directory"]
    else:
        directory = os.environ.pop(DIRECTORY)

    async def begin(agent: Agent) -> None:
        agent.serve(sock)

    asyncio.run(serve(directory, begin))


def read_node(sock: socket.socket) -> dict[str, str] | None:
    """Wait until the client sends which node this is, and return its mark and directory; None if there is no node."""
    size = int.from_bytes(sock.recv(4, socket.MSG_WAITALL), "little")
    said = sock.recv(size, socket.MSG_WAITALL)
    if not said or len(said) < size:
        return None
    node: dict[str, str] = json.loads(said)
    return node


def read_variables(path: str) -> None:
    """Take over the environment variables that a shell worked out when the node was made ready, if there are any."""
    with contextlib.suppress(FileNotFoundError), open(path, "rb") as file:
        for variable in file.read().split(b"\0"):
            name, found, value = variable.partition(b"=")
            if found:
                os.environb[name] = value


if __name__ == "__main__":
    main()
