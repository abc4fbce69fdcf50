"""What ranks of a broadcast write for each other, over real sockets."""

from __future__ import annotations

import json
import signal
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from typing import Any

import pytest
from attrs import evolve

from skyward import InstanceInfo, TransportError
from skyward.node.task.blackboard import _KEEPER, Blackboard
from skyward.node.task.blackboard_keeper import _SILENT, BoardMembers, _Board, _BoardConnection, _left, noted
from skyward.node.task.challenge import introduction, question, reply

HEAD = InstanceInfo(total_nodes=3, job_id="a1", broadcast=7)
NAMES = {"job": "a1", "broadcast": 7, "rank": 2, "once": None, "says": {"at": "x"}}


@pytest.fixture
def boards() -> Iterator[list[Blackboard]]:
    """What each of three ranks has of one blackboard."""
    told: list[str] = []
    ready = threading.Event()

    def share(value: str) -> tuple[str]:
        if value != "0":
            told.append(value)
            ready.set()
        assert ready.wait(30.0)
        return (told[0],)

    with ThreadPoolExecutor(3) as threads, ExitStack() as stack:
        met = [threads.submit(Blackboard, evolve(HEAD, node=node), share) for node in range(3)]
        yield [stack.enter_context(closing(each.result())) for each in met]


def test_what_one_writes_all_read(boards: list[Blackboard]) -> None:
    """In the order of ranks, in place of what the same rank wrote before."""
    assert {"at": ["", "1", ""]} == boards[1].write(at="1")
    assert {"at": ["0", "1", ""]} == boards[0].write(at="0")
    assert {"at": ["0", "2", ""], "stacks": ["", "here", ""]} == boards[1].write(at="2", stacks="here")
    assert {"at": ["0", "2", ""], "stacks": ["", "here", ""]} == boards[2].write()


def test_what_is_to_be_written_once_is_the_first_ones(boards: list[Blackboard]) -> None:
    """However many want to at the same time, all see the same one."""
    with ThreadPoolExecutor(3) as threads:
        seen = [each["judge"] for each in threads.map(lambda board: board.write(once="judge"), boards)]
    assert seen[0] == seen[1] == seen[2]
    assert 2 == seen[0].count("")


def test_the_board_outlives_the_heads_part(boards: list[Blackboard]) -> None:
    """The others go on, and see what it wrote last."""
    boards[0].write(at="returned")
    boards[0].close()
    assert {"at": ["returned", "1", ""]} == boards[1].write(at="1")
    assert {"at": ["returned", "1", "2"]} == boards[2].write(at="2")


def test_one_process_keeps_the_boards_of_all_broadcasts(boards: list[Blackboard]) -> None:
    """Each with notes of its own; it ends with the process that started it."""
    alone = evolve(HEAD, total_nodes=1, broadcast=8)
    with closing(Blackboard(alone, lambda value: (value,))) as other:
        assert {"at": ["other"]} == other.write(at="other")
        assert other._sock.getpeername() == boards[0]._sock.getpeername()
    assert {"at": ["0", "", ""]} == boards[0].write(at="0")


def test_ranks_that_leave_late_take_no_other_board_along() -> None:
    """A broadcast of the same number has been announced when the last of them is seen to leave."""
    members = BoardMembers("a1", 7, ranks=1)
    before, now = _Board(members), _Board(members)
    before.came.add(0)
    before.connections = 1
    connection = _BoardConnection()
    connection.board = before
    boards = {7: now}
    _left(connection, boards)
    assert {7: now} == boards
    connection.board, now.connections = now, 1
    now.came.add(0)
    _left(connection, boards)
    assert {} == boards


def test_who_is_not_of_the_broadcast_is_seen_off(boards: list[Blackboard]) -> None:
    """And the ranks notice nothing."""
    boards[0].write(at="0")
    other = introduction("another secret", question("a"), NAMES)[0]
    for said in (json.dumps(NAMES).encode() + b"\n", b"GET /\r\n", b"[]\n", b"{}\n", other):
        with socket.create_connection(boards[1]._sock.getpeername(), timeout=30.0) as connection:
            connection.sendall(said)
            lines = connection.makefile("rb").readlines()
            assert [["nonce"]] == [[*json.loads(line)] for line in lines]
    assert {"at": ["0", "1", ""]} == boards[1].write(at="1")


def test_connections_that_send_nothing_keep_no_rank_away(boards: list[Blackboard]) -> None:
    """However many of them there are; the first of them goes."""
    address = boards[1]._sock.getpeername()
    with ExitStack() as stack:
        for _ in range(_SILENT + 20):
            stack.enter_context(socket.create_connection(address, timeout=30.0))
        assert {"at": ["", "1", ""]} == boards[1].write(at="1")


def test_an_evicted_connection_that_speaks_at_the_same_time_is_skipped(boards: list[Blackboard]) -> None:
    """The keeper survives a round in which a newcomer takes a place, and the evicted connection has written."""
    address, keeper = boards[1]._sock.getpeername(), _KEEPER._process
    assert keeper is not None
    with ExitStack() as stack:

        def connected() -> socket.socket:
            return stack.enter_context(socket.create_connection(address, timeout=30.0))

        silent = [connected() for _ in range(_SILENT)]
        for sock in silent:
            assert sock.recv(4096)
        keeper.send_signal(signal.SIGSTOP)
        try:
            last = connected()
            silent[0].sendall(b"x\n")
        finally:
            keeper.send_signal(signal.SIGCONT)
        assert last.recv(4096)
        assert {"at": ["", "1", ""]} == boards[1].write(at="1")


def test_a_head_that_does_not_know_the_secret_is_refused() -> None:
    """Another process may listen there by now."""
    with socket.create_server(("127.0.0.1", 0)) as taken, ThreadPoolExecutor(1) as threads:

        def pose() -> None:
            sock, _ = taken.accept()
            with sock:
                sock.sendall(question("a"))
                its = json.loads(sock.makefile("rb").readline())
                sock.sendall(reply("another secret", its["nonce"], None))
                sock.recv(1)

        posing = threads.submit(pose)
        port = str(taken.getsockname()[1])
        with pytest.raises(TransportError, match="does not know the pool's secret"):
            Blackboard(evolve(HEAD, node=1), lambda value: (port,))
        posing.result(30)


def test_a_head_that_is_not_there_is_named() -> None:
    """With the address that was tried."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = str(taken.getsockname()[1])
        with pytest.raises(TransportError, match=rf"Rank 1 of 3 does not reach its head at 127\.0\.0\.1:{port}"):
            Blackboard(evolve(HEAD, node=1), lambda value: (port,))


@pytest.mark.parametrize(
    "change", [{"job": "b2"}, {"broadcast": 8}, {"rank": 3}, {"rank": -1}, {"says": 7}, {"rank": "1"}]
)
def test_only_ranks_of_the_broadcast_are_noted(change: dict[str, Any]) -> None:
    """Nothing is changed by what others say."""
    who = BoardMembers("a1", 7, ranks=3)
    assert {"at": ["", "", "x"]} == noted({}, NAMES, who)
    assert noted({}, {**NAMES, **change}, who) is None
