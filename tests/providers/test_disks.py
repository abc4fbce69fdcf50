"""The volume that the user gives a pool."""

from __future__ import annotations

import asyncio

import pytest

from skyward.errors import ConfigError
from skyward.plan.offers.cloud_disk import CloudDisk
from skyward.providers.disks import Mount

DATA = CloudDisk(id="v1", name="data", place="here", holders=("i-1",))


def mount(wanted: str | None = "data", path: str | None = None, volume: CloudDisk = DATA) -> Mount[CloudDisk]:
    """Return the mount of a cloud that has one volume."""

    async def find(name: str) -> CloudDisk:
        assert name == wanted
        return volume

    return Mount(provider="shed", title="Shed", find=find, wanted=wanted, path=path)


def test_without_a_volume_nothing_is_asked() -> None:
    """Machines are rented wherever they are wanted."""
    none = mount(None)
    assert {} == asyncio.run(none.paths())
    assert ("there",) == asyncio.run(none.places(("there",)))
    assert asyncio.run(none.free(1)) is None
    asyncio.run(none.check(("there",)))


def test_machines_are_rented_where_the_volume_is_and_find_it_by_its_path() -> None:
    """Below /mnt by its name, unless the user says otherwise."""
    assert ("here",) == asyncio.run(mount().places(()))
    assert {"v1": "/mnt/data"} == asyncio.run(mount().paths())
    assert {"v1": "/data"} == asyncio.run(mount(path="/data").paths())


def test_a_volume_that_the_pool_cannot_have_is_refused() -> None:
    """It is elsewhere, for one machine, or another machine has it."""

    async def living(ids: object) -> list[str]:
        return ["i-1"]

    with pytest.raises(ConfigError, match="is in here"):
        asyncio.run(mount().check(("there",)))
    with pytest.raises(ConfigError, match="may have 2 nodes"):
        asyncio.run(mount().check((), 2))
    with pytest.raises(ConfigError, match="is attached to i-1"):
        asyncio.run(mount().check((), 1, living))
    # Holders are asked about where one machine alone can have it.
    asyncio.run(mount().check(("here",)))


def test_no_machine_needs_no_volume() -> None:
    """All nodes may be there already."""
    assert asyncio.run(mount().free(0)) is None
