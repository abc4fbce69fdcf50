"""A pool with a lease goes on without its server, and the next one has it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hosts import hosts
from tests.mcp.desk import Desk, talk

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

GATED = """
import pathlib, sys, time
print("begins", flush=True)
while not pathlib.Path(sys.argv[1]).exists():
    time.sleep(0.02)
print("ends", flush=True)
sys.exit(4)
"""


@pytest.fixture
def own(desk: Desk, tmp_path: Path) -> Iterator[Desk]:
    """Give a desk whose skyward.toml names a host."""
    with hosts(1) as ((host,), key):
        (tmp_path / "skyward.toml").write_text(
            f'[pools.box]\nprovider = {{ type = "SSH", hosts = ["{host.address}:{host.port}"], key = "{key}", '
            f'known_hosts = "{tmp_path / "known"}" }}\nttl = 60\n'
        )
        yield desk


def test_a_pool_with_a_lease_is_gone_on_with_by_the_next_server(own: Desk, tmp_path: Path) -> None:
    """Its lines and its exit code are that one's, and its grant counts until it is over."""
    gate = tmp_path / "gate"

    async def first() -> str:
        async with own.client("--budget", "10", "--lease", "90") as agent:
            said = await agent.is_refused("start", pool="box", script=GATED, lease=100)
            assert "lease must be between 0 and 90 seconds, not 100" in said
            started = await agent.does("start", pool="box", script=GATED, args=[str(gate)], lease=80, budget=4)
            await agent.printed(started["pool"], "node 0: begins")
            return str(started["pool"])

    pool = talk(first)

    async def second() -> None:
        async with own.client("--budget", "10") as agent:
            status = await agent.does("status")
            [left] = status["pools"]
            assert (pool, "detached", 6.0) == (left["pool"], left["state"], status["left"])
            assert "$6.00 is left" in await agent.is_refused("start", pool="box", script="1", budget=7)
            await agent.until(pool, "open")
            gate.touch()
            await agent.printed(pool, "node 0: ends")
            over = await agent.until(pool, "over", "failed")
            assert [4] == [script.get("exit_code") for script in over["scripts"]]

    talk(second)

    async def third() -> None:
        async with own.client("--budget", "10") as agent:
            assert [] == (await agent.does("status"))["pools"]
            assert f"no pool '{pool}'" in await agent.is_refused("end", pool=pool)

    talk(third)


def test_one_that_was_left_is_ended(own: Desk, tmp_path: Path) -> None:
    """Whatever it runs."""

    async def first() -> str:
        async with own.client("--budget", "10", "--lease", "90") as agent:
            started = await agent.does("start", pool="box", script=GATED, args=[str(tmp_path / "never")], lease=80)
            await agent.printed(started["pool"], "node 0: begins")
            return str(started["pool"])

    pool = talk(first)

    async def second() -> None:
        async with own.client("--budget", "20") as agent:
            assert "over" == (await agent.does("end", pool=pool))["state"]
            assert [] == [one for one in (await agent.does("status"))["pools"] if one["state"] == "detached"]

    talk(second)


def test_one_whose_server_was_killed_goes_on(own: Desk, tmp_path: Path) -> None:
    """It was written down before it was opened, and its lease begins when the server dies."""
    gate = tmp_path / "gate"

    async def first() -> str:
        async with own.client("--budget", "10", "--lease", "90") as agent:
            started = await agent.does("start", pool="box", script=GATED, args=[str(gate)], lease=80, budget=4)
            await agent.printed(started["pool"], "node 0: begins")
            # What runs there is written down twice a second.
            await asyncio.sleep(1.5)
            for server in servers(tmp_path):
                os.kill(server, signal.SIGKILL)
            return str(started["pool"])

    pool = talk(first)

    async def second() -> None:
        async with own.client("--budget", "10") as agent:
            assert 6.0 == (await agent.does("status"))["left"]
            gate.touch()
            over = await agent.until(pool, "over", "failed")
            assert [4] == [script.get("exit_code") for script in over["scripts"]]

    talk(second)


def servers(folder: Path) -> list[int]:
    """Find the processes of servers that were started in a folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            command = (process / "cmdline").read_bytes()
            if b"skyward_mcp" in command and str(folder).encode() in (process / "environ").read_bytes():
                found.append(int(process.name))
    return found
