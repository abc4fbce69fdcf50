"""A real agent and a real pool against bytes that no end of ours would send."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import socket
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import skyward as sky
from skyward.engine.nodes.host import Prepared
from skyward.engine.nodes.local_host import LocalHost
from skyward.engine.nodes.node_shell import NodeShell
from skyward.engine.pool.event_loop import EngineLoop
from skyward.link.channel import Batch, Channel
from skyward.link.frames import HEADER, VERSION, Kind, encode_json
from skyward.model.instances.instance import InstanceInfo
from skyward.model.instances.machine import Instance
from tests.renting import rented
from tests.seeds import seeds, share

pytestmark = pytest.mark.slow

SEEDS = seeds("nearly right frames", share(4))


@pytest.fixture
def host() -> Iterator[LocalHost]:
    with tempfile.TemporaryDirectory(prefix="fuzz", dir="/tmp") as directory:  # a short path
        host = LocalHost(
            EngineLoop(),
            Path(directory) / "node",
            f"fuzz-{os.getpid()}/{directory[-6:]}",
            env=os.environ,
            prepare=_none,
        )
        yield host
        host._end(0.1)


async def _none() -> Prepared:
    return Prepared(python="", env={})


def _garbage(random_: random.Random) -> bytes:
    """Make a frame that is nearly right: any kind, any lane, any body, now and then a wrong length."""
    body = random_.randbytes(random_.choice([0, 1, 8, 16, 40, 300]))
    kind = random_.choice([*map(int, Kind), 0, 200])
    length = len(body) if random_.random() < 0.9 else random_.randrange(2**32)
    return HEADER.pack(length, kind, random_.choice([0, 0, 0, 1, 70]), random_.choice([0, 1, 65535])) + body


@pytest.mark.parametrize("seed", SEEDS)
def test_agent_closes_the_link_and_ends(host: LocalHost, seed: int) -> None:
    """It neither hangs nor stays behind."""
    random_ = random.Random(seed)
    with host.start() as connection:
        connection.settimeout(10)
        if random_.random() < 0.5:
            connection.sendall(encode_json(Kind.HELLO, {"version": VERSION}))
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            for _ in range(2000):
                connection.sendall(_garbage(random_) if random_.random() < 0.98 else random_.randbytes(50))
    assert host._process is not None
    assert host._process.wait(timeout=10) == 0, f"seed {seed}"


def test_agent_refuses_another_version(host: LocalHost) -> None:
    """Both versions are named."""
    with host.start() as connection:
        connection.settimeout(10)
        connection.sendall(encode_json(Kind.HELLO, {"version": VERSION + 1}))
        answer = connection.recv(65536)
    assert f"protocol {VERSION + 1}".encode() in answer
    assert f"speaks {VERSION}".encode() in answer


@pytest.mark.parametrize("seed", SEEDS)
def test_other_nodes_answer_while_one_link_is_fed_garbage(seed: int) -> None:
    """A node whose agent gets nonsense is given up and replaced; nothing else is harmed."""
    random_ = random.Random(seed)
    double = sky.function(lambda x: 2 * x)
    with sky.Compute(nodes=2, console="silent") as pool:
        assert pool._open is not None
        link = pool._open.running._nodes[0].link
        assert link is not None
        with socket.socket(fileno=os.dup(link._channel._sock.fileno())) as copy, contextlib.suppress(OSError):
            copy.setblocking(True)
            for _ in range(50):
                copy.send(_garbage(random_))
        assert [pool.run(double(x), target=1) for x in range(20)] == list(range(0, 40, 2))
        deadline = time.monotonic() + 20
        while pool.current_nodes() < 2:
            assert time.monotonic() < deadline, f"seed {seed}"
            time.sleep(0.02)
        assert double(4) @ pool == [8, 8]


@pytest.mark.parametrize("seed", SEEDS)
def test_client_closes_a_link_that_sends_garbage(seed: int) -> None:
    """The bytes of a hostile node end in one clear error on that link."""
    random_ = random.Random(seed)

    async def main() -> Exception | None:
        loop = asyncio.get_running_loop()
        ours, theirs = socket.socketpair()
        closed: asyncio.Future[Exception | None] = loop.create_future()
        instance = Instance(id="i", node=0, provider="sham")
        shell = NodeShell(_Loop(loop), 0, rented(instance), InstanceInfo())  # type: ignore[arg-type]
        Channel(loop, Batch(loop), ours, shell._on_frame, closed.set_result)
        theirs.setblocking(False)
        for _ in range(3000):
            try:
                theirs.send(_garbage(random_))
            except OSError:
                await asyncio.sleep(0)
            if closed.done():
                break
        theirs.close()
        return await asyncio.wait_for(closed, 10)

    error = asyncio.run(main())
    assert error is None or isinstance(error, sky.TransportError), f"seed {seed}"


class _Loop:
    """The part of the engine's loop that a node's shell asks for."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
