"""Where the ranks of a broadcast tell each other something: the port of their head that is kept free for that."""

from __future__ import annotations

import json
import select
import socket
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from skyward.errors import TransportError
from skyward.node.runtime import instance_info

if TYPE_CHECKING:
    from skyward.model.instance import InstanceInfo

__all__ = ["LIMIT", "exchange", "listening"]

T = TypeVar("T")

LIMIT = 120.0
"""Seconds within which all ranks have to be there, unless one says otherwise."""

_FIRST, _LONGEST = 0.0002, 0.02
"""Seconds between two tries."""

_INTERRUPTIBLE = 0.2
"""The longest wait in one go, in seconds: a call that is cancelled notices in between."""

_BACKLOG = 1024
_LARGEST = 64 << 10
"""The most that a rank may say, in bytes; whoever says more is none."""


def exchange(value: str, *, within: float = LIMIT, info: InstanceInfo | None = None) -> tuple[str, ...]:
    """
    Give all ranks of a broadcast what each of them gives, in the order of ranks.

    Every rank has to call it, as often as the others.
    They meet at `head_port` of the head, so nothing else may listen there meanwhile; in a call that is no broadcast
    there is nobody to meet.

    Args:
        value: What this rank gives; some KiB at most.
        within: Seconds in which all ranks have to be there.
        info: The rank's place; left out, that of the call.

    Raises:
        TransportError: If they were not.

    >>> exchange("10.0.0.7:2222")
    ('10.0.0.7:2222',)
    """
    info = instance_info() if info is None else info
    if not info.broadcast or info.total_workers == 1:
        return (value,)
    deadline = time.monotonic() + within
    said = {"job": info.job_id, "broadcast": info.broadcast, "rank": info.global_worker_index, "value": value}
    values = _gathered(info, said, deadline) if info.is_head else _asked(info, said, deadline)
    if len(values) < info.total_workers:
        missing = [rank for rank in range(info.total_workers) if rank not in values] if info.is_head else "some of them"
        raise TransportError(
            f"Rank {info.global_worker_index} of {info.total_workers} waited {within:g} s for the others at "
            f"{info.head_addr}:{info.head_port}; not there: {missing}.",
            node=info.node,
            hint="Nodes have to reach each other at any port; look at their firewall.",
        )
    return tuple(values[rank] for rank in range(info.total_workers))


def _gathered(info: InstanceInfo, said: dict[str, Any], deadline: float) -> dict[int, str]:
    """Have every other rank say its value, and tell them all; fewer if not all came."""
    listener = _until(lambda: listening(info.head_addr, info.head_port), deadline)
    if listener is None:
        return {}
    heard: dict[socket.socket, bytes] = {}
    answered: dict[int, tuple[str, socket.socket | None]] = {0: (said["value"], None)}
    try:
        while len(answered) < info.total_workers and time.monotonic() < deadline:
            for sock in select.select([listener, *heard], [], [], _INTERRUPTIBLE)[0]:
                if sock is listener:
                    heard[_accepted(listener)] = b""
                elif (line := _more_of(sock, heard)) is not None:
                    rank, value = _understood(line, said, info.total_workers)
                    if rank:
                        answered[rank] = (value, sock)
        values = {rank: value for rank, (value, _) in answered.items()}
        if len(values) == info.total_workers:
            line = json.dumps([values[rank] for rank in range(len(values))]).encode() + b"\n"
            for _, visitor in answered.values():
                if visitor is not None:
                    _tell(visitor, line)
        return values
    finally:
        for sock in (listener, *heard):
            sock.close()


def _asked(info: InstanceInfo, said: dict[str, Any], deadline: float) -> dict[int, str]:
    """Say this rank's value to the head, and be told those of all; none if it was not there in time."""
    found = _until(lambda: _told(info, said, deadline), deadline)
    return dict(enumerate(found or ()))


def _told(info: InstanceInfo, said: dict[str, Any], deadline: float) -> list[str] | None:
    """Ask the head once; None if it is not there, or went away."""
    try:
        with socket.create_connection((info.head_addr, info.head_port), timeout=1.0) as sock:
            sock.sendall(json.dumps(said).encode() + b"\n")
            sock.settimeout(_INTERRUPTIBLE)
            answer = b""
            while not answer.endswith(b"\n") and time.monotonic() < deadline:
                try:
                    data = sock.recv(_LARGEST)
                except TimeoutError:
                    continue
                if not data:
                    return None
                answer += data
        values: object = json.loads(answer)
    except (OSError, ValueError):
        # Whoever listened there was not our head, or is not any more.
        return None
    return [*map(str, values)] if isinstance(values, list) and len(values) == info.total_workers else None


def listening(host: str, port: int) -> socket.socket | None:
    """
    Listen where the other ranks look, or everywhere if the machine does not see that address as its own.

    Args:
        host: The address.
        port: The port.

    Returns:
        The socket; None while the port is taken, as by a process that was head before and is on its way out.
    """
    for address in (host, ""):
        sock = socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind((address, port))
            sock.listen(_BACKLOG)
        except OSError:
            # The process that was head before may still be on its way out.
            sock.close()
            continue
        return sock
    return None


def _accepted(listener: socket.socket) -> socket.socket:
    sock, _ = listener.accept()
    sock.setblocking(False)
    return sock


def _more_of(sock: socket.socket, heard: dict[socket.socket, bytes]) -> bytes | None:
    """Read what a visitor says; give it once it is complete, and see off whoever left or talks too much."""
    try:
        data = sock.recv(_LARGEST)
    except BlockingIOError:
        return None
    except OSError:
        data = b""
    heard[sock] += data
    if not data or len(heard[sock]) > _LARGEST:
        del heard[sock]
        sock.close()
        return None
    return heard[sock] if heard[sock].endswith(b"\n") else None


def _understood(line: bytes, said: dict[str, Any], ranks: int) -> tuple[int, str]:
    """Give a visitor's rank and value; rank 0, which no visitor has, for whoever is not of this broadcast."""
    try:
        its = json.loads(line)
        if (its["job"], its["broadcast"]) == (said["job"], said["broadcast"]) and 0 < its["rank"] < ranks:
            return int(its["rank"]), str(its["value"])
    except (ValueError, TypeError, KeyError):
        pass
    return 0, ""


def _tell(sock: socket.socket, line: bytes) -> None:
    try:
        sock.settimeout(1.0)
        sock.sendall(line)
    except OSError:
        # It has gone, which its call tells of.
        return


def _until(look: Callable[[], T | None], deadline: float) -> T | None:
    """Look again and again until something is there; None if it is too late."""
    pause = _FIRST
    while (found := look()) is None and time.monotonic() < deadline:
        time.sleep(pause)
        pause = min(_LONGEST, pause * 1.5)
    return found
