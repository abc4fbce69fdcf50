"""
What the ranks of a broadcast write for each other to read, as often as they like: the blackboard that their head keeps.
"""

from __future__ import annotations

import json
import selectors
import socket
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from skyward.errors import TransportError
from skyward.model.instance import InstanceInfo
from skyward.node.meeting import LIMIT, listening

__all__ = ["Blackboard", "Notes", "noted"]

Notes = dict[str, list[str]]
"""For each subject, what each rank has written of it; empty where that is nothing."""

_PATIENCE = 10.0
"""Seconds in which the head answers; it does so at once, unless its interpreter is held up."""

_LARGEST = 4 << 20
"""The most that a rank may write at once, in bytes; whoever writes more is none."""

_READ = 64 << 10


class Blackboard:
    """
    Let a rank write on the board of its broadcast, and read it.

    Args:
        info: The rank's place.
        share: Gives all ranks what each of them gives; called once, by every rank.

    Raises:
        TransportError: If the head is not reached.
    """

    def __init__(self, info: InstanceInfo, share: Callable[[str], Sequence[str]]) -> None:
        listener = listening(info.head_addr, 0) if info.is_head else None
        if listener is not None:
            threading.Thread(target=_keep, args=(listener, info), name="skyward-blackboard", daemon=True).start()
        port = int(share("0" if listener is None else str(listener.getsockname()[1]))[0])
        self._who = {"job": info.job_id, "broadcast": info.broadcast, "rank": info.global_worker_index}
        try:
            self._sock = socket.create_connection((info.head_addr, port), timeout=_PATIENCE)
        except OSError as error:
            raise TransportError(
                f"Rank {info.global_worker_index} of {info.total_workers} does not reach its head at "
                f"{info.head_addr}:{port}: {error}.",
                node=info.node,
                hint="Nodes have to reach each other at any port; look at their firewall.",
            ) from error
        self._answers = self._sock.makefile("rb")

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
        """Leave the board, which is there for the other ranks until they have left too."""
        self._answers.close()
        self._sock.close()


def noted(notes: Notes, said: dict[str, Any], who: InstanceInfo) -> Notes | None:
    """
    Return the notes with what a rank writes; None if it is no rank of this broadcast.

    Args:
        notes: The notes so far.
        said: What it says, as `Blackboard.write` sends it.
        who: The place of any rank of the broadcast.

    >>> who = InstanceInfo(total_nodes=2, job_id="a1", broadcast=7)
    >>> noted({}, {"job": "a1", "broadcast": 7, "rank": 1, "once": None, "says": {"at": "3"}}, who)
    {'at': ['', '3']}
    """
    try:
        rank, once, says = said["rank"], said["once"], {**said["says"]}
        if (said["job"], said["broadcast"]) != (who.job_id, who.broadcast) or not 0 <= rank < who.total_workers:
            return None
    except (KeyError, TypeError):
        return None
    if once is not None and not any(notes.get(str(once), ())):
        says[str(once)] = str(rank)
    empty = [""] * who.total_workers
    return notes | {
        subject: [str(text) if each == rank else other for each, other in enumerate(notes.get(subject, empty))]
        for subject, text in says.items()
    }


def _keep(listener: socket.socket, info: InstanceInfo) -> None:
    """Serve the board until all who came have left, and nobody is to come any more."""
    notes: Notes = {}
    came: set[int] = set()
    deadline = time.monotonic() + LIMIT
    with selectors.DefaultSelector() as heard, listener:
        heard.register(listener, selectors.EVENT_READ)
        while len(heard.get_map()) > 1 or (len(came) < info.total_workers and time.monotonic() < deadline):
            for key, _ in heard.select(1.0):
                if key.fileobj is listener:
                    with suppress(OSError):
                        visitor, _ = listener.accept()
                        visitor.settimeout(_PATIENCE)
                        heard.register(visitor, selectors.EVENT_READ, bytearray())
                    continue
                sock = key.fileobj
                assert isinstance(sock, socket.socket)
                said = _said(sock, key.data)
                if said == {}:
                    continue
                now = None if said is None else noted(notes, said, info)
                if said is not None and now is not None and _answered(sock, now):
                    came.add(said["rank"])
                    notes = now
                else:
                    heard.unregister(sock)
                    sock.close()


def _said(sock: socket.socket, before: bytearray) -> dict[str, Any] | None:
    """Read what a visitor says: nothing if there is more to come, None from one who leaves or talks nonsense."""
    try:
        data = sock.recv(_READ)
    except OSError:
        return None
    before += data
    if not data or len(before) > _LARGEST:
        return None
    if not before.endswith(b"\n"):
        return {}
    line = bytes(before)
    before.clear()
    try:
        said = json.loads(line)
    except ValueError:
        return None
    return said if isinstance(said, dict) and said else None


def _answered(sock: socket.socket, notes: Notes) -> bool:
    try:
        sock.sendall(json.dumps(notes).encode() + b"\n")
    except OSError:
        return False
    return True
