"""What tasks put stays at its host: what the client's sockets carry is counted by the kernel."""

from __future__ import annotations

import os
import socket
import struct
from typing import Any

import pytest

import skyward as sky
from tests.ssh.test_sharing import Lines, pool_of

pytestmark = pytest.mark.slow

MIB = 1 << 20
_BYTES_RECEIVED = 128
"""Where `tcpi_bytes_received` is in `struct tcp_info` of linux/tcp.h, since Linux 4.1."""


@sky.function
def made(size: int) -> Any:
    """Put bytes that do not compress."""
    return sky.put(os.urandom(size))


@sky.function
def next_of(content: bytes) -> Any:
    """Put what comes of it."""
    return sky.put(content[::-1])


@sky.function
def ends(content: bytes) -> tuple[int, int, int]:
    """Look at both ends."""
    return len(content), content[0], content[-1]


class Both(Lines):
    """Count what goes over them both ways."""

    def _sum(self) -> int:
        total = super()._sum()
        for shell in self._running._nodes.values():
            sock = shell.host._connection.get_extra_info("socket")  # type: ignore[union-attr]
            info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 192)
            total += struct.unpack_from("<Q", info, _BYTES_RECEIVED)[0]
        return total


def test_a_chain_of_calls_on_one_host_moves_no_bytes() -> None:
    """64 MiB go through five calls; they cross the line once they are asked for, and once only."""
    with pool_of(1) as (pool, _, _):
        lines = Both(pool)
        ref = pool.run(made(64 * MIB))
        for _ in range(3):
            ref = pool.run(next_of(ref))
        found = pool.run(ends(ref))
        assert lines.carried() < MIB
        content = ref.get()
        assert (len(content), content[0], content[-1]) == found
        assert 64 * MIB <= lines.carried() < 72 * MIB
        assert ref.get() == content
        assert lines.carried() < MIB


@pytest.mark.parametrize(("cluster", "carried"), [(True, MIB), (False, 18 * MIB)])
def test_another_host_gets_it_from_the_first(cluster: bool, carried: int) -> None:
    """Where hosts reach each other, else through the client; a second call there moves nothing."""
    with pool_of(2, cluster=cluster) as (pool, _, _):
        lines = Both(pool)
        ref = pool.run(made(8 * MIB), target=0)
        expected = pool.run(ends(ref), target=0)
        assert lines.carried() < MIB
        assert expected == pool.run(ends(ref), target=1)
        assert lines.carried() < carried
        assert expected == pool.run(ends(ref), target=1)
        assert lines.carried() < MIB


def test_all_hosts_get_it_from_each_other() -> None:
    """A broadcast of what one of them has."""
    with pool_of(3) as (pool, _, _):
        lines = Both(pool)
        ref = pool.run(made(16 * MIB), target=0)
        expected = pool.run(ends(ref), target=0)
        assert [expected] * 3 == ends(ref) @ pool
        assert lines.carried() < MIB
        assert expected[0] == len(ref.get())


def test_what_is_lost_with_its_host_comes_from_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """That has it since a call there needed it; what none has is an error."""
    with pool_of(2) as (pool, _, _):
        kept, lost = (pool.run(made(8 * MIB), target=0) for _ in range(2))
        expected = pool.run(ends(kept), target=1)
        shell = pool._open.running._nodes[0]  # type: ignore[union-attr]
        pool._open.running.engine.post(shell.link.close)  # type: ignore[union-attr]
        content = kept.get()
        assert (len(content), content[0], content[-1]) == expected
        with pytest.raises(sky.RefError, match="Run the call again"):
            pool.run(ends(lost), target=1)
