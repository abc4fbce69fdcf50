"""A droplet cannot end its own bill: where the client is killed, its guardian deletes what there is."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clouds.digitalocean.cloud import CPU, GPU, Cloud
from tests.seeds import some
from tests.waiting import until

pytestmark = [pytest.mark.clouds, pytest.mark.timeout(180)]

PROGRAM = """
import time
import skyward as sky
from skyward.engine.guardian import guardian_client

# So long an empty list is not believed; a minute outside of tests.
guardian_client.APPEARING = 1.0
provider = sky.DigitalOcean(ssh_port={port})
with sky.Compute(provider=provider, machine={machine!r}, nodes=2, ttl=6, console=False, logging=False):
    print("ready", flush=True)
    time.sleep(300)
"""


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """Give a home of its own, and leave no guardian that has it."""
    yield tmp_path
    for pid in guardians(tmp_path):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def guardians(home: Path) -> list[int]:
    """List the guardians of programs with this home."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            ours = f"HOME={home}".encode() in path.read_bytes().split(b"\0")
            if ours and b"skyward.engine.guardian.guardian_process" in path.with_name("cmdline").read_bytes():
                found.append(int(path.parent.name))
    return found


@pytest.mark.parametrize("machine", some("droplets of a client that is killed", [CPU, GPU]))
def test_the_droplets_of_a_client_that_is_killed_are_deleted(ocean: Cloud, home: Path, machine: str) -> None:
    """Both go within seconds, and so do the pool's key and tags; then the guardian ends."""
    client = subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(port=ocean.port, machine=machine)],
        env={**os.environ, "HOME": str(home), "SKYWARD_STATE": str(home / "state")},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    with client:
        assert client.stdout is not None
        assert "ready\n" == client.stdout.readline()
        assert 2 == len(ocean.alive())
        [guardian] = guardians(home)
        client.kill()
    until(lambda: not ocean.alive(), 60)
    until(lambda: guardian not in guardians(home), 60)
    assert [] == ocean.ssh_keys()
    assert {"skyward"} >= set(ocean.tags())
