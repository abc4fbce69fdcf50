"""The disks that the user gives a pool: found, checked before anything is rented, awaited, mounted."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Generic

from attrs import field, frozen

from skyward.errors import ProvisionError
from skyward.model.spec.volumes import Disk
from skyward.plan.offers.cloud_disk import SomeDisk, check_disk, check_together, disk_folder, disks_of

__all__ = ["Disks", "until_free"]

DETACHING = 60.0
"""Seconds in which a disk is free that a machine had which has ended."""

_FIRST, _LONGEST = 0.25, 3.0


async def until_free(look: Callable[[], Awaitable[SomeDisk]], provider: str, within: float = DETACHING) -> SomeDisk:
    """
    Return a disk when a machine can have it.

    Args:
        look: Asks for it.
        provider: The provider's name, for errors.
        within: Seconds that are waited.

    Raises:
        ProvisionError: If another machine still has it.

    >>> from skyward.plan.offers.cloud_disk import CloudDisk
    >>> async def look():
    ...     return CloudDisk(id="v1", name="data", place="here")
    >>> asyncio.run(until_free(look, "verda")).id
    'v1'
    """
    give_up_at, wait = time.monotonic() + within, _FIRST
    while True:
        disk = await look()
        if disk.shared or not disk.holders:
            return disk
        if time.monotonic() + wait > give_up_at:
            raise ProvisionError(
                f"The disk {disk.title} is still attached to {', '.join(disk.holders)} after {within:g} s.",
                provider=provider,
                hint="Detach it, or end that machine.",
            )
        await asyncio.sleep(wait * random.uniform(0.8, 1.2))
        wait = min(_LONGEST, 2 * wait)


@frozen(kw_only=True)
class Disks(Generic[SomeDisk]):
    """
    Find the disks that a pool asks a provider for; without any, nothing is asked.

    Args:
        provider: The provider's name, for errors.
        title: The company's own name, such as `"DigitalOcean"`.
        find: Looks for a disk by the id or name that the user wrote.
        wanted: What the user wrote as `volumes=`, of which only disks count.

    >>> from skyward.plan.offers.cloud_disk import CloudDisk
    >>> async def find(name):
    ...     return CloudDisk(id="v1", name=name, place="here")
    >>> asyncio.run(Disks(provider="shed", title="Shed", find=find, wanted=(Disk("data"),)).places(()))
    ('here',)
    """

    provider: str
    title: str
    find: Callable[[str], Awaitable[SomeDisk]]
    wanted: tuple[Disk, ...] = field(converter=disks_of)

    async def mounts(self) -> tuple[tuple[SomeDisk, str], ...]:
        """
        Return the disks, each with the folder at which nodes find it.

        Raises:
            ConfigError: If there is no such disk, or one machine cannot have all of them.
        """
        found = tuple([(await self.find(one.name), disk_folder(one)) for one in self.wanted])
        check_together([disk for disk, _ in found], self.title)
        return found

    async def places(self, otherwise: tuple[str, ...]) -> tuple[str, ...]:
        """
        Return where machines can be rented: in the disks' place, whatever else is wanted.

        Args:
            otherwise: The places that are wanted where there are no disks.

        Raises:
            ConfigError: If there is no such disk, or one machine cannot have all of them.
        """
        found = await self.mounts()
        return (found[0][0].place,) if found else otherwise

    async def check(
        self,
        places: Sequence[str],
        nodes: int = 1,
        living: Callable[[Sequence[str]], Awaitable[Sequence[str]]] | None = None,
    ) -> None:
        """
        Refuse disks that a pool cannot have.

        Args:
            places: The places in which the user wants machines; empty for any.
            nodes: How many nodes there may be.
            living: Returns which of a disk's holders exist; None where any machine may have it.

        Raises:
            ConfigError: If there is none, it is elsewhere, or it is for one machine and cannot be for this pool's.
        """
        for disk, _ in await self.mounts():
            holders = await living(disk.holders) if living is not None else ()
            check_disk(disk, self.title, places=places, nodes=nodes, holders=holders)

    async def free(self, nodes: int) -> tuple[tuple[SomeDisk, str], ...]:
        """
        Return the disks as `mounts` does, when machines can have them: clouds detach them a moment after a machine.

        Args:
            nodes: How many machines are to have them; none needs no disk.

        Raises:
            ConfigError: If one is for one machine, and there are several.
            ProvisionError: If another machine still has one.
        """
        found = []
        for one in self.wanted if nodes else ():
            disk = await until_free(partial(self.find, one.name), self.provider)
            check_disk(disk, self.title, nodes=nodes)
            found.append((disk, disk_folder(one)))
        return tuple(found)
