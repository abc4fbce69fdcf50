"""Hosts hand a large array on to each other: what the client's sockets carry is counted by the kernel."""

from __future__ import annotations

import os
import signal
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import skyward as sky
from skyward.engine.nodes import buffer_sharing
from skyward.link.transfer_orders import ANSWER, REQUEST
from skyward.node.data.pool_tls import contexts
from tests.hosts import Host, hosts
from tests.ssh.conftest import Site

pytestmark = pytest.mark.slow

MIB = 1 << 20
_BYTES_ACKNOWLEDGED = 120
"""Where `tcpi_bytes_acked` is in `struct tcp_info` of linux/tcp.h, since Linux 4.1."""


@sky.function
def ends(content: Any) -> tuple[int, int, int]:
    return len(content), content[0], content[-1]


@sky.function
def slow_end(content: Any, seconds: float) -> int:
    time.sleep(seconds)
    return int(content[-1])


def content(size: int) -> bytearray:
    """Make a buffer that is recognised when it is sent again, whose bytes do not compress."""
    return bytearray(os.urandom(size))


class Lines:
    """Count the bytes that hosts have acknowledged to the client."""

    def __init__(self, pool: sky.Compute) -> None:
        assert pool._open is not None
        self._running = pool._open.running
        self._before = self._sum()

    @property
    def sharing(self) -> buffer_sharing.Sharing:
        """Give what the pool's nodes share by."""
        [shared] = self._running.provisioning.sharing.values()
        return shared

    def carried(self) -> int:
        """Count what went over them since this was last asked."""
        now = self._sum()
        found, self._before = now - self._before, now
        return found

    def _sum(self) -> int:
        total = 0
        for shell in self._running._nodes.values():
            sock = shell.host._connection.get_extra_info("socket")  # type: ignore[union-attr]
            info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 192)
            total += struct.unpack_from("<Q", info, _BYTES_ACKNOWLEDGED)[0]
        return total


@contextmanager
def pool_of(count: int, **options: Any) -> Iterator[tuple[sky.Compute, list[Host], Lines]]:
    """Open a pool of hosts that have said hello."""
    with hosts(count) as (made, key):
        given = Site(made, key).provider()
        with sky.Compute(provider=given, nodes=count, console="silent", logging=False, ttl=60, **options) as pool:
            ends(b"x") @ pool
            yield pool, made, Lines(pool)


def agent_of(host: Host) -> int:
    """Find a host's agent."""
    for pid in host.processes():
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        if b"skyward.node.agent.agent_main" in words:
            return pid
    raise AssertionError("the host has no agent")


def check(nodes: int, size: int) -> None:
    """Broadcast the same twice."""
    with pool_of(nodes) as (pool, _, lines):
        given = content(size)
        expected = (size, given[0], given[-1])
        found = []
        for _ in range(2):
            assert [expected] * nodes == ends(memoryview(given)) @ pool
            found.append(lines.carried())
    assert found[0] <= 1.2 * size
    assert found[1] <= 0.02 * size


def test_a_broadcast_crosses_the_clients_line_once() -> None:
    """To four hosts; the second time not at all."""
    check(4, 16 * MIB)


@pytest.mark.everything
def test_a_broadcast_of_256_mib_to_eight_hosts_crosses_the_clients_line_once() -> None:
    """As the table of performance asks; four hosts and 16 MiB show the same."""
    check(8, 256 * MIB)


def test_calls_of_their_own_share_what_they_need() -> None:
    """Four calls with the same argument, at about the same time, on four hosts."""
    with pool_of(4) as (pool, _, lines):
        given = content(16 * MIB)
        calls = [pool.run_async(ends(memoryview(given)), target=node) for node in range(4)]
        assert {(len(given), given[0], given[-1])} == {call.result(60) for call in calls}
        assert lines.carried() <= 1.2 * len(given)


def test_nodes_that_may_not_meet_hand_nothing_on() -> None:
    """With `cluster=False` each is sent it by the client, and opens no port."""
    with pool_of(2, cluster=False) as (pool, _, lines):
        given = content(8 * MIB)
        ends(memoryview(given)) @ pool
        assert 2 * len(given) <= lines.carried()


def _join(threads: list[threading.Thread]) -> None:
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()


@pytest.mark.parametrize("sign", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stands still"])
def test_a_holder_that_fails_harms_none_of_the_others(sign: signal.Signals, monkeypatch: pytest.MonkeyPatch) -> None:
    """The agent of the only host that has it ends, or stalls, when the others are told to fetch it there."""
    monkeypatch.setattr(buffer_sharing, "STALL", 1.0)
    with pool_of(4) as (pool, made, lines):
        given = content(64 * MIB)
        assert len(given) == pool.run(ends(memoryview(given)), target=0)[0]
        [host] = [
            host
            for host in made
            if f"{host.address}:{host.port}" in str(lines._running._nodes[0].instance.address)
            or host.address == lines._running._nodes[0].info.private_ip
        ]
        calls = [pool.run_async(ends(memoryview(given)), target=node) for node in (1, 2, 3)]
        os.kill(agent := agent_of(host), sign)
        try:
            assert {(len(given), given[0], given[-1])} == {call.result(60) for call in calls}
        finally:
            os.kill(agent, signal.SIGCONT) if sign == signal.SIGSTOP else None


@contextmanager
def instead_of(lines: Lines, do: Callable[[Any], None], directory: Path) -> Iterator[list[int]]:
    """Have another program serve in place of node 0, with the pool's own certificate, and count its visitors."""
    shared = lines.sharing
    assert shared._certificate is not None
    context = contexts(*shared._certificate, str(directory)).listening
    visits: list[int] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    sock, _ = listener.accept()
                except OSError:
                    return
                visits.append(1)
                try:
                    with sock, context.wrap_socket(sock, server_side=True) as tls:
                        tls.recv(REQUEST.size)
                        do(tls)
                except OSError:
                    continue

        thread = threading.Thread(target=serve)
        thread.start()
        first = next(supply for supply in shared._supplies.values() if supply.shell.index == 0)
        first.port = listener.getsockname()[1]
        first.shell.info = type(first.shell.info)(private_ip="127.0.0.1")
        yield visits
        listener.shutdown(socket.SHUT_RDWR)
        _join([thread])


@pytest.mark.parametrize("how", ["wrong bytes", "stalls", "half"])
def test_a_holder_that_lies_or_stalls_poisons_no_argument(
    how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each call gets the bytes that the client meant."""
    monkeypatch.setattr(buffer_sharing, "STALL", 0.5)
    size = 8 * MIB

    def do(tls: Any) -> None:
        tls.sendall(ANSWER.pack(1, size))
        if how == "stalls":
            tls.recv(1)
        else:
            tls.sendall(bytes(size if how == "wrong bytes" else size // 2))

    with pool_of(3) as (pool, _, lines):
        # So that all have a port and the certificate.
        ends(memoryview(content(4 * MIB))) @ pool
        given = content(size)
        expected = pool.run(ends(memoryview(given)), target=0)
        with instead_of(lines, do, tmp_path) as visits:
            calls = [pool.run_async(ends(memoryview(given)), target=node) for node in (1, 2)]
            assert [expected] * 2 == [call.result(60) for call in calls]
            assert visits
