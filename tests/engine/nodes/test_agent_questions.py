"""Questions to an agent: each has its own answer, and none waits for a node that is lost."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from skyward.engine.nodes.agent_questions import AgentQuestions
from skyward.engine.nodes.node_link import NodeLink
from skyward.errors import ProvisionError


class Line:
    """Note what is asked."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []

    def ask(self, question: dict[str, Any]) -> None:
        """Take a question."""
        self.asked.append(question)


def test_answers_find_their_questions_in_any_order() -> None:
    """One that nothing waits for is dropped."""
    line, questions = Line(), AgentQuestions("node 3", 3)

    async def scenario() -> list[dict[str, Any]]:
        waiting = [asyncio.ensure_future(questions.ask(cast("NodeLink", line), {"what": what})) for what in "ab"]
        await asyncio.sleep(0)
        for number in (2, 7, 1):
            questions.answered({"number": number, "said": number})
        return await asyncio.gather(*waiting)

    assert [1, 2] == [answer["said"] for answer in asyncio.run(scenario())]
    assert [("a", 1), ("b", 2)] == [(question["what"], question["number"]) for question in line.asked]


def test_a_lost_node_answers_nothing() -> None:
    """Neither what waits nor what is asked later."""
    questions = AgentQuestions("node 3", 3)

    async def scenario() -> None:
        waiting = asyncio.ensure_future(questions.ask(cast("NodeLink", Line()), {}))
        await asyncio.sleep(0)
        questions.close()
        for asked in (waiting, questions.ask(cast("NodeLink", Line()), {}), questions.ask(None, {})):
            with pytest.raises(ProvisionError, match="node 3 was lost before it answered"):
                await asked

    asyncio.run(scenario())
