"""
Agents of nodes on this machine that start while the client still loads what opens a pool.

An agent needs as long to start as the client to know which node it is for, so that one does not wait for the other.
This module loads next to nothing, because it comes first.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from typing import IO, Any, Final, NamedTuple

__all__ = ["StartedAgent", "WaitingAgents", "start_agent", "waiting_agents"]

_PROGRAM = "skyward.node.agent.agent_main"


class StartedAgent(NamedTuple):
    """The process of an agent, our end of its socket, and the file that it writes its last words to."""

    process: subprocess.Popen[bytes]
    connection: socket.socket
    log: IO[bytes]


class _HeldAgent(NamedTuple):
    agent: StartedAgent
    env: dict[str, str]


class WaitingAgents:
    """Hold the agents of this process that have no node yet; for any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: list[_HeldAgent] = []

    @contextlib.contextmanager
    def started(self, number: int, env: Mapping[str, str]) -> Iterator[None]:
        """
        Start agents for the time of a `with` block; those that no node has taken are ended.

        Args:
            number: How many, of which no more are started than this machine has processors.
            env: Their whole environment.
        """
        mine: list[_HeldAgent] = []
        # What is wrong is reported where a node needs its agent, and starts it then.
        with contextlib.suppress(OSError):
            for _ in range(min(number, os.cpu_count() or 1)):
                one = _HeldAgent(start_agent(env, waits=True), dict(env))
                mine.append(one)
                with self._lock:
                    self._waiting.append(one)
        try:
            yield
        finally:
            with self._lock:
                left = [one for one in mine if one in self._waiting]
                self._waiting = [one for one in self._waiting if one not in left]
            for one in left:
                _end(one.agent)

    def take(self, env: Mapping[str, str], directory: str, mark: str) -> StartedAgent | None:
        """
        Take an agent for a node, and send it what the node is; None if none waits that has this environment.

        Args:
            env: The environment that it must have.
            directory: The node's own.
            mark: What the processes of the node carry in their environment.
        """
        with self._lock:
            found = next((one for one in self._waiting if one.env == env), None)
            if found is None:
                return None
            self._waiting.remove(found)
        said = json.dumps({"directory": directory, "mark": mark}).encode()
        try:
            found.agent.connection.sendall(len(said).to_bytes(4, "little") + said)
        except OSError:
            # It has ended; the one that is started in its place says why it cannot.
            _end(found.agent)
            return None
        return found.agent

    def forget(self) -> None:
        """Close a forked child's copies of what its parent has, so that agents see when the parent is gone."""
        self._lock = threading.Lock()
        for one in self._waiting:
            one.agent.connection.close()
        self._waiting = []


def start_agent(env: Mapping[str, str], *, waits: bool = False) -> StartedAgent:
    """
    Start an agent on this machine.

    Client and agent are born with the two ends of one Unix socket, which has no name and no other peer.

    Args:
        env: Its whole environment, which names its directory unless it waits.
        waits: Whether it is sent later which node it is for.

    Raises:
        OSError: If it cannot be started.
    """
    ours, theirs = socket.socketpair()
    # Without a name, so that it need not be removed.
    log: Any = tempfile.TemporaryFile()  # noqa: SIM115  # closed by what ends the agent
    try:
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", _PROGRAM, *(["--wait"] if waits else []), str(theirs.fileno())],
            env=dict(env),
            cwd=os.sep,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=[theirs.fileno()],
            start_new_session=True,
        )
    except BaseException:
        ours.close()
        log.close()
        raise
    finally:
        theirs.close()
    return StartedAgent(process, ours, log)


def _end(agent: StartedAgent) -> None:
    """End an agent that has no node, and so no children."""
    agent.connection.close()
    agent.process.kill()
    agent.process.wait()
    agent.log.close()


waiting_agents: Final = WaitingAgents()
"""Those of this process."""

os.register_at_fork(after_in_child=waiting_agents.forget)
