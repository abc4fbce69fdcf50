"""What a machine does with its EBS volumes at a boot, with the real tools of file systems on a file as the device."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from skyward_aws.disks import mount_script
from tests.clouds.hosting import executable

PATH = f"{os.environ['PATH']}:/usr/sbin:/sbin"
MIB = 1 << 20

pytestmark = pytest.mark.skipif(
    any(shutil.which(name, path=PATH) is None for name in ("blkid", "mkfs.ext4", "mke2fs")),
    reason="needs e2fsprogs and blkid",
)


class Machine:
    """A machine that has one volume: a file, found by its serial number."""

    def __init__(self, folder: Path) -> None:
        self.device = folder / "nvme1n1"
        self.where = folder / "mnt"
        self.asked = folder / "asked"
        self.asked.touch()
        (folder / "bin").mkdir()
        self.bin = folder / "bin"
        self.stand_in("lsblk", f'echo "/dev/other vol9"; echo "{self.device}  vol0ab"')
        self.stand_in("mountpoint", "exit 1")
        self.stand_in("mount", f'echo "mount $*" >>{self.asked}')
        self.stand_in("chmod", f'echo "chmod $*" >>{self.asked}')

    def stand_in(self, name: str, line: str) -> None:
        """Have a command do something else."""
        executable(self.bin / name, f"#!/bin/sh\n{line}\n")

    def holds(self, data: bytes, size: int = 8 * MIB) -> None:
        """Have the volume begin with some bytes."""
        with self.device.open("wb") as file:
            file.write(data)
            file.truncate(size)

    def make(self, *words: str) -> str:
        """Make a file system on the volume, and return its UUID."""
        self.holds(b"")
        subprocess.run([*words, self.device], env={"PATH": PATH}, check=True, capture_output=True)
        return self.uuid()

    def uuid(self) -> str:
        """Return the UUID of the volume's file system, empty if there is none."""
        words = ["blkid", "-po", "value", "-s", "UUID", self.device]
        return subprocess.run(words, env={"PATH": PATH}, capture_output=True, text=True, check=False).stdout.strip()

    def boot(self, *, read_only: bool = False) -> list[str]:
        """Run the script as a boot does, and return what was asked of the machine."""
        script = mount_script({"vol-0ab": str(self.where)}, read_only=read_only, seconds=0)
        env = {"PATH": f"{self.bin}:{PATH}"}
        subprocess.run(["sh", "-eu", "-c", script], env=env, check=True, timeout=30, capture_output=True)
        return self.asked.read_text().splitlines()


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """Give a machine."""
    return Machine(tmp_path)


def test_a_blank_volume_gets_a_file_system_that_the_login_user_can_write_to(machine: Machine) -> None:
    """It is mounted by the UUID that it has then."""
    machine.holds(b"")
    asked = machine.boot()
    assert machine.uuid()
    assert [f"mount -o noatime UUID={machine.uuid()} {machine.where}", f"chmod 1777 {machine.where}"] == asked


@pytest.mark.parametrize("words", [("mkfs.ext4", "-q"), ("mke2fs", "-q", "-t", "ext2")])
def test_a_volume_with_a_file_system_is_never_formatted(machine: Machine, words: tuple[str, ...]) -> None:
    """Nor are the rights of its root changed."""
    uuid = machine.make(*words)
    before = machine.device.read_bytes()
    assert [f"mount -o noatime UUID={uuid} {machine.where}"] == machine.boot()
    assert before == machine.device.read_bytes()


@pytest.mark.parametrize("data", [b"\0" * 1000 + b"x", b"\n", b"LUKS\xba\xbe\0\x01" + b"\0" * 500])
def test_a_volume_that_holds_anything_else_is_left_as_it_is(machine: Machine, data: bytes) -> None:
    """What is not known may be a database's; there is no folder then."""
    machine.holds(data)
    before = machine.device.read_bytes()
    assert [] == machine.boot()
    assert before == machine.device.read_bytes()
    assert not machine.where.exists()


def test_several_machines_only_read(machine: Machine) -> None:
    """Neither is the journal replayed, nor a file system made."""
    uuid = machine.make("mkfs.ext4", "-q")
    assert [f"mount -o ro,noload UUID={uuid} {machine.where}"] == machine.boot(read_only=True)
    machine.holds(b"")
    assert 1 == len(machine.boot(read_only=True))
    assert not machine.uuid()


def test_a_volume_that_never_comes_has_no_folder(machine: Machine) -> None:
    """A task that writes there hears so."""
    assert [] == machine.boot()
    assert not machine.where.exists()
