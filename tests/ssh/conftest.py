"""Real SSH hosts for the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import skyward as sky
from tests.hosts import SSHD, Host, hosts
from tests.yard import Yard

if not Path(SSHD).exists():
    collect_ignore_glob = ["test_*.py"]


class Site(NamedTuple):
    """Hosts, and what a client needs to reach them."""

    hosts: list[Host]
    key: Path

    @property
    def known_hosts(self) -> Path:
        """The client's file of known hosts."""
        return self.key.with_name("known_hosts")

    def provider(self, **changes: object) -> sky.SSH:
        """Make the provider of these hosts."""
        names = [f"{host.address}:{host.port}" for host in self.hosts]
        return sky.SSH(**{"hosts": names, "key": str(self.key), "known_hosts": str(self.known_hosts), **changes})  # type: ignore[arg-type]


@pytest.fixture
def site() -> Iterator[Site]:
    """Run one host."""
    with hosts(1) as (made, key):
        yield Site(made, key)


@pytest.fixture
def two() -> Iterator[Site]:
    """Run two hosts."""
    with hosts(2) as (made, key):
        yield Site(made, key)


@pytest.fixture
def yard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Yard, list[Host]]]:
    """Open a yard of two hosts, for a user with a state of its own."""
    monkeypatch.setenv("SKYWARD_STATE", str(tmp_path / "state"))
    with hosts(2) as (made, key):
        places = tuple((str(host.base), host.address, host.port) for host in made)
        known = str(tmp_path / "known_hosts")
        yield Yard(hosts=places, key=str(key), books=str(tmp_path / "books"), known_hosts=known), made
