"""Copies between this machine and another: nothing is written beside the target, whatever comes."""

from __future__ import annotations

import asyncio
import io
import os
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from skyward.errors import ConfigError, NodeError
from skyward.model.instances.machine import SSHAddress
from skyward.ssh import copying
from skyward.ssh.dial import dial
from tests.hosts import Host, hosts

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Host, SSHAddress]]:
    """Run a host."""
    with hosts(1) as ((host,), key):
        known = str(tmp_path_factory.mktemp("known") / "hosts")
        yield host, SSHAddress(host=host.address, port=host.port, keys=(str(key),), known_hosts=known)


def fetch(machine: tuple[Host, SSHAddress], source: str, target: Path) -> None:
    """Copy from the machine."""

    async def run() -> None:
        async with await dial(machine[1], patience=20) as connection:
            await copying.fetch(connection, source, str(target), "the machine")

    asyncio.run(run())


def send(machine: tuple[Host, SSHAddress], source: Path, target: str) -> None:
    """Copy to the machine."""

    async def run() -> None:
        async with await dial(machine[1], patience=20) as connection:
            await copying.send(connection, str(source), target, "the machine")

    asyncio.run(run())


def test_hostile_archives_stay_inside(machine: tuple[Host, SSHAddress], tmp_path: Path) -> None:
    """Names that lead elsewhere, links and files through links are left out."""
    host = machine[0]
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        for name, kind in (
            ("good/file", tarfile.REGTYPE),
            ("good/../../escaped", tarfile.REGTYPE),
            ("/absolute", tarfile.REGTYPE),
            ("other", tarfile.REGTYPE),
            ("good/link", tarfile.SYMTYPE),
            ("good/link/through", tarfile.REGTYPE),
            ("good/pipe", tarfile.FIFOTYPE),
        ):
            member = tarfile.TarInfo(name)
            member.type, member.mode, member.linkname = kind, 0o6777, str(tmp_path / "outside")
            archive.addfile(member, io.BytesIO())
    (tmp_path / "outside").mkdir()
    (host.base / "evil.tar").write_bytes(data.getvalue())
    tar = host.base / "bin" / "tar"
    tar.write_text(f"#!/bin/sh\ncat {host.base}/evil.tar\n")
    tar.chmod(0o755)
    try:
        fetch(machine, "good", tmp_path / "here" / "new")
    finally:
        tar.unlink()
    assert ["outside"] == [path.name for path in tmp_path.iterdir() if path.name != "here"]
    assert [] == list((tmp_path / "outside").iterdir())
    assert ["new"] == os.listdir(tmp_path / "here")
    assert {"file", "link"} == set(os.listdir(tmp_path / "here" / "new"))
    assert (tmp_path / "here" / "new" / "link").is_dir()
    assert 0 == (tmp_path / "here" / "new" / "file").stat().st_mode & 0o7000


def test_an_archive_that_is_cut_off_is_an_error(machine: tuple[Host, SSHAddress], tmp_path: Path) -> None:
    """What came is there, and not taken for all."""
    tar = machine[0].base / "bin" / "tar"
    tar.write_text("#!/bin/sh\nhead -c 100 /dev/zero | tr '\\0' x\n")
    tar.chmod(0o755)
    try:
        with pytest.raises(NodeError, match="data of the machine could not be copied"):
            fetch(machine, "data", tmp_path)
    finally:
        tar.unlink()


def test_a_target_that_cannot_be_written(machine: tuple[Host, SSHAddress], tmp_path: Path) -> None:
    """The machine says why."""
    (tmp_path / "file").write_bytes(b"x" * 5_000_000)
    (machine[0].base / "home" / "taken").touch()
    with pytest.raises(NodeError, match=r"could not be copied to the machine: .*taken"):
        send(machine, tmp_path / "file", "taken/file")


@pytest.mark.parametrize("source", ["/", ".", "a/.."])
def test_what_names_no_file(machine: tuple[Host, SSHAddress], source: str, tmp_path: Path) -> None:
    """A folder is copied under its own name."""
    with pytest.raises(ConfigError, match="names no file or folder of its own"):
        fetch(machine, source, tmp_path)
