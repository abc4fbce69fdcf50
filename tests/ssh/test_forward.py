"""Ports of hosts are reached through their SSH connections, whichever there is."""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import skyward as sky
from tests.serving import connected, count, free_port, get, is_broken_off, is_open, is_refused, serve
from tests.ssh.conftest import Site

pytestmark = pytest.mark.slow

start = sky.function(serve)


def _open(site: Site, **options: Any) -> sky.Compute:
    return sky.Compute(**{"provider": site.provider(), "console": "silent", "logging": False, "ttl": 60, **options})


def test_pages_and_streams_of_two_hosts(two: Site) -> None:
    """Big ones, both ways, side by side, and nothing listens afterwards."""
    size = 5_000_000
    with _open(two, nodes=2) as pool:
        http, counter = start("http") @ pool, start("count") @ pool
        pages = [pool.forward(port, node=node) for node, port in enumerate(http)]
        counts = [pool.forward(port, node=node) for node, port in enumerate(counter)]
        with ThreadPoolExecutor(8) as threads:
            read = [threads.submit(get, forward.address, size) for forward in pages * 2]
            sent = [threads.submit(count, forward.port, size) for forward in counts * 2]
            assert [size] * 8 == [future.result() for future in (*read, *sent)]
    assert not any(is_open(forward.port) for forward in (*pages, *counts))


def test_a_cut_connection_breaks_streams_off_and_new_ones_go_on(site: Site) -> None:
    """No program takes the loss for a good end."""
    with _open(site) as pool:
        endless, http = start("endless") >> pool, start("http") >> pool
        with pool.forward(endless) as stream, pool.forward(http) as pages:
            for _ in range(3):
                assert 1_000 == get(pages.address, 1_000)
                with connected(stream.port) as sock:
                    assert sock.recv(10)
                    site.hosts[0].cut()
                    assert is_broken_off(sock)
            assert 1_000 == get(pages.address, 1_000)


def test_a_host_that_is_away_for_a_while(site: Site) -> None:
    """A connection made meanwhile waits until the host is back."""
    with _open(site) as pool:
        http = start("http") >> pool
        with pool.forward(http) as pages, ThreadPoolExecutor() as threads:
            site.hosts[0].stop()
            page = threads.submit(get, pages.address, 1_000)
            site.hosts[0].start()
            assert 1_000 == page.result()


def test_a_killed_agent_changes_nothing(site: Site) -> None:
    """The node that stands in has the port now."""
    remote = free_port()
    with _open(site, ports=[(remote, local := free_port())], retry_on_interruption=0) as pool:
        for _ in range(2):
            assert remote == start("http", remote) >> pool
            assert 10 == get(f"127.0.0.1:{local}", 10)
            with pytest.raises(sky.SkywardError):
                _die() >> pool
    assert not is_open(local)


@sky.function
def _die() -> None:
    import os
    import signal

    os.kill(os.getppid(), signal.SIGKILL)


def test_a_port_that_nobody_listens_at(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    """The connection is broken off, and it is said once."""
    closed = free_port()
    with _open(site) as pool, caplog.at_level(logging.WARNING), pool.forward(closed) as forward:
        assert [is_refused(forward.port) for _ in range(3)] == [True] * 3
    (line,) = [record.getMessage() for record in caplog.records if "forwarding" in record.name]
    assert f"port {closed} of node 0 of pool 'pool' could not be reached: nothing listens" in line


def test_a_server_that_forwards_nothing(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    """The warning names its setting; the pool works on, through a relay."""
    site.hosts[0].configure("AllowTcpForwarding no")
    with _open(site) as pool:
        remote = start("http") >> pool
        with caplog.at_level(logging.WARNING), pool.forward(remote) as forward:
            assert is_refused(forward.port)
    (line,) = [record.getMessage() for record in caplog.records if "forwarding" in record.name]
    assert f"{site.hosts[0].address}:{site.hosts[0].port} forwards no ports" in line
    assert "AllowTcpForwarding" in line
