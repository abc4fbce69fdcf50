"""What ranks of a broadcast tell each other, over real sockets."""

from __future__ import annotations

import json
import os
import resource
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest
from attrs import evolve

from skyward import InstanceInfo, TransportError, exchange
from skyward.node.agent.handshake import release_port, rendezvous_socket, reserved_socket
from skyward.node.task.challenge import introduction, question, reply
from skyward.node.task.rendezvous import _SILENT, _accept, _more_of, _RendezvousConnection


@pytest.fixture
def head() -> Iterator[InstanceInfo]:
    """The head of three ranks, whose port is kept free as an agent keeps it."""
    with rendezvous_socket() as kept:
        yield InstanceInfo(total_nodes=3, job_id="a1", broadcast=7, head_port=kept.getsockname()[1])


def test_every_rank_gets_what_all_give_in_the_order_of_ranks(head: InstanceInfo) -> None:
    """Whichever rank comes first, and as often as they meet."""
    with ThreadPoolExecutor(3) as threads:
        for turn in "ab":
            met = [
                threads.submit(exchange, f"{turn}{node}", info=evolve(head, node=node), within=30.0)
                for node in (2, 0, 1)
            ]
            assert [(f"{turn}0", f"{turn}1", f"{turn}2")] * 3 == [each.result() for each in met]


def test_who_is_not_of_the_broadcast_is_not_heard(head: InstanceInfo) -> None:
    """Neither a rank of another broadcast, nor who says nothing that can be understood, nor who says too much."""
    with ThreadPoolExecutor(3) as threads:
        met = [threads.submit(exchange, "x", info=evolve(head, node=node), within=30.0) for node in (0, 1)]
        other = {"job": "a1", "broadcast": 6, "rank": 2, "value": "wrong"}
        for said in (json.dumps(other).encode() + b"\n", b"GET /\r\n", b"[]\n", b"x" * (65 << 10)):
            with socket.create_connection(("127.0.0.1", _listening(head)), timeout=10.0) as connection:
                connection.sendall(said)
        for secret, said in (("", other), ("another", {**other, "broadcast": 7})):
            with socket.create_connection(("127.0.0.1", _listening(head)), timeout=10.0) as connection:
                asked = connection.makefile("rb").readline()
                connection.sendall(introduction(secret, asked, said)[0])
                assert b"" == connection.recv(1)
        assert ("x", "x", "right") == exchange("right", info=evolve(head, node=2), within=30.0)
        assert [("x", "x", "right")] * 2 == [each.result() for each in met]


def test_another_that_listens_there_hands_out_nothing(head: InstanceInfo) -> None:
    """It may be there before the head; the error says that it is none of the pool's."""
    with (
        socket.socket() as thief,
        ThreadPoolExecutor(2) as threads,
    ):
        thief.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        thief.bind(("127.0.0.1", head.head_port))
        thief.listen()
        asked: list[object] = []

        def pose() -> None:
            while True:
                try:
                    sock, _ = thief.accept()
                except OSError:
                    return
                with sock:
                    sock.sendall(question("a"))
                    its = json.loads(sock.makefile("rb").readline())
                    asked.append(its["value"])
                    sock.sendall(reply("guessed", its["nonce"], ["evil:1"] * 3))

        threads.submit(pose)
        met = threads.submit(exchange, "right", info=evolve(head, node=1), within=1.0, secret="the pool's")
        with pytest.raises(TransportError, match=r"not of this pool listens there: .*does not know the pool's secret"):
            met.result(30)
        assert "right" in asked
        thief.shutdown(socket.SHUT_RDWR)


def test_ranks_meet_while_connections_that_send_nothing_come(head: InstanceInfo) -> None:
    """Any number of them keeps no rank out."""
    with ThreadPoolExecutor(3) as threads, ExitStack() as stack:
        first = threads.submit(exchange, "0", info=head, within=30.0)
        for _ in range(300):
            stack.enter_context(socket.create_connection(("127.0.0.1", _listening(head)), timeout=10.0))
        met = [threads.submit(exchange, str(node), info=evolve(head, node=node), within=30.0) for node in (1, 2)]
        assert [("0", "1", "2")] * 3 == [each.result() for each in (first, *met)]


def test_an_evicted_connection_that_speaks_at_the_same_time_is_skipped() -> None:
    """Its socket may be ready in the same round in which another connection took its place."""
    with socket.create_server(("127.0.0.1", 0)) as listener, ExitStack() as stack:
        heard: dict[socket.socket, _RendezvousConnection] = {}
        for _ in range(_SILENT + 1):
            stack.enter_context(socket.create_connection(listener.getsockname(), timeout=10.0))
            first = next(iter(heard), None)
            _accept(listener, heard)
        stack.callback(lambda: [sock.close() for sock in heard])
        assert first is not None
        assert first not in heard
        assert _more_of(first, heard) is None


def test_ranks_meet_in_a_process_with_many_open_files(head: InstanceInfo) -> None:
    """`select` would refuse descriptors over 1023, which loaders of data soon use up."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
    with ThreadPoolExecutor(3) as threads, ExitStack() as stack:
        stack.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        for _ in range(1100):
            stack.callback(os.close, os.open(os.devnull, os.O_RDONLY))
        met = [threads.submit(exchange, str(node), info=evolve(head, node=node), within=30.0) for node in range(3)]
        assert [("0", "1", "2")] * 3 == [each.result() for each in met]


def test_a_rank_that_does_not_come_is_named(head: InstanceInfo) -> None:
    """The head knows who is missing; the others know that a rank is."""
    with ThreadPoolExecutor(2) as threads:
        met = [threads.submit(exchange, "x", info=evolve(head, node=node), within=0.5) for node in (0, 1)]
        with pytest.raises(TransportError, match=r"Rank 0 of 3 waited 0\.5 s .*127\..*not there: \[.*2\]"):
            met[0].result()
        with pytest.raises(TransportError, match=r"Rank 1 of 3 waited 0\.5 s .* not there: some of them"):
            met[1].result()


def test_a_port_that_is_kept_can_be_had_when_it_is_opened_up() -> None:
    """Not before, because an announced port stays reserved; and not by two at once."""

    def listens(port: int) -> socket.socket:
        sock = socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind(("127.0.0.1", port))
            sock.listen()
        except OSError:
            sock.close()
            raise
        return sock

    with reserved_socket() as kept:
        port = kept.getsockname()[1]
        with pytest.raises(OSError, match="in use"):
            listens(port)
        release_port(kept)
        with listens(port), pytest.raises(OSError, match="in use"):
            listens(port)


def test_a_call_that_is_no_broadcast_meets_nobody() -> None:
    """Nor does a broadcast to one rank."""
    assert ("x",) == exchange("x", info=InstanceInfo(total_nodes=3)) == exchange("x", info=InstanceInfo(broadcast=7))


def _listening(head: InstanceInfo) -> int:
    """Wait until the head listens, and give its port."""
    while True:
        try:
            socket.create_connection((head.head_addr, head.head_port), timeout=10.0).close()
        except ConnectionRefusedError:
            continue
        return head.head_port
