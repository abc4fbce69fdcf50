"""Ports of nodes are reached on the client."""

from __future__ import annotations

import logging
import socket
from concurrent.futures import ThreadPoolExecutor

import pytest

import skyward as sky
from skyward.errors import ConfigError, PoolClosedError
from tests.serving import connected, count, free_port, get, is_broken_off, is_open, is_refused, serve

start = sky.function(serve)


@pytest.mark.slow
def test_a_page_is_read_from_a_node(pool: sky.Pool) -> None:
    """The listener here is another than the one there; it is gone when the block ends."""
    remote = start("http") >> pool
    with pool.forward(remote) as forward:
        assert forward.port != remote
        assert f"http://127.0.0.1:{forward.port}" == forward.url == f"http://{forward.address}"
        assert 1000 == get(forward.address, 1000)
    assert not is_open(forward.port)
    forward.close()


def test_big_streams_go_both_ways_side_by_side(pool: sky.Pool) -> None:
    """Each connection is its own; one that says its last word still hears the answer."""
    http, counter = start("http") >> pool, start("count") >> pool
    size = 5_000_000
    with pool.forward(http) as pages, pool.forward(counter) as counts, ThreadPoolExecutor(8) as threads:
        read = [threads.submit(get, pages.address, size) for _ in range(4)]
        sent = [threads.submit(count, counts.port, size) for _ in range(4)]
        assert [size] * 8 == [future.result() for future in (*read, *sent)]


def test_a_chosen_port_is_taken(pool: sky.Pool) -> None:
    """The port here may be named, and is refused where another program has it."""
    remote, local = start("http") >> pool, free_port()
    with pool.forward(remote, local) as forward:
        assert local == forward.port
        with pytest.raises(ConfigError, match=rf"Port {local} of this machine is taken\. Give another local_port"):
            pool.forward(remote, local)
    assert not is_open(local)


def test_the_same_port_of_this_machine_needs_no_listener(pool: sky.Pool) -> None:
    """A Local node serves where the client looks already."""
    remote = start("http") >> pool
    with pool.forward(remote, remote) as forward:
        assert 10 == get(forward.address, 10)
    assert is_open(remote)


def test_a_port_that_nobody_listens_at(pool: sky.Pool, caplog: pytest.LogCaptureFixture) -> None:
    """The connection is broken off, and it is said once."""
    closed = free_port()
    with caplog.at_level(logging.WARNING), pool.forward(closed, node=1) as forward:
        assert [is_refused(forward.port) for _ in range(3)] == [True] * 3
    (line,) = [record.getMessage() for record in caplog.records]
    assert f"port {closed} of node 1 of pool 'pool' could not be reached: nothing listens" in line


def test_what_is_connected_ends_with_the_forward(pool: sky.Pool) -> None:
    """A stream without an end is broken off."""
    remote = start("endless") >> pool
    forward = pool.forward(remote)
    with connected(forward.port) as sock:
        assert sock.recv(10)
        forward.close()
        assert is_broken_off(sock)


def test_a_client_that_leaves_early_harms_nobody(pool: sky.Pool) -> None:
    """Others go on."""
    remote = start("endless") >> pool
    with pool.forward(remote) as forward, connected(forward.port) as stays:
        for _ in range(5):
            with connected(forward.port) as leaves:
                assert leaves.recv(10)
        assert stays.recv(10)


def test_what_is_no_port_or_node(pool: sky.Pool) -> None:
    """It is refused where it is written."""
    for wrong in (0, 65536, "80", True):
        with pytest.raises(ConfigError, match="remote_port must be"):
            pool.forward(wrong)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="local_port must be a number from 0 to 65535"):
        pool.forward(80, 65536)
    with pytest.raises(ConfigError, match='node must be "head" or a node from 0 to 1, not 2'):
        pool.forward(80, node=2)


def test_the_pool_closes_what_it_forwards() -> None:
    """Nothing listens when it is left, and nothing new is forwarded."""
    with sky.Compute(console="silent") as pool:
        forward = pool.forward(start("endless") >> pool, node="head")
        sock = socket.create_connection(("127.0.0.1", forward.port), timeout=20)
        assert sock.recv(10)
    with sock:
        assert is_broken_off(sock)
    assert not is_open(forward.port)
    forward.close()
    with pytest.raises(PoolClosedError):
        pool.forward(80)


def test_option_ports() -> None:
    """Ports are forwarded while the pool is up."""
    remote, local, same = free_port(), free_port(), free_port()
    with sky.Compute(console="silent", ports=[f"{local}:{remote}", same]) as pool:
        for port in (remote, same):
            assert port == start("http", port) >> pool
        assert 10 == get(f"127.0.0.1:{local}", 10) == get(f"127.0.0.1:{same}", 10)
    assert [False, False] == [is_open(local), is_open(same)]


def test_a_port_of_the_options_that_is_taken_is_refused_before_anything_is_rented() -> None:
    """No machine is asked for."""
    events: list[sky.SkywardEvent] = []
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        sock.listen()
        taken = sock.getsockname()[1]
        compute = sky.Compute(console="silent", ports=[(80, taken)], on_event=events.append)
        with pytest.raises(ConfigError, match=rf"ports: Port {taken} of this machine is taken\..* ports=\["), compute:
            pass
    assert [] == [event for event in events if isinstance(event, (sky.ClusterRequested, sky.InstanceRequested))]
