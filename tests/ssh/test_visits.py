"""Machines that were looked at stay logged in to, for a while, and for one node."""

from __future__ import annotations

import asyncio
from typing import Any

from skyward.model.instances.machine import SSHAddress
from skyward.ssh.visits import KEPT, KeptVisit, Visit, keep, keeping, visit
from tests.simulated.loop import VirtualLoop
from tests.ssh.test_shell import local, machine

HERE, THERE = SSHAddress(host="10.0.0.1"), SSHAddress(host="10.0.0.2")


def run_visits(test: Any) -> None:
    """Run a test with two visits of a real server."""

    async def scenario() -> None:
        async with machine(local) as one, machine(local) as other:
            await test(await visit(one, timeout=20.0), await visit(other, timeout=20.0))
        # The shells end with their connections.
        if left := asyncio.all_tasks() - {asyncio.current_task()}:
            await asyncio.wait(left, timeout=20.0)

    asyncio.run(scenario())


def test_a_visit_is_taken_once() -> None:
    """And by the address that it was made of."""

    async def test(one: Visit, other: Visit) -> None:
        kept = KeptVisit()
        with keeping(kept):
            keep(HERE, one)
        assert (None, one, None) == (kept.take(THERE), kept.take(HERE), kept.take(HERE))
        await kept.close()
        assert not one.connection.is_closed()
        assert one.found.cache

    run_visits(test)


def test_a_visit_that_nothing_keeps_is_over() -> None:
    """As when offers are listed and no pool is opened; another one of the same machine takes its place."""

    async def test(one: Visit, other: Visit) -> None:
        keep(HERE, one)
        await one.connection.wait_closed()
        kept = KeptVisit()
        kept.put(HERE, other)
        await kept.close()
        assert other.connection.is_closed()

    run_visits(test)


def test_a_connection_that_was_lost_is_not_given() -> None:
    """The machine is dialled again."""

    async def test(one: Visit, other: Visit) -> None:
        kept = KeptVisit()
        kept.put(HERE, one)
        one.connection.abort()
        await one.connection.wait_closed()
        assert kept.take(HERE) is None

    run_visits(test)


class Connection:
    """What `Kept` needs of a connection, on a clock that is not the world's."""

    closed = False

    def is_closed(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True


def test_a_visit_is_kept_for_a_while() -> None:
    """What was found there may be true no longer."""
    loop = VirtualLoop(sockets=False)

    async def scenario() -> None:
        kept, one, connection = KeptVisit(), object.__new__(Visit), Connection()
        object.__setattr__(one, "connection", connection)
        kept.put(HERE, one)
        await asyncio.sleep(KEPT - 1.0)
        assert not connection.closed
        await asyncio.sleep(2.0)
        assert connection.closed
        assert kept.take(HERE) is None

    try:
        loop.run_until_complete(scenario())
    finally:
        loop.close()
