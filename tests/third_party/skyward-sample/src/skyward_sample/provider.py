"""
A cloud whose machines are directories of this machine, and whose list of machines is a file in each.
"""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from attrs import frozen

import skyward as sky
from skyward.provider import Cluster, Instance, LaunchRequest, LocalAddress, Offer, ProviderFacts, hookimpl


@frozen
class Room:
    """
    Say where the machines of one pool are.

    Args:
        directory: Path of the directory they are in.
    """

    directory: str


@frozen
class SampleCloud:
    """
    Rent machines that are this one.

    Args:
        directory: Where the machines live.
        price: What one costs on demand, in USD per hour.
    """

    directory: str
    price: float = 0.5

    @hookimpl
    def skyward_facts(self) -> ProviderFacts:
        """Tell what holds for this cloud."""
        return ProviderFacts(name="sample", ends_own_bill=True, billing_granularity_s=1.0, regions=("here",))

    @hookimpl
    async def skyward_preflight(self) -> None:
        """Refuse a place that cannot be."""
        if not self.directory:
            raise sky.ConfigError(f"directory must be the path of a directory, not {self.directory!r}.")

    @hookimpl
    async def skyward_offers(self) -> Sequence[Offer]:
        """Sell one kind of machine."""
        return [
            Offer(
                provider="sample",
                instance_type="sample.small",
                region="here",
                vcpus=2,
                memory_gb=4,
                disk_gb=10,
                on_demand_price=self.price,
            )
        ]

    @hookimpl
    async def skyward_open(self, cluster: Cluster) -> Room:
        """Make the directory that the pool's machines are in."""
        return Room(await asyncio.to_thread(_make_room, self.directory, cluster.pool_id))

    @hookimpl
    async def skyward_launch(self, request: LaunchRequest, infra: Room) -> Sequence[Instance]:
        """Rent a machine for each node; the same token finds the machine again that it rented before."""
        return await asyncio.gather(*(asyncio.to_thread(_rent, infra, request, node) for node in request.nodes))

    @hookimpl
    async def skyward_instances(self, infra: Room) -> Sequence[Instance]:
        """List the machines that are there."""
        return await asyncio.to_thread(_machines, infra)

    @hookimpl
    async def skyward_terminate(self, infra: Room, ids: Sequence[str]) -> None:
        """Remove machines; one that is gone already is no error."""
        for name in ids:
            await asyncio.to_thread(shutil.rmtree, f"{infra.directory}/{name}", ignore_errors=True)

    @hookimpl
    async def skyward_release(self, infra: Room) -> None:
        """Remove the pool's directory."""
        await asyncio.to_thread(shutil.rmtree, infra.directory, ignore_errors=True)


def _make_room(directory: str, pool_id: str) -> str:
    """Make the directory of a pool and return its path."""
    room = Path(directory).absolute() / pool_id
    room.mkdir(parents=True)
    return str(room)


def _rent(infra: Room, request: LaunchRequest, node: int) -> Instance:
    """Make a machine, which is a directory with a file that describes it."""
    offer = request.cluster.offer
    directory = Path(infra.directory) / f"{node}-{request.token}"
    directory.mkdir(exist_ok=True)
    row = {"node": node, "instance_type": offer.instance_type, "rate": offer.price(spot=False)}
    (directory / "machine.json").write_text(json.dumps(row))
    return _instance(directory)


def _machines(infra: Room) -> list[Instance]:
    """List the machines of a pool."""
    return [_instance(row.parent) for row in sorted(Path(infra.directory).glob("*/machine.json"))]


def _instance(directory: Path) -> Instance:
    """Describe a machine by what its file says."""
    row: dict[str, Any] = json.loads((directory / "machine.json").read_text())
    return Instance(
        id=directory.name,
        node=row["node"],
        provider="sample",
        address=LocalAddress(str(directory / "node")),
        instance_type=row["instance_type"],
        region="here",
        hourly_rate=row["rate"],
        on_demand_rate=row["rate"],
        ip="127.0.0.1",
        private_ip="127.0.0.1",
    )
