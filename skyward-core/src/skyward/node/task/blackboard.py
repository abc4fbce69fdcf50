"""
What the ranks of a broadcast write for each other to read, as often as they like: the blackboard at their head.
"""

from __future__ import annotations

import atexit
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from skyward.errors import TransportError
from skyward.model.instances.instance import InstanceInfo
from skyward.node.task.blackboard_keeper import BoardMembers
from skyward.node.task.challenge import answer_of, introduction
from skyward.node.task.rendezvous import listening
from skyward.node.task.runtime import rendezvous_secret

__all__ = ["Blackboard", "Notes"]

Notes = dict[str, list[str]]
"""For each subject, what each rank has written of it; empty where that is nothing."""

_PATIENCE = 10.0
"""Seconds in which the board answers; it does so at once, unless its machine is held up."""

_LARGEST = 4 << 20
"""The most that a board may say at once, in bytes."""


class Blackboard:
    """
    Let a rank write on the board of its broadcast, and read it.

    Args:
        info: The rank's place.
        share: Returns all ranks what each of them gives; called once, by every rank.

    Raises:
        TransportError: If the head is not reached.
    """

    def __init__(self, info: InstanceInfo, share: Callable[[str], Sequence[str]]) -> None:
        secret = rendezvous_secret()
        port = int(share(str(_KEEPER.port(info, secret)) if info.is_head else "0")[0])
        self._who = {"job": info.job_id, "broadcast": info.broadcast, "rank": info.global_worker_index}
        try:
            self._sock = socket.create_connection((info.head_addr, port), timeout=_PATIENCE)
            self._answers = self._sock.makefile("rb")
            try:
                introduced, asked = introduction(secret, self._answers.readline(_LARGEST), self._who)
                self._sock.sendall(introduced)
                answer_of(secret, asked, self._answers.readline(_LARGEST))
            except BaseException:
                self.close()
                raise
        except (OSError, ValueError) as error:
            raise TransportError(
                f"Rank {info.global_worker_index} of {info.total_workers} does not reach its head at "
                f"{info.head_addr}:{port}: {error}.",
                node=info.node,
                hint="Nodes have to reach each other at any port; look at their firewall.",
            ) from error

    def write(self, *, once: str | None = None, **says: str) -> Notes:
        """
        Write something, and read all that is there.

        Args:
            once: What is written only if no other rank has written of the same; all ranks see the same one there.
            says: What this rank writes of each subject, in place of what it wrote before.

        Raises:
            OSError: If the head is gone.
        """
        self._sock.sendall(json.dumps({**self._who, "once": once, "says": says}).encode() + b"\n")
        line = self._answers.readline()
        if not line:
            raise ConnectionResetError("The head of the broadcast is gone.")
        notes: Notes = json.loads(line)
        return notes

    def close(self) -> None:
        """Close this rank's connection; the board exists until the other ranks have left, too."""
        self._answers.close()
        self._sock.close()


_KEEP = """\
import sys
sys.path.append(sys.argv[2])
from skyward.node.task.blackboard_keeper import run
run(int(sys.argv[1]))
"""


class _Keeper:
    """Have the process that keeps the boards of this worker's broadcasts; the same one for all of them."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._port = 0
        self._owner = 0
        self._lock = threading.Lock()

    def port(self, info: InstanceInfo, secret: str) -> int:
        """Make a board for a broadcast whose ranks know a secret, and return its address."""
        members = BoardMembers(info.job_id, info.broadcast, info.total_workers, secret)
        with self._lock:
            # A process that the worker forked has none.
            if self._process is None or self._process.poll() is not None or self._owner != os.getpid():
                self._start(info.head_addr)
            assert self._process is not None
            assert self._process.stdin is not None
            self._process.stdin.write(json.dumps(members).encode() + b"\n")
        return self._port

    def _start(self, address: str) -> None:
        listener = listening(address, 0)
        if listener is None:
            raise TransportError(f"No port of {address} is free for the ranks of a broadcast.")
        with listener:
            # Not even a site's own start-up runs: nothing that a task has put there is to hold it up.
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _KEEP, str(listener.fileno()), str(Path(__file__).parents[3])],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                pass_fds=[listener.fileno()],
                bufsize=0,
            )
            self._port, self._owner = listener.getsockname()[1], os.getpid()
        atexit.register(self._end, self._process)

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        """Close a process's standard input, at whose end it exits."""
        if self._owner == os.getpid():
            assert process.stdin is not None
            process.stdin.close()
            process.wait(_PATIENCE)


_KEEPER = _Keeper()
