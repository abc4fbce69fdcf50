"""Nodes of one job meet when they become ready: real sockets, and what may happen to a node meanwhile."""

from __future__ import annotations

import asyncio
import socket
from contextlib import closing
from typing import Any

from skyward.engine.nodes.reachability import Reaching
from skyward.errors import ProvisionError
from skyward.model.instances.instance import InstanceInfo
from skyward.node.agent.neighbours import Neighbours


class Node:
    """Stand for a node: its agent's part answers, its address is one of this machine's."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.leaving = self.lost = self.walled = self.silent = False
        self.where = f"node {index}"
        self.info = InstanceInfo(node=index, private_ip=f"127.0.0.{index + 1}")
        self.asked: list[Any] = []
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self.part = Neighbours(
            asyncio.get_running_loop(),
            lambda name: None,
            lambda answer: self._answers[answer["number"]].set_result(answer),
        )

    async def ask(self, question: dict[str, Any]) -> dict[str, Any]:
        """Answer like an agent; behind a wall, with a port at which nothing answers."""
        if self.lost:
            raise ProvisionError(f"{self.where} was lost before it answered.", node=self.index)
        if self.silent:
            await asyncio.Event().wait()
        self.asked += question.get("reach", [])
        if self.walled and "listen" in question:
            with closing(socket.socket()) as sock:
                sock.bind(("127.0.0.1", 0))
                return {"port": sock.getsockname()[1]}
        number = len(self._answers)
        self._answers[number] = asyncio.get_running_loop().create_future()
        self.part.ask({"number": number, **question})
        return await self._answers[number]


async def _meet(reaching: Reaching, *nodes: Any) -> list[BaseException | None]:
    return [*await asyncio.gather(*(reaching.meet(node) for node in nodes), return_exceptions=True)]


async def _made(count: int) -> list[Node]:
    return [Node(index) for index in range(count)]


def test_the_first_one_is_asked_nothing() -> None:
    """There is no other node to meet."""

    async def look() -> list[Any]:
        [node] = await _made(1)
        assert [None] == await _meet(Reaching(), node)
        return node.asked

    assert [] == asyncio.run(look())


def test_those_that_come_at_once_meet_each_other() -> None:
    """Each pair is asked, both ways."""

    async def look() -> list[int]:
        nodes = await _made(4)
        assert [None] * 4 == await _meet(Reaching(), *nodes)
        for node in nodes:
            node.part.close()
        return [len(node.asked) for node in nodes]

    assert [3, 3, 3, 3] == asyncio.run(look())


def test_one_behind_a_wall_is_refused_and_those_after_it_do_not_meet_it() -> None:
    """The error says who does not reach whom, where, and what to do."""

    async def look() -> str:
        first, walled, third = await _made(3)
        walled.walled = True
        reaching = Reaching()
        assert [None] == await _meet(reaching, first)
        [error] = await _meet(reaching, walled)
        assert [None] == await _meet(reaching, third)
        assert 1 == len(third.asked)
        for node in (first, walled, third):
            node.part.close()
        assert isinstance(error, ProvisionError)
        assert 1 == error.node
        return str(error)

    said = asyncio.run(look())
    assert "node 0 cannot reach node 1 at 127.0.0.2:" in said
    assert "Connection refused" in said
    assert "open the firewall between the nodes" in said


def test_one_that_is_lost_meanwhile_is_no_fault_of_the_others() -> None:
    """It is itself reported as lost."""

    async def look() -> list[BaseException | None]:
        first, second, third = await _made(3)
        reaching = Reaching()
        assert [None, None] == await _meet(reaching, first, second)
        first.lost = True
        assert [None] == await _meet(reaching, third)
        third.leaving, second.lost = True, True
        found = await _meet(reaching, second)
        for node in (first, second, third):
            node.part.close()
        return found

    [error] = asyncio.run(look())
    assert isinstance(error, ProvisionError)
    assert "node 1 was lost" in str(error)


def test_one_that_does_not_answer_is_not_waited_for_in_vain() -> None:
    """The limit has a sentence of its own."""

    async def look() -> str:
        first, second = await _made(2)
        second.silent = True
        reaching = Reaching(patience=0.1)
        assert [None] == await _meet(reaching, first)
        [error] = await _meet(reaching, second)
        first.part.close()
        return str(error)

    assert "node 1 and the others did not say within 0.1 s whether they can meet." == asyncio.run(look())


def test_a_network_that_breaks_apart_is_told_once() -> None:
    """The node that does not reach the next one any more says so, however often it is looked at."""

    async def look() -> list[tuple[int, str]]:
        told: list[tuple[int, str]] = []
        reaching = Reaching(report=lambda node, sentence: told.append((node.index, sentence)), every=0.01)
        first, second = await _made(2)
        try:
            await _meet(reaching, first)
            await _meet(reaching, second)
            second.walled = True
            async with asyncio.timeout(20):
                while len(first.asked) < 5:  # noqa: ASYNC110  # what is waited for counts questions
                    await asyncio.sleep(0.01)
        finally:
            reaching.close()
        return told

    [(index, sentence)] = asyncio.run(look())
    assert 0 == index
    assert "node 0 cannot reach node 1 at 127.0.0.2:" in sentence
