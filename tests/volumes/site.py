"""What asks the process that keeps volumes, as an agent does, and what it is told."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine
from pathlib import Path
from typing import Any

from skyward.node.volumes.keeper_process import KeeperProcess
from skyward.node.volumes.volume_order import VolumeOrder


class Site:
    """What a keeper is asked with, and what it tells."""

    def __init__(self, tmp_path: Path) -> None:
        self.notes: list[str] = []
        self.broken: list[str] = []
        self.folder = str(tmp_path / "keeper")
        self.tools = str(tmp_path / "tools")

    async def open(self, keeper: KeeperProcess, *orders: VolumeOrder) -> dict[str, Any]:
        """Ask for volumes."""
        dicts = [order.to_dict() for order in orders]
        question = {"do": "open", "orders": dicts, "folder": self.folder, "tools": self.tools, "packages": False}
        return await keeper.ask(question)

    @contextlib.asynccontextmanager
    async def keeping(self, *orders: VolumeOrder) -> AsyncIterator[KeeperProcess]:
        """Keep volumes, and take them away."""
        loop = asyncio.get_running_loop()
        keeper = KeeperProcess(loop, self.notes.append, self.broken.append)
        try:
            said = await self.open(keeper, *orders)
            assert "failed" not in said, said
            yield keeper
            await keeper.ask({"do": "close"})
        finally:
            keeper.close()
            await keeper.wait(30.0)


def run(work: Coroutine[Any, Any, Any]) -> Any:
    """Run a test's coroutine."""
    return asyncio.run(work)


async def refused(site: Site, *orders: VolumeOrder) -> dict[str, Any]:
    """Ask for volumes that cannot be had, and return the answer."""
    keeper = KeeperProcess(asyncio.get_running_loop(), site.notes.append, site.broken.append)
    try:
        said = await site.open(keeper, *orders)
        assert "failed" in said
        return said
    finally:
        keeper.close()
        await keeper.wait(30.0)
