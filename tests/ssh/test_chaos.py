"""Whatever happens to a client, nothing of it is left on the hosts when its lease is over."""

from __future__ import annotations

import contextlib
import random
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from tests.hosts import Host
from tests.seeds import seeds, share
from tests.ssh.conftest import Site

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(400)]

KILLS = share(50)
AT_ONCE = 5
TTL = 5
LONGEST_LIFE = 4.0


@pytest.mark.parametrize("seed", seeds("clients over SSH", 1))
def test_clients_killed_at_any_moment_leave_nothing(seed: int, site: Site, tmp_path: Path) -> None:
    """SIGKILLs, fifty if all are drawn, between the first byte and long after the first result."""
    random_ = random.Random(seed)
    script = tmp_path / "main.py"
    script.write_text(
        textwrap.dedent(f"""
        import subprocess, sys, time
        import skyward as sky
        provider = sky.SSH([{site.provider().hosts[0]!r}], key={str(site.key)!r}, known_hosts={str(site.known_hosts)!r})
        with sky.Compute(provider=provider, console="silent", logging=False, ttl={TTL}) as pool:
            while True:
                sky.function(lambda: subprocess.Popen(["sleep", "1000"], start_new_session=True).pid)() >> pool
                time.sleep(0.1)
        """)
    )
    host, moments = site.hosts[0], [random_.uniform(0.0, LONGEST_LIFE) for _ in range(KILLS)]
    for first in range(0, KILLS, AT_ONCE):
        began = time.monotonic()
        clients = [
            (subprocess.Popen([sys.executable, str(script)], stderr=subprocess.DEVNULL), moment)
            for moment in moments[first : first + AT_ONCE]
        ]
        for client, moment in sorted(clients, key=lambda pair: pair[1]):
            try:
                client.wait(max(0.0, began + moment - time.monotonic()))
            except subprocess.TimeoutExpired:
                client.kill()
                client.wait()
    # The lease, the watchdog's pause, and a bootstrap that was under way when its client went.
    deadline = time.monotonic() + TTL + 15
    nodes = host.cache / "nodes"
    while host.processes() or (nodes.exists() and any(nodes.iterdir())):
        assert time.monotonic() < deadline, (seed, _commands(host), list(nodes.iterdir()) if nodes.exists() else [])
        time.sleep(0.1)


def _commands(host: Host) -> list[bytes]:
    found = []
    for pid in host.processes():
        with contextlib.suppress(OSError):
            found.append(Path(f"/proc/{pid}/cmdline").read_bytes()[:200])
    return found
