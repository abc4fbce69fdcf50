"""A folder in which servers are started, and a client of the protocol that talks to one over its input and output."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

from skyward.testing import Rehearsal

T = TypeVar("T")
PATIENCE = 60.0
"""Seconds that something may take to come true."""

THIRD = """
import os
from skyward import testing
from skyward.hookspecs import hookimpl

def Rehearsal():
    return testing.Rehearsal(directory=os.environ["BOOKS"])

@hookimpl
def skyward_providers():
    return {"Rehearsal": Rehearsal}
"""


class Desk:
    """A folder with a provider that rehearses, and a directory for state of its own."""

    def __init__(self, folder: Path, books: str) -> None:
        self.folder = folder
        self.cloud = Rehearsal(directory=books)
        (folder / "third_party_of_agents").mkdir()
        (folder / "third_party_of_agents" / "__init__.py").write_text(THIRD)
        facts = folder / "third_party_of_agents-1.0.dist-info"
        facts.mkdir()
        (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: third-party-of-agents\nVersion: 1.0\n")
        (facts / "entry_points.txt").write_text("[skyward]\nagents = third_party_of_agents\n")
        self.env = {
            **os.environ,
            "PYTHONPATH": str(folder),
            "SKYWARD_STATE": str(folder / "state"),
            "HOME": str(folder),
            "BOOKS": books,
        }

    def server(self, *words: str) -> StdioServerParameters:
        """Say how a server is started."""
        return StdioServerParameters(
            command=sys.executable, args=["-m", "skyward_mcp", *words], env=self.env, cwd=self.folder
        )

    @asynccontextmanager
    async def client(self, *words: str) -> AsyncIterator[Agent]:
        """Talk to a server; its input is closed in the end, and it is killed two seconds later."""
        async with stdio_client(self.server(*words)) as (read, write), ClientSession(read, write) as session:
            await session.initialize()
            yield Agent(session)


class Agent:
    """A client of the protocol that calls tools."""

    def __init__(self, session: ClientSession) -> None:
        self.session = session

    async def does(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool, and give what it answers."""
        answer = await self.session.call_tool(tool, arguments)
        assert not answer.is_error, answer.content
        content: dict[str, Any] | None = answer.structured_content
        assert content is not None
        return content

    async def is_refused(self, tool: str, **arguments: Any) -> str:
        """Call a tool that refuses, and give what it says."""
        answer = await self.session.call_tool(tool, arguments)
        assert answer.is_error, answer.content
        [said] = answer.content
        return str(said.text)  # type: ignore[union-attr]

    async def until(self, pool: str, *states: str) -> dict[str, Any]:
        """Ask for a pool's status until it is in one of some states, and give that."""
        deadline = time.monotonic() + PATIENCE
        while (status := await self.does("status", pool=pool))["state"] not in states:
            assert time.monotonic() < deadline, (status, (await self.does("logs", pool=pool))["lines"])
            await asyncio.sleep(0.05)
        return status

    async def printed(self, pool: str, line: str) -> list[str]:
        """Read a pool's lines until one is there, and give all of them."""
        lines: list[str] = []
        known, deadline = 0, time.monotonic() + PATIENCE
        while line not in lines:
            assert time.monotonic() < deadline, lines
            page = await self.does("logs", pool=pool, after=known, wait=1.0)
            lines += page["lines"]
            known = page["next"]
        return lines


def talk(conversation: Callable[[], Awaitable[T]]) -> T:
    """Run a conversation to its end."""

    async def whole() -> T:
        async with asyncio.timeout(2 * PATIENCE):
            return await conversation()

    return asyncio.run(whole())
