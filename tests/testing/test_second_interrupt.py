"""Ctrl-C twice while a cloud does not take its machines back: the program ends, and says what is left."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.seeds import some
from tests.testing.guarded import Client
from tests.waiting import until

Start = Callable[[str], Client]

# It goes on when the test says so, also for the guardian.
STUBBORN = """
import asyncio

class Stubborn(Rehearsal):
    @hookimpl
    async def skyward_terminate(self, cluster, ids):
        if not os.path.exists(os.path.expanduser("~/go")):
            print("asked", flush=True)
            {answer}
        await self._end(cluster.pool_id, ids)

with pool(Stubborn(directory=BOOKS, ends_own_bill=False), nodes=2, ttl={ttl}, shutdown_timeout=600):
    print("ready", flush=True)
    time.sleep(300)
"""


@pytest.fixture
def start(books: str, tmp_path: Path) -> Iterator[Start]:
    """Start client programs, and end what is left of them."""
    clients: list[Client] = []

    def start(program: str) -> Client:
        clients.append(Client(books, tmp_path, program))
        return clients[-1]

    yield start
    for client in clients:
        client.end()


NO_ANSWER = """while not os.path.exists(os.path.expanduser("~/go")):
                await asyncio.sleep(0.05)"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "answer",
    some(
        "answers of a cloud that ends nothing",
        [
            pytest.param(NO_ANSWER, id="no answer"),
            pytest.param("raise sky.TransportError('503 on purpose.')", id="a failure that is tried again"),
        ],
    ),
)
def test_process_ends_and_says_what_is_left_and_what_to_type(start: Start, answer: str) -> None:
    """The guardian ends it; no thread waits for `shutdown_timeout`."""
    client = start(STUBBORN.format(answer=answer, ttl=600))
    client.says("ready")
    machines = client.machines()
    assert 2 == len(machines)
    client.process.send_signal(signal.SIGINT)
    client.says("asked")
    client.process.send_signal(signal.SIGINT)
    said = client.ends(-signal.SIGINT)
    for words in (*machines, "may go on being billed", "Guardian", "sky ls", "sky down"):
        assert words in said
    assert sorted(machines) == sorted(client.machines())
    client.go()
    until(lambda: not client.machines(), 90)
    until(lambda: not client.guardians(), 90)


@pytest.mark.slow
def test_pressed_again_and_again_it_ends_at_once_and_leaves_the_rest_to_the_guardian(start: Start) -> None:
    """Whatever the process was about to do."""
    client = start(STUBBORN.format(answer=NO_ANSWER, ttl=10))
    client.says("ready")
    client.process.send_signal(signal.SIGINT)
    client.says("asked")
    for _ in range(60):
        client.process.send_signal(signal.SIGINT)
        client.lives(0.5)
        if client.process.poll() is not None:
            break
    assert client.process.returncode is not None
    client.go()
    until(lambda: not client.machines(), 90)
    until(lambda: not client.guardians(), 90)
