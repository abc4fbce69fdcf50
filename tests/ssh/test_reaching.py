"""Hosts whose ranks form one job knock at each other's ports before the first task; others open none."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import pytest

import skyward as sky
from skyward.hookspecs import Topology
from tests.hosts import Host
from tests.ssh.conftest import Site

JOB = sky.Plugin.create("job").with_topology(lambda cluster: Topology(collective=True))

_LISTENS = "0A"


def _doors(host: Host) -> int:
    """Count the TCP ports at which a host's agent listens."""
    table = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    listening = {f"socket:[{row[9]}]" for row in table if row[3] == _LISTENS}
    held: set[str] = set()
    for pid in host.processes():
        with contextlib.suppress(OSError):
            if b"skyward.node" in Path(f"/proc/{pid}/cmdline").read_bytes():
                for entry in Path(f"/proc/{pid}/fd").iterdir():
                    with contextlib.suppress(OSError):
                        held.add(os.readlink(entry))
    return len(held & listening)


@pytest.mark.slow
@pytest.mark.parametrize(("plugins", "doors"), [([JOB], 1), ([], 0)], ids=["one job", "calls of their own"])
def test_only_hosts_of_one_job_are_asked_for_a_port(two: Site, plugins: list[sky.Plugin], doors: int) -> None:
    """Each of them listens for the other, for half a minute."""
    pool = sky.Compute(provider=two.provider(), nodes=2, plugins=plugins, console="silent", logging=False, ttl=60)
    with pool:
        found = [_doors(host) for host in two.hosts]
        assert [1, 1] == sky.function(lambda: 1)() @ pool
    assert [doors, doors] == found
