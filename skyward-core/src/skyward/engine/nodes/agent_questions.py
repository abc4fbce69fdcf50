"""Questions that a node's agent is asked, each answered once, in whatever order."""

from __future__ import annotations

import asyncio
from typing import Any

from skyward.engine.nodes.node_link import NodeLink
from skyward.errors import ProvisionError

__all__ = ["AgentQuestions"]


class AgentQuestions:
    """
    Hold the questions that wait for an answer of one agent.

    Args:
        where: What errors call its node.
        index: The node's place in the pool.
    """

    def __init__(self, where: str, index: int) -> None:
        self._where = where
        self._index = index
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._asked = 0
        self._closed = False

    async def ask(self, link: NodeLink | None, question: dict[str, Any]) -> dict[str, Any]:
        """
        Ask the agent something.

        Args:
            link: The link to it; None where there is none yet.
            question: What `node/agent/neighbours.py` answers.

        Raises:
            ProvisionError: If the node is lost first.
        """
        if link is None or self._closed:
            raise self._silent()
        self._asked += 1
        number = self._asked
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        try:
            link.ask({"number": number, **question})
            return await answer
        finally:
            del self._waiting[number]

    def answered(self, answer: dict[str, Any]) -> None:
        """Take an answer, and hand it to what waits for it."""
        waiting = self._waiting.get(int(answer["number"]))
        if waiting is not None and not waiting.done():
            waiting.set_result(answer)

    def close(self) -> None:
        """Close: all that waits fails, because the node is lost or leaves."""
        self._closed = True
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(self._silent())
                waiting.exception()

    def _silent(self) -> ProvisionError:
        return ProvisionError(f"{self._where} was lost before it answered.", node=self._index)
