"""Which volume is meant, whether a pool can have it, and the shell commands that mount it, run by a shell."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from skyward.errors import ConfigError
from skyward.plan.offers.cloud_disk import (
    CloudDisk,
    check_volume,
    chosen,
    mount_disk,
    mount_path,
    mount_point,
    mount_share,
    volume_name,
)
from tests.clouds.hosting import executable

DATA = CloudDisk(id="v-1", name="data", place="FIN-01")
TWIN = CloudDisk(id="v-2", name="data", place="FIN-02")
SHARED = CloudDisk(id="v-3", name="shared", place="FIN-01", shared=True)


@pytest.mark.parametrize(("wanted", "expected"), [("v-1", "v-1"), ("v-2", "v-2"), ("shared", "v-3"), ("v-3", "v-3")])
def test_a_volume_is_named_by_its_id_or_by_a_name_of_its_own(wanted: str, expected: str) -> None:
    """An id goes before a name."""
    assert expected == chosen([DATA, TWIN, SHARED], wanted, "Verda").id


@pytest.mark.parametrize(
    ("wanted", "volumes", "words"),
    [
        ("data", [DATA, TWIN], "several volumes 'data': v-1 in FIN-01, v-2 in FIN-02. Write the id of one."),
        ("dta", [DATA], "Verda has no volume 'dta'. Did you mean 'data'?"),
        ("v-9", [DATA], "Did you mean 'v-1'?"),
        ("other", [DATA, SHARED], "There are: 'data' (v-1), 'shared' (v-3)."),
        ("data", [], "There are none: make one first, a pool makes none."),
    ],
)
def test_what_no_volume_is_meant_by_is_refused(wanted: str, volumes: list[CloudDisk], words: str) -> None:
    """With what there is, and the nearest of it."""
    with pytest.raises(ConfigError) as refused:
        chosen(volumes, wanted, "Verda")
    assert words in str(refused.value)


def test_a_volume_is_for_machines_beside_it() -> None:
    """Where no place is asked for, its own is taken."""
    check_volume(DATA, "Verda")
    check_volume(DATA, "Verda", places=("FIN-02", "FIN-01"))
    for volume in (DATA, SHARED):
        with pytest.raises(ConfigError, match="is in FIN-01, and machines are asked for in FIN-02"):
            check_volume(volume, "Verda", places=("FIN-02",))


def test_a_volume_is_for_one_machine_unless_it_is_shared() -> None:
    """Neither for a second node, nor while another machine has it."""
    check_volume(DATA, "Verda", nodes=1)
    check_volume(SHARED, "Verda", nodes=8, holders=["i-1"])
    with pytest.raises(ConfigError, match=r"one machine at a time, and the pool may have 2 nodes\. Write nodes=1"):
        check_volume(DATA, "Verda", nodes=2)
    with pytest.raises(ConfigError, match=r"'data' \(v-1\) of Verda is attached to i-1"):
        check_volume(DATA, "Verda", holders=["i-1"])


@pytest.mark.parametrize(
    "path", ["data", "", "/", "/etc", "/mnt/../etc", "/mnt/a b", "/mnt/$HOME", "//x//y", "/a'b", 3]
)
def test_what_is_no_directory_for_a_volume_is_refused(path: Any) -> None:
    """Neither the system's, nor what a shell would read otherwise."""
    with pytest.raises(ConfigError, match="mount must"):
        mount_path(path)


def test_a_volume_is_found_below_mnt_by_its_name() -> None:
    """Unless the user says where, which he has to if the name is none for a directory."""
    assert "/mnt/data" == mount_point(DATA, None)
    assert "/workspace" == mount_point(DATA, mount_path("/workspace/"))
    assert "/mnt/v-4" == mount_point(CloudDisk(id="v-4", name="", place="x"), None)
    with pytest.raises(ConfigError, match='Write mount="/mnt/data"'):
        mount_point(CloudDisk(id="v-5", name="my data", place="x"), None)
    with pytest.raises(ConfigError, match="volume must not be blank"):
        volume_name(" ")


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
