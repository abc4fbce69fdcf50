"""The disks that the user gives a pool."""

from __future__ import annotations

import asyncio

import pytest

from skyward.errors import ConfigError
from skyward.model.spec.volumes import Disk
from skyward.plan.offers.cloud_disk import CloudDisk
from skyward.providers.disks import Disks

DATA = CloudDisk(id="v1", name="data", place="here", holders=("i-1",))
SHARED = CloudDisk(id="v2", name="shared", place="here", shared=True)
THERE = CloudDisk(id="v3", name="there", place="there")


def disks(*wanted: Disk) -> Disks[CloudDisk]:
    """Return the disks of a cloud that has three."""

    async def find(name: str) -> CloudDisk:
        return {disk.name: disk for disk in (DATA, SHARED, THERE)}[name]

    return Disks(provider="shed", title="Shed", find=find, wanted=wanted)


def test_without_disks_nothing_is_asked() -> None:
    """Machines are rented wherever they are wanted."""
    none = disks()
    assert () == asyncio.run(none.mounts())
    assert ("there",) == asyncio.run(none.places(("there",)))
    assert () == asyncio.run(none.free(1))
    asyncio.run(none.check(("there",)))


def test_machines_are_rented_where_the_disks_are_and_find_them_in_their_folders() -> None:
    """Below /mnt by their names, unless the user says otherwise."""
    both = disks(Disk("data"), Disk("shared", mount="/data"))
    assert ("here",) == asyncio.run(both.places(()))
    assert ((DATA, "/mnt/data"), (SHARED, "/data")) == asyncio.run(both.mounts())


def test_disks_that_the_pool_cannot_have_are_refused() -> None:
    """One is elsewhere, for one machine, or another machine has it; or they are in two places."""

    async def living(ids: object) -> list[str]:
        return ["i-1"]

    one = disks(Disk("shared"), Disk("data"))
    with pytest.raises(ConfigError, match="is in here"):
        asyncio.run(one.check(("there",)))
    with pytest.raises(ConfigError, match=r"'data' .* may have 2 nodes"):
        asyncio.run(one.check((), 2))
    with pytest.raises(ConfigError, match=r"'data' .* is attached to i-1"):
        asyncio.run(one.check((), 1, living))
    with pytest.raises(ConfigError, match="has disks of one place"):
        asyncio.run(disks(Disk("data"), Disk("there")).check(()))
    # Holders are asked about where one machine alone can have it.
    asyncio.run(one.check(("here",)))


def test_no_machine_needs_no_disk() -> None:
    """All nodes may be there already."""
    assert () == asyncio.run(disks(Disk("data")).free(0))
    assert ((SHARED, "/mnt/shared"),) == asyncio.run(disks(Disk("shared")).free(2))
