"""Which disk is meant, whether a pool can have it, and the shell commands that mount and unmount it, run by a shell."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from skyward.errors import ConfigError
from skyward.model.spec.volumes import Disk, Volume
from skyward.plan.offers.cloud_disk import (
    CloudDisk,
    check_attachable,
    check_disk,
    check_together,
    chosen,
    disk_folder,
    disks_of,
    mount_disk,
    mount_share,
    unmount_disks,
)
from tests.clouds.hosting import executable

DATA = CloudDisk(id="v-1", name="data", place="FIN-01")
TWIN = CloudDisk(id="v-2", name="data", place="FIN-02")
SHARED = CloudDisk(id="v-3", name="shared", place="FIN-01", shared=True)


@pytest.mark.parametrize(("wanted", "expected"), [("v-1", "v-1"), ("v-2", "v-2"), ("shared", "v-3"), ("v-3", "v-3")])
def test_a_disk_is_named_by_its_id_or_by_a_name_of_its_own(wanted: str, expected: str) -> None:
    """An id goes before a name."""
    assert expected == chosen([DATA, TWIN, SHARED], wanted, "Verda").id


@pytest.mark.parametrize(
    ("wanted", "volumes", "words"),
    [
        ("data", [DATA, TWIN], "several disks 'data': v-1 in FIN-01, v-2 in FIN-02. Write the id of one."),
        ("dta", [DATA], "Verda has no disk 'dta'. Did you mean 'data'?"),
        ("v-9", [DATA], "Did you mean 'v-1'?"),
        ("other", [DATA, SHARED], "There are: 'data' (v-1), 'shared' (v-3)."),
        ("data", [], "There are none: make one first, a pool makes none."),
    ],
)
def test_what_no_disk_is_meant_by_is_refused(wanted: str, volumes: list[CloudDisk], words: str) -> None:
    """With what there is, and the nearest of it."""
    with pytest.raises(ConfigError) as refused:
        chosen(volumes, wanted, "Verda")
    assert words in str(refused.value)


def test_a_disk_is_for_machines_beside_it() -> None:
    """Where no place is asked for, its own is taken."""
    check_disk(DATA, "Verda")
    check_disk(DATA, "Verda", places=("FIN-02", "FIN-01"))
    for volume in (DATA, SHARED):
        with pytest.raises(ConfigError, match="is in FIN-01, and machines are asked for in FIN-02"):
            check_disk(volume, "Verda", places=("FIN-02",))


def test_a_disk_is_for_one_machine_unless_it_is_shared() -> None:
    """Neither for a second node, nor while another machine has it."""
    check_disk(DATA, "Verda", nodes=1)
    check_disk(SHARED, "Verda", nodes=8, holders=["i-1"])
    with pytest.raises(ConfigError, match=r"one machine at a time, and the pool may have 2 nodes\. Write nodes=1"):
        check_disk(DATA, "Verda", nodes=2)
    with pytest.raises(ConfigError, match=r"'data' \(v-1\) of Verda is attached to i-1"):
        check_disk(DATA, "Verda", holders=["i-1"])


def test_a_disk_of_several_machines_may_be_for_no_more_than_some() -> None:
    """As a Multi-Attach volume of AWS is."""
    disk = CloudDisk(id="v-3", name="many", place="here", shared=True, most=16)
    check_disk(disk, "AWS", nodes=16)
    with pytest.raises(
        ConfigError, match=r"for 16 machines at a time, and the pool may have 17 nodes\. Write nodes=16"
    ):
        check_disk(disk, "AWS", nodes=17)


def test_a_disk_is_found_below_mnt_by_what_the_user_calls_it() -> None:
    """Unless the user says where, who has to if the name is none for a folder: the same at every cloud."""
    assert "/mnt/data" == disk_folder(Disk("data"))
    assert "/mnt/v-4" == disk_folder(Disk("v-4"))
    assert "/workspace" == disk_folder(Disk("my data", mount="/workspace/"))
    for name in ("my data", "..", "a/b"):
        with pytest.raises(ConfigError, match="is none for a folder"):
            disk_folder(Disk(name))


def test_disks_are_told_from_buckets() -> None:
    """Both are in one list."""
    bucket, disk = Volume("bucket", "/data"), Disk("data")
    assert (disk,) == disks_of([bucket, disk])
    check_attachable([bucket], "local", 0, lambda: pytest.fail("asked"))


@pytest.mark.parametrize(
    ("volumes", "most", "words"),
    [
        ([Disk("a")], 0, "shed keeps no disks, and volumes= has 'a'. Disks are at sky.AWS, sky.Verda; sky.Volume is"),
        ([Disk("a"), Disk("b")], 1, "shed attaches 1 disk to a machine, and volumes= has 2: 'a', 'b'."),
        ([Disk("a"), Disk("b"), Disk("c")], 2, "shed attaches 2 disks to a machine, and volumes= has 3"),
        ([Disk("a"), Volume("bucket", "/mnt/a/b")], 1, "/mnt/a and /mnt/a/b, which lie in each other"),
    ],
)
def test_disks_that_no_machine_of_a_provider_has_are_refused(volumes: Any, most: int, words: str) -> None:
    """With what there is instead."""
    with pytest.raises(ConfigError) as refused:
        check_attachable(volumes, "shed", most, lambda: ("AWS", "Verda"))
    assert words in str(refused.value)


def test_the_disks_of_a_machine_are_in_one_place_and_there_once() -> None:
    """A name and an id may mean the same one."""
    check_together([DATA, SHARED], "Verda")
    with pytest.raises(ConfigError, match=r"'data' \(v-1\) is in FIN-01 and 'data' \(v-2\) is in FIN-02"):
        check_together([DATA, TWIN], "Verda")
    with pytest.raises(ConfigError, match=r"the disk 'data' \(v-1\) of Verda more than once"):
        check_together([DATA, DATA], "Verda")


class Machine:
    """A directory with stand-ins for what would mount something on this machine."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.where = folder / "mnt" / "data"
        (folder / "bin").mkdir()
        self.stand_in("mount", f'echo "mount $*" >>{folder}/asked; [ ! -e {folder}/broken ]')
        self.stand_in("mountpoint", f"[ -e {folder}/mounted ]")
        for name in ("mkfs", "mkfs.ext4", "mke2fs", "apt-get"):
            self.stand_in(name, f'echo "{name} $*" >>{folder}/asked')

    def stand_in(self, name: str, line: str) -> None:
        """Have a command do something else."""
        executable(self.folder / "bin" / name, f"#!/bin/sh\n{line}\n")

    def run(self, script: str) -> list[str]:
        """Run a script, which may not fail, and return what was asked of the machine."""
        env = {**os.environ, "PATH": f"{self.folder}/bin:{os.environ['PATH']}"}
        subprocess.run(["sh", "-eu", "-c", script], check=True, env=env, timeout=20)
        asked = self.folder / "asked"
        return asked.read_text().splitlines() if asked.exists() else []


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """Give a machine."""
    return Machine(tmp_path)


def test_a_disk_with_a_filesystem_is_mounted(machine: Machine) -> None:
    """As soon as it is there; at a later boot it is mounted anew, and not twice."""
    script = mount_disk("echo /dev/vdb", str(machine.where))
    expected = [f"mount -o noatime /dev/vdb {machine.where}"]
    assert expected == machine.run(script)
    assert machine.where.is_dir()
    (machine.folder / "mounted").touch()
    assert expected == machine.run(script)


@pytest.mark.parametrize(("find", "broken"), [("echo", False), ("false", False), ("echo /dev/vdb", True)])
def test_a_disk_that_cannot_be_mounted_is_left_as_it_is(machine: Machine, find: str, broken: bool) -> None:
    """Never formatted; and there is no directory in which something could be written that is lost then."""
    if broken:
        (machine.folder / "broken").touch()
    asked = machine.run(mount_disk(find, str(machine.where), seconds=0))
    assert [f"mount -o noatime /dev/vdb {machine.where}"] * broken == asked
    assert not machine.where.exists()


def test_a_share_is_mounted_with_its_options(machine: Machine) -> None:
    """What speaks NFS is installed where it is missing."""
    asked = machine.run(mount_share("nfs.example:/a b", "nconnect=16", str(machine.where)))
    assert f"mount -t nfs -o nconnect=16 nfs.example:/a b {machine.where}" == asked[-1]
    (machine.folder / "broken").touch()
    machine.run(mount_share("nfs.example:/a", "", str(machine.where), seconds=0))
    assert not machine.where.exists()


def unmounting(machine: Machine, *folders: Path, seconds: float = 0.0) -> tuple[int, str, list[str]]:
    """Run the script that flushes and unmounts disks; return its exit code, its errors, and what was asked."""
    env = {**os.environ, "PATH": f"{machine.folder}/bin:{os.environ['PATH']}"}
    script = unmount_disks([str(folder) for folder in folders], seconds)
    done = subprocess.run(["sh", "-eu", "-c", script], check=False, env=env, timeout=20, capture_output=True, text=True)
    asked = machine.folder / "asked"
    return done.returncode, done.stderr, asked.read_text().splitlines() if asked.exists() else []


def test_disks_are_flushed_and_unmounted(machine: Machine) -> None:
    """One that was never mounted has no folder, and is no error."""
    for name in ("sync", "umount", "sudo"):
        machine.stand_in(name, f'echo "{name} $*" >>{machine.folder}/asked')
    machine.where.mkdir(parents=True)
    assert (0, "", [f"sync -f {machine.where}"]) == unmounting(machine, machine.where, machine.folder / "none")
    (machine.folder / "mounted").touch()
    root = "" if os.geteuid() == 0 else "sudo -n "
    assert f"{root}umount {machine.where}" == unmounting(machine, machine.where)[2][-1]


def test_a_disk_that_cannot_be_flushed_is_not_unmounted(machine: Machine) -> None:
    """It says so; the others are gone on with."""
    machine.stand_in("sync", f'echo "sync $*" >>{machine.folder}/asked; [ "$2" != {machine.where} ]')
    other = machine.folder / "other"
    for folder in (machine.where, other):
        folder.mkdir(parents=True)
    code, said, asked = unmounting(machine, machine.where, other)
    assert (1, f"{machine.where} could not be flushed\n") == (code, said)
    assert [f"sync -f {machine.where}", f"sync -f {other}"] == asked


@pytest.mark.parametrize(
    ("words", "code"), [("target is busy", 1), ("must be superuser to unmount", 0), ("Operation not permitted", 0)]
)
def test_a_disk_in_use_is_said_and_the_folder_of_a_container_is_only_flushed(
    machine: Machine, words: str, code: int
) -> None:
    """A container may not unmount what was mounted from outside of it."""
    machine.stand_in("umount", f'echo "umount: {words}." >&2; exit 32')
    machine.stand_in("sudo", 'shift; exec "$@"')
    machine.where.mkdir(parents=True)
    (machine.folder / "mounted").touch()
    ended, said, _ = unmounting(machine, machine.where)
    assert code == ended
    assert (f"could not be unmounted: umount: {words}." in said) is bool(code)
