"""What an agent has to do with volumes: it passes the client's questions on to the process that keeps them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import Any

from skyward.errors import SkywardError
from skyward.link.frames import Kind, encode_json
from skyward.node.agent.line_flow import Lines
from skyward.node.volumes.keeper_process import KeeperProcess

__all__ = ["AgentVolumes"]


class AgentVolumes:
    """
    Answer the client's questions about the node's volumes.

    Args:
        loop: The agent's loop.
        directory: The node's directory; what volumes need is beside it, because it may be removed before they end.
        tell: Sends a frame to the client.
        lines: Returns what takes lines for the user.
        broken: Called with the reason when the node cannot go on.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        directory: str,
        tell: Callable[[bytes], None],
        lines: Callable[[], Lines],
        broken: Callable[[str], None],
    ) -> None:
        self._loop = loop
        self._directory = directory
        self._tell = tell
        self._lines = lines
        self._broken = broken
        self._keeper: KeeperProcess | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def ask(self, question: dict[str, Any]) -> bool:
        """
        Begin to answer a question, and return whether it is about volumes.

        `volumes` is what the process that keeps them is asked.

        Args:
            question: The question, with its `number`, which its answer repeats.
        """
        if "volumes" not in question:
            return False
        task = self._loop.create_task(self._answer(int(question["number"]), question["volumes"]))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return True

    def reaped(self, pid: int, status: int) -> None:
        """Record that a child of the agent ended."""
        if self._keeper is not None:
            self._keeper.reaped(pid)

    def close(self) -> None:
        """Leave the volumes to the process that keeps them, which takes them away."""
        for task in self._tasks:
            task.cancel()
        if self._keeper is not None:
            self._keeper.close()

    async def _answer(self, number: int, asked: dict[str, Any]) -> None:
        if self._keeper is None:
            self._keeper = KeeperProcess(self._loop, lambda text: self._lines().note(text), self._broken)
        if asked["do"] == "open":
            cache = os.path.dirname(os.path.dirname(self._directory))
            asked = {**asked, "tools": os.path.join(cache, "tools"), "folder": f"{self._directory}.volumes"}
        try:
            said = await self._keeper.ask(asked)
        except (SkywardError, OSError) as error:
            said = {"failed": str(error), "kind": "ProvisionError"}
        self._tell(encode_json(Kind.ANSWER, {**said, "number": number}))
