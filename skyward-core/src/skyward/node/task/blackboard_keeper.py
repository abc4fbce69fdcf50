"""
The process that keeps a head's blackboards: what finds out whether a rank hangs must not hang with it.

It needs the standard library alone, so that it is there at once and depends on nothing that a task does.
It reads the broadcasts and the secret that their ranks prove to know from standard input, and ends with its worker.
"""

from __future__ import annotations

import json
import selectors
import socket
import sys
from contextlib import suppress
from typing import Any, NamedTuple

from skyward.node.task.challenge import introduced, nonce, question, reply

__all__ = ["BoardMembers", "main", "noted", "run"]

_PATIENCE = 10.0
"""Seconds in which a connection takes an answer."""

_LARGEST = 4 << 20
"""The most that a rank may write at once, in bytes; a connection that writes more is dropped."""

_READ = 64 << 10

_SILENT = 256
"""Connections that may be open without having authenticated."""

_OLD = 16
"""Boards that are kept for ranks that never came."""


class BoardMembers(NamedTuple):
    """
    The ranks of a broadcast, which may write on its board.

    Args:
        job: The pool's id.
        broadcast: The broadcast's number.
        ranks: How many there are.
        secret: The secret that authenticates them.
    """

    job: str
    broadcast: int
    ranks: int
    secret: str = ""


class _Board:
    """Hold the notes of a board, and count its connections."""

    def __init__(self, members: BoardMembers) -> None:
        self.members = members
        self.notes: dict[str, list[str]] = {}
        self.came: set[int] = set()
        self.connections = 0


class _BoardConnection:
    """Hold a connection's challenge, its bytes so far and its board; it has one once it is authenticated."""

    def __init__(self) -> None:
        self.asked = nonce()
        self.said = bytearray()
        self.board: _Board | None = None


def noted(notes: dict[str, list[str]], said: dict[str, Any], members: BoardMembers) -> dict[str, list[str]] | None:
    """
    Return the notes with what a rank writes; None if it is no rank of this broadcast.

    Args:
        notes: The notes so far.
        said: What it says, as `Blackboard.write` sends it.
        members: The ranks that may write on this board.

    >>> said = {"job": "a1", "broadcast": 7, "rank": 1, "once": None, "says": {"at": "3"}}
    >>> noted({}, said, BoardMembers("a1", 7, ranks=2))
    {'at': ['', '3']}
    """
    try:
        rank, once, says = said["rank"], said["once"], {**said["says"]}
        if (said["job"], said["broadcast"]) != members[:2] or not 0 <= rank < members.ranks:
            return None
    except (KeyError, TypeError):
        return None
    if once is not None and not any(notes.get(str(once), ())):
        says[str(once)] = str(rank)
    empty = [""] * members.ranks
    return notes | {
        subject: [str(text) if each == rank else other for each, other in enumerate(notes.get(subject, empty))]
        for subject, text in says.items()
    }


def main(listener: socket.socket, orders: int) -> None:
    """
    Keep boards until the worker is gone.

    Args:
        listener: Where ranks come to.
        orders: Descriptor on which the worker announces broadcasts, a line each.
    """
    boards: dict[int, _Board] = {}
    partial = bytearray()
    with selectors.DefaultSelector() as selector, listener:
        selector.register(orders, selectors.EVENT_READ)
        selector.register(listener, selectors.EVENT_READ)
        while True:
            # The worker first: it announces a broadcast before any rank connects.
            for key, _ in sorted(selector.select(), key=lambda ready: ready[0].fd != orders):
                if key.fd == orders:
                    if not _read_orders(orders, partial, boards):
                        return
                elif key.fileobj is listener:
                    _admit(listener, selector)
                elif selector.get_map().get(key.fd) is not key:
                    # It was evicted in this round, by a newcomer.
                    continue
                elif not _served(key.fileobj, key.data, boards):
                    _drop(key, selector)
                    _left(key.data, boards)


def _read_orders(orders: int, before: bytearray, boards: dict[int, _Board]) -> bool:
    """Make boards as the worker says; false once it is gone."""
    import os

    data = os.read(orders, _READ)
    before += data
    *lines, rest = bytes(before).split(b"\n")
    before[:] = rest
    for line in lines:
        members = BoardMembers(*json.loads(line))
        boards[members.broadcast] = _Board(members)
        for old in sorted(boards)[:-_OLD]:
            if not boards[old].connections:
                del boards[old]
    return bool(data)


def _admit(listener: socket.socket, selector: selectors.BaseSelector) -> None:
    """Accept a connection and challenge it; of those that send nothing, the first is closed when there are too many."""
    with suppress(OSError):
        sock, _ = listener.accept()
        sock.settimeout(_PATIENCE)
        connection = _BoardConnection()
        sock.sendall(question(connection.asked))
        silent = [key for key in selector.get_map().values() if key.data is not None and key.data.board is None]
        if len(silent) >= _SILENT:
            _drop(silent[0], selector)
        selector.register(sock, selectors.EVENT_READ, connection)


def _drop(key: selectors.SelectorKey, selector: selectors.BaseSelector) -> None:
    selector.unregister(key.fileobj)
    assert isinstance(key.fileobj, socket.socket)
    key.fileobj.close()


def _served(sock: Any, connection: _BoardConnection, boards: dict[int, _Board]) -> bool:
    """Take what a connection sends, and answer with the board; false if it ends, makes no sense or proves nothing."""
    line = _line(sock, connection.said)
    if line == b"":
        return True
    said = None if line is None else _read(line)
    if line is None or said is None:
        return False
    if connection.board is None:
        return _proved(sock, connection, line, boards.get(_number(said.get("broadcast"))))
    notes = noted(connection.board.notes, said, connection.board.members)
    if notes is None:
        return False
    connection.board.came.add(said["rank"])
    connection.board.notes = notes
    return _answered(sock, json.dumps(notes).encode() + b"\n")


def _proved(sock: Any, connection: _BoardConnection, line: bytes, board: _Board | None) -> bool:
    """Return whether a connection is of a broadcast, and prove to it that this is its head."""
    if board is None:
        return False
    its = introduced(board.members.secret, connection.asked, line)
    if its is None or (its.get("job"), its.get("broadcast")) != board.members[:2]:
        return False
    connection.board = board
    board.connections += 1
    return _answered(sock, reply(board.members.secret, its["nonce"], None))


def _answered(sock: Any, answer: bytes) -> bool:
    try:
        sock.sendall(answer)
    except OSError:
        return False
    return True


def _left(connection: _BoardConnection, boards: dict[int, _Board]) -> None:
    """Remove a board once all its connections are closed and no more are expected."""
    board = connection.board
    if board is not None:
        board.connections -= 1
        over = not board.connections and len(board.came) == board.members.ranks
        # A broadcast of the same number may have been announced before the last rank of this one was seen to leave.
        if over and boards.get(board.members.broadcast) is board:
            del boards[board.members.broadcast]


def _line(sock: Any, before: bytearray) -> bytes | None:
    """Read what a connection sends: nothing if there is more to come, None from one that ends or sends too much."""
    try:
        data = sock.recv(_READ)
    except OSError:
        return None
    before += data
    if not data or len(before) > _LARGEST:
        return None
    if not before.endswith(b"\n"):
        return b""
    line = bytes(before)
    before.clear()
    return line


def _read(line: bytes) -> dict[str, Any] | None:
    try:
        said = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return said if isinstance(said, dict) and said else None


def _number(value: object) -> int:
    return value if isinstance(value, int) else -1


def run(descriptor: int) -> None:
    """
    Keep boards at a socket that was handed over, as standard input says.

    Args:
        descriptor: The socket.
    """
    main(socket.socket(fileno=descriptor), sys.stdin.fileno())
