"""The volume that the user gives a pool: found, checked before anything is rented, awaited, mounted."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic

from attrs import frozen

from skyward.errors import ProvisionError
from skyward.plan.offers.cloud_disk import SomeDisk, check_volume, mount_point

__all__ = ["Mount", "until_free"]

DETACHING = 60.0
"""Seconds in which a volume is free that a machine had which has ended."""

_FIRST, _LONGEST = 0.25, 3.0


async def until_free(look: Callable[[], Awaitable[SomeDisk]], provider: str, within: float = DETACHING) -> SomeDisk:
    """
    Return a volume when a machine can have it.

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
        volume = await look()
        if volume.shared or not volume.holders:
            return volume
        if time.monotonic() + wait > give_up_at:
            raise ProvisionError(
                f"The volume {volume.title} is still attached to {', '.join(volume.holders)} after {within:g} s.",
                provider=provider,
                hint="Detach it, or end that machine.",
            )
        await asyncio.sleep(wait * random.uniform(0.8, 1.2))
        wait = min(_LONGEST, 2 * wait)


@frozen(kw_only=True)
class Mount(Generic[SomeDisk]):
    """
    Say which volume the machines of a provider get, and where they find it; one without a volume does nothing.

    Args:
        provider: The provider's name, for errors.
        title: The company's own name, such as `"DigitalOcean"`.
        find: Looks for the volume by the id or name that the user wrote.
        wanted: That id or name; None for no volume.
        path: The directory that the user wrote; None for one below `/mnt` by the volume's name.

    >>> from skyward.plan.offers.cloud_disk import CloudDisk
    >>> async def find(wanted):
    ...     return CloudDisk(id="v1", name=wanted, place="here")
    >>> asyncio.run(Mount(provider="shed", title="Shed", find=find, wanted="data").paths())
    {'v1': '/mnt/data'}
    """

    provider: str
    title: str
    find: Callable[[str], Awaitable[SomeDisk]]
    wanted: str | None
    path: str | None = None

    async def paths(self) -> dict[str, str]:
        """
        Return where the volume is found, by its id; empty without one.

        Raises:
            ConfigError: If there is no such volume, or no directory can have its name.
        """
        if self.wanted is None:
            return {}
        volume = await self.find(self.wanted)
        return {volume.id: mount_point(volume, self.path)}

    async def places(self, otherwise: tuple[str, ...]) -> tuple[str, ...]:
        """
        Return where machines can be rented: in the volume's place, whatever else is wanted.

        Args:
            otherwise: The places that are wanted where there is no volume.

        Raises:
            ConfigError: If there is no such volume.
        """
        return otherwise if self.wanted is None else ((await self.find(self.wanted)).place,)

    async def check(
        self,
        places: Sequence[str],
        nodes: int = 1,
        living: Callable[[Sequence[str]], Awaitable[Sequence[str]]] | None = None,
    ) -> None:
        """
        Refuse a volume that a pool cannot have.

        Args:
            places: The places in which the user wants machines; empty for any.
            nodes: How many nodes there may be.
            living: Returns which of the volume's holders exist; None where any machine may have it.

        Raises:
            ConfigError: If there is none, it is elsewhere, or it is for one machine and cannot be for this pool's.
        """
        if self.wanted is None:
            return
        volume = await self.find(self.wanted)
        holders = await living(volume.holders) if living is not None else ()
        check_volume(volume, self.title, places=places, nodes=nodes, holders=holders)
        mount_point(volume, self.path)

    async def free(self, nodes: int) -> SomeDisk | None:
        """
        Return the volume when a machine can have it: clouds detach it a moment after a machine has ended.

        Args:
            nodes: How many machines are to have it; none needs no volume.

        Raises:
            ConfigError: If it is for one machine, and there are several.
            ProvisionError: If another machine still has it.
        """
        wanted = self.wanted
        if wanted is None or not nodes:
            return None
        volume = await until_free(lambda: self.find(wanted), self.provider)
        check_volume(volume, self.title, nodes=nodes)
        return volume
