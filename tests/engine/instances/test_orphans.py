"""Orphaned machines: billed until they are gone; those of a launch without an answer are looked for longer."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from skyward.engine.instances.orphans import LATE, Orphans
from skyward.hookspecs import Instance, InstanceState
from skyward.model.instances.tags import Tags
from tests.simulated.loop import VirtualLoop


class Books:
    """Be a meter and the regions: write down what is counted and ended."""

    def __init__(self) -> None:
        self.billed: dict[str, float | None] = {}
        self.gone: list[str] = []
        self.error: Exception | None = None

    def orphaned(self, machine: Instance, rate: float | None) -> None:
        """Count a machine."""
        self.billed.setdefault(machine.id, rate)

    def orphans_ended(self, provider: str, ids: Any) -> None:
        """Count it no more."""
        self.gone += sorted(ids)

    async def end_anywhere(self, ids: Any) -> None:
        """End machines, or fail."""
        if self.error is not None:
            raise self.error


def machine(name: str, *, token: str = "t", state: InstanceState = InstanceState.RUNNING) -> Instance:
    """List a machine."""
    tags = Tags(pool_id="a1", pool_name="pool", token=token)
    return Instance(id=name, node=0, provider="cloud", state=state, tags=tags)


@pytest.fixture
def books() -> Books:
    """Empty books."""
    return Books()


@pytest.fixture
def orphans(books: Books) -> Orphans:
    """Count in them."""
    return Orphans("cloud", books, books)  # type: ignore[arg-type]


def test_they_cost_what_was_asked_for(books: Books, orphans: Orphans) -> None:
    """By the token of the request; what no request asked for at a price that the list says."""
    orphans.asked("t", 0.5)
    orphans.count([machine("a"), machine("b", token="other")], ["a", "b"])
    assert {"a": 0.5, "b": None} == books.billed


def test_those_that_are_gone_are_counted_no_more(books: Books, orphans: Orphans) -> None:
    """Because they are listed as ended, or not at all; once."""
    orphans.count([machine("a"), machine("b"), machine("c")], ["a", "b", "c"])
    orphans.count([machine("a"), machine("b", state=InstanceState.ENDED)], ["a"])
    assert ["b", "c"] == books.gone
    orphans.count([machine("a")], ["a"])
    assert ["b", "c"] == books.gone


def test_one_that_became_a_node_s_is_not_taken_for_gone(books: Books, orphans: Orphans) -> None:
    """A late answer gave it a node."""
    orphans.count([machine("a")], ["a"])
    orphans.count([machine("a")], [])
    assert [] == books.gone


def test_they_are_counted_until_their_end_is_confirmed(books: Books, orphans: Orphans) -> None:
    """Not only until it was asked for."""
    books.error = ConnectionResetError()
    with pytest.raises(ConnectionResetError):
        asyncio.run(orphans.end(["a"]))
    assert [] == books.gone
    books.error = None
    asyncio.run(orphans.end(["a"]))
    assert ["a"] == books.gone


@pytest.mark.parametrize(("since", "looks"), [(None, 1), (LATE + 1.0, 1), (0.0, 5), (LATE - 1.0, 2)])
def test_a_lost_answer_has_a_list_looked_at_for_a_while(orphans: Orphans, since: float | None, looks: int) -> None:
    """Not where the launch was long ago: the machines are listed by now."""
    loop = VirtualLoop(sockets=False)

    async def look() -> int:
        if since is not None:
            orphans.unanswered()
            await asyncio.sleep(since)
        return len([None async for _ in orphans.looks()])

    try:
        assert looks == loop.run_until_complete(look())
    finally:
        loop.close()
