"""What the tests on an NVIDIA GPU share: what it says of itself, and an SSH server beside it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import skyward as sky
from tests.hosts import SSHD, hosts


def asked(fields: str) -> list[str]:
    """Return what `nvidia-smi` says of the first GPU."""
    words = ["nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader,nounits"]
    said = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60).stdout
    return [cell.strip() for cell in said.splitlines()[0].split(",")]


@pytest.fixture(scope="session")
def model() -> str:
    """Return the GPU's name, as its maker spells it."""
    return asked("name")[0]


@pytest.fixture
def host() -> Iterator[sky.SSH]:
    """Run an SSH server on this machine, and return its provider."""
    if not Path(SSHD).exists():
        pytest.fail("these tests need an OpenSSH server")
    with hosts(1) as (made, key):
        names = [f"{one.address}:{one.port}" for one in made]
        yield sky.SSH(hosts=names, key=str(key), known_hosts=str(key.with_name("known_hosts")))
