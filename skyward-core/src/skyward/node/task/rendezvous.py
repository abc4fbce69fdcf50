"""The rendezvous of a broadcast's ranks, which exchange values at the port of their head that is kept free for that."""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from skyward.errors import TransportError
from skyward.node.task.challenge import answer_of, introduced, introduction, nonce, question, reply
from skyward.node.task.runtime import instance_info, rendezvous_secret

if TYPE_CHECKING:
    from skyward.model.instances.instance import InstanceInfo

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
"""The most that a rank may send, in bytes; a connection that sends more is dropped."""

_LARGEST_ANSWER = 64 << 20
"""The most that a head may answer, in bytes: the values of many ranks."""

_SILENT = 256
"""Connections that may be open without having authenticated."""

_PATIENCE = 5.0
"""Seconds that the head waits for a connection to authenticate."""


def exchange(
    value: str, *, within: float = LIMIT, info: InstanceInfo | None = None, secret: str | None = None
) -> tuple[str, ...]:
    """
    Return all ranks of a broadcast what each of them gives, in the order of ranks.

    Every rank has to call it, as often as the others.
    They meet at `head_port` of the head, so nothing else may listen there meanwhile; in a call that is no broadcast
    there is no other rank to meet.
    Ranks and head prove to each other that they are of the pool: what else connects, or listens there, is refused.

    Args:
        value: What this rank gives; some KiB at most.
        within: Seconds in which all ranks have to be there.
        info: The rank's place; left out, that of the call.
        secret: What the ranks know each other by; left out, what the client gave the call.

    Raises:
        TransportError: If they were not.
        UsageError: If the pool has several nodes and was opened with `cluster=False`.

    >>> exchange("10.0.0.7:2222")
    ('10.0.0.7:2222',)
    """
    info = instance_info() if info is None else info
    if not info.broadcast or info.total_workers == 1:
        return (value,)
    deadline = time.monotonic() + within
    secret = rendezvous_secret() if secret is None else secret
    said = {"job": info.job_id, "broadcast": info.broadcast, "rank": info.global_worker_index, "value": value}
    refused: list[str] = []
    if info.is_head:
        values = _gathered(info, said, secret, deadline, refused)
    else:
        found = _until(lambda: _exchanged(info, said, secret, deadline, refused), deadline)
        values = dict(enumerate(found or ()))
    if len(values) < info.total_workers:
        missing = [rank for rank in range(info.total_workers) if rank not in values] if info.is_head else "some of them"
        raise TransportError(
            f"Rank {info.global_worker_index} of {info.total_workers} waited {within:g} s for the others at "
            f"{info.head_addr}:{info.head_port}; not there: {missing}.{_of(refused)}",
            node=info.node,
            hint="Nodes have to reach each other at any port; look at their firewall.",
        )
    return tuple(values[rank] for rank in range(info.total_workers))


def _of(refused: list[str]) -> str:
    return f" Something that is not of this pool listens there: {refused[-1]}." if refused else ""


def _gathered(
    info: InstanceInfo, said: dict[str, Any], secret: str, deadline: float, refused: list[str]
) -> dict[int, str]:
    """Collect the value of every other rank, and send all of them to each; fewer if not all came."""
    listener = _until(lambda: listening(info.head_addr, info.head_port), deadline)
    if listener is None:
        refused.append("the head itself cannot")
        return {}
    unproved: dict[socket.socket, _RendezvousConnection] = {}
    values: dict[int, str] = {0: said["value"]}
    waiting: dict[int, tuple[socket.socket, str]] = {}
    try:
        while len(values) < info.total_workers and time.monotonic() < deadline:
            for sock in _readable([listener, *unproved]):
                if sock is listener:
                    _accept(listener, unproved)
                elif (line := _more_of(sock, unproved)) is not None:
                    its = _understood(introduced(secret, unproved.pop(sock).asked, line), said, info.total_workers)
                    if its is None:
                        sock.close()
                        continue
                    values[its["rank"]] = str(its["value"])
                    if (before := waiting.get(its["rank"])) is not None:
                        before[0].close()
                    waiting[its["rank"]] = sock, its["nonce"]
        if len(values) == info.total_workers:
            answer = [values[rank] for rank in range(len(values))]
            for sock, asked in waiting.values():
                _send(sock, reply(secret, asked, answer))
        return values
    finally:
        for sock in (listener, *unproved, *(sock for sock, _ in waiting.values())):
            sock.close()


def _readable(socks: list[socket.socket]) -> list[socket.socket]:
    """Wait until sockets can be read; by `poll`, because `select` refuses descriptors over 1023."""
    poll = select.poll()
    for sock in socks:
        poll.register(sock, select.POLLIN)
    ready = {fd for fd, _ in poll.poll(_INTERRUPTIBLE * 1000)}
    return [sock for sock in socks if sock.fileno() in ready]


def _exchanged(
    info: InstanceInfo, said: dict[str, Any], secret: str, deadline: float, refused: list[str]
) -> list[str] | None:
    """Send this rank's value to the head and return those of all ranks; None if the head is not there, or went away."""
    try:
        with socket.create_connection((info.head_addr, info.head_port), timeout=1.0) as sock:
            sock.settimeout(_INTERRUPTIBLE)
            # The head asks at once, also while it waits for others.
            asked = _line(sock, min(deadline, time.monotonic() + _PATIENCE))
            introduced, back = introduction(secret, asked, said)
            sock.sendall(introduced)
            values = answer_of(secret, back, _line(sock, deadline))
    except OSError:
        return None
    except ValueError as error:
        # What listened there was not our head, or is not any more.
        refused.append(str(error))
        return None
    return [*map(str, values)] if isinstance(values, list) and len(values) == info.total_workers else None


def _line(sock: socket.socket, deadline: float) -> bytes:
    """
    Read a line.

    Raises:
        ConnectionError: If it does not come.
        ValueError: If it is longer than any of ours.
    """
    line = b""
    while not line.endswith(b"\n"):
        if time.monotonic() > deadline:
            raise ConnectionError
        try:
            data = sock.recv(_LARGEST)
        except TimeoutError:
            continue
        if not data:
            raise ConnectionError
        line += data
        if len(line) > _LARGEST_ANSWER:
            raise ValueError("it says too much")
    return line


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


class _RendezvousConnection:
    """The challenge sent to a connection, and its bytes so far."""

    __slots__ = ("asked", "said")

    def __init__(self) -> None:
        self.asked = nonce()
        self.said = b""


def _accept(listener: socket.socket, unproved: dict[socket.socket, _RendezvousConnection]) -> None:
    try:
        sock, _ = listener.accept()
        peer = _RendezvousConnection()
        sock.setblocking(False)
        sock.send(question(peer.asked))
    except OSError:
        # It has gone again.
        return
    if len(unproved) >= _SILENT:
        # The ranks speak at once, so the first of them is none.
        first = next(iter(unproved))
        del unproved[first]
        first.close()
    unproved[sock] = peer


def _more_of(sock: socket.socket, unproved: dict[socket.socket, _RendezvousConnection]) -> bytes | None:
    """Read what a connection sends; return it once it is complete, and close one that ends or sends too much."""
    peer = unproved.get(sock)
    if peer is None:
        # It was evicted in this round, by a newcomer.
        return None
    try:
        data = sock.recv(_LARGEST)
    except BlockingIOError:
        return None
    except OSError:
        data = b""
    peer.said += data
    if not data or len(peer.said) > _LARGEST:
        del unproved[sock]
        sock.close()
        return None
    return peer.said if peer.said.endswith(b"\n") else None


def _understood(its: dict[str, Any] | None, said: dict[str, Any], ranks: int) -> dict[str, Any] | None:
    """Return what a connection sends; None of one that is not of this broadcast."""
    if its is None or (its.get("job"), its.get("broadcast")) != (said["job"], said["broadcast"]):
        return None
    return its if isinstance(its.get("rank"), int) and 0 < its["rank"] < ranks else None


def _send(sock: socket.socket, line: bytes) -> None:
    try:
        sock.settimeout(1.0)
        sock.sendall(line)
    except OSError:
        # It has gone, which its call reports.
        return


def _until(look: Callable[[], T | None], deadline: float) -> T | None:
    """Look again and again until something is there; None if it is too late."""
    pause = _FIRST
    while (found := look()) is None and time.monotonic() < deadline:
        time.sleep(pause)
        pause = min(_LONGEST, pause * 1.5)
    return found
