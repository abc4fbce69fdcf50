"""The store of a pool's collections on other machines: nodes reach it through the client's SSH connections."""

from __future__ import annotations

import os
import signal
import stat
import time
from pathlib import Path
from typing import Any

import pytest

import skyward as sky
from skyward.node.store.server_search import NAMED
from tests.hosts import hosts
from tests.ssh.conftest import Site
from tests.stores import listening_ports
from tests.waiting import until

pytestmark = pytest.mark.slow


def _open(site: Site, **options: Any) -> sky.Compute:
    return sky.Compute(
        **{"provider": site.provider(), "nodes": len(site.hosts), "console": "silent", "logging": False, "ttl": 60}
        | options
    )


@sky.function
def add(name: str, n: int = 1) -> int:
    return int(sky.counter(name).increment(n))


@sky.function
def count_up(name: str, seconds: float) -> int:
    """Count for a while, and return how often."""
    counter, done = sky.counter(name), 0
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        counter.increment()
        done += 1
    return done


@sky.function
def copy(name: str, size: int) -> int:
    shared = sky.dict(name)
    shared["large"] = os.urandom(size)
    return len(shared["large"])


def _sockets(site: Site) -> list[Path]:
    return [path for host in site.hosts for path in host.cache.glob("nodes/*/store-*") if path.is_socket()]


def _servers(site: Site) -> list[list[int]]:
    return [
        [pid for pid in host.processes() if b"valkey-server" in Path(f"/proc/{pid}/cmdline").read_bytes()]
        for host in site.hosts
    ]


def test_two_hosts_and_the_client_share_it(two: Site) -> None:
    """The server is on the first; the other one is led through the client."""
    with _open(two) as pool:
        assert [1, 2] == sorted(add("n") @ pool)
        assert 2 == pool.counter("n").value
        assert [[1, 0], [[]]] == [[len(found) for found in _servers(two)], [listening_ports(_servers(two)[0][0])]]
        assert {0o600} == {stat.S_IMODE(path.stat().st_mode) for path in _sockets(two)}
        assert 3 == len(_sockets(two))
    assert [] == _sockets(two)
    assert [[], []] == _servers(two)


def test_large_values_pass(two: Site) -> None:
    """From each node, with flow control on the way."""
    with _open(two) as pool:
        assert [8 << 20] * 2 == [pool.run(copy("d", 8 << 20), target=node) for node in (0, 1)]
        assert 8 << 20 == len(pool.dict("d")["large"])


@pytest.mark.parametrize("cut", [0, 1])
def test_a_cut_connection_loses_no_increment_and_doubles_none(two: Site, cut: int) -> None:
    """It is made again, and so is what was under way."""
    with _open(two) as pool:
        add("n", 0) @ pool
        counting = [pool.run_async(count_up("n", 4.0), target=node) for node in (0, 1)]
        for _ in range(3):
            time.sleep(1.0)
            two.hosts[cut].cut()
        assert sum(one.result(60) for one in counting) == pool.counter("n").value


def test_servers_that_forward_no_sockets_are_led_by_relays() -> None:
    """As the link to the agent is."""
    with hosts(2, forwarding=False) as (made, key):
        site = Site(made, key)
        with _open(site) as pool:
            assert [1, 2] == sorted(add("n") @ pool)
            assert 2 == pool.counter("n").value


def test_the_loss_of_the_head_is_the_loss_of_the_store(two: Site) -> None:
    """A task on the other host gets the typed error; what begins later has a new, empty store."""
    with _open(two, retry_on_interruption=0) as pool:
        counter = pool.counter("n")
        add("n") @ pool
        counting = pool.run_async(count_up("n", 60.0), target=1)
        until(lambda: counter.value > 10)
        (server,) = _servers(two)[0]
        agent = int(Path(f"/proc/{server}/stat").read_text().rpartition(")")[2].split()[1])
        os.kill(agent, signal.SIGKILL)
        with pytest.raises(sky.StoreLostError):
            counting.result(60)
        with pytest.raises(sky.StoreLostError):
            counter.increment()
        until(lambda: pool.current_nodes() == 2, seconds=60.0)
        assert [1, 2] == sorted(add("n") @ pool)


def test_a_host_without_a_server_says_what_to_do(two: Site) -> None:
    """In the task, and at the client."""
    image = sky.Image(env={NAMED: "/nowhere/valkey-server"})
    with _open(two, image=image) as pool:
        for use in (lambda: pool.run(add("n"), target=1), lambda: pool.counter("n")):
            with pytest.raises(sky.ProvisionError, match=r"node 0 .*has no server .*Image\(apt=\['valkey-server'\]\)"):
                use()
