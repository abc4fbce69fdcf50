"""Whenever clients are killed whose machines cannot end their own bill, no machine is left after `ttl`."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.seeds import seeds, share
from tests.testing.guarded import Client
from tests.waiting import until

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(600)]

KILLS = share(40)
AT_ONCE = 4
LONGEST_LIFE = 6.0


@pytest.mark.parametrize("seed", seeds("clients with guardians", 1))
def test_clients_killed_at_any_moment_leave_no_machine(seed: int, books: str, tmp_path: Path) -> None:
    """SIGKILLs, forty if all are drawn, at launch, boot, bootstrap, task and exit, some of the guardian too."""
    random_ = random.Random(seed)
    stages: Counter[str] = Counter()
    for round_ in range(KILLS // AT_ONCE):
        clients = [_client(books, tmp_path / f"{round_}-{number}", random_) for number in range(AT_ONCE)]
        try:
            _kill(clients, random_, stages)
            _until_nothing_is_left(clients)
        finally:
            for client in clients:
                client.kill()
    print(f"killed after {dict(stages)}")
    assert len(stages) > min(4, KILLS // 10)


def _client(books: str, home: Path, random_: random.Random) -> Client:
    home.mkdir()
    program = f"""
        def stage(event):
            print(type(event).__name__, flush=True)
        faults = [SlowApi(seconds=0.1), SlowBoot(seconds=0.5), {random_.choice(["", "TerminateFails(times=2)"])}]
        cloud = Rehearsal(directory=BOOKS, ends_own_bill=False, faults=faults)
        while True:
            with pool(cloud, nodes={random_.randint(1, 2)}, ttl=3, on_event=stage) as opened:
                sky.function(time.sleep)(0.5) >> opened
    """
    return Client(books, home, program)


def _kill(clients: Sequence[Client], random_: random.Random, stages: Counter[str]) -> None:
    """Kill each client at a moment of its own; of some the guardian first, which is given time to be replaced."""
    began = time.monotonic()
    for client, moment in zip(clients, sorted(random_.uniform(0.3, LONGEST_LIFE) for _ in clients), strict=True):
        client.lives(began + moment - time.monotonic())
        if random_.random() < 0.2 and (guardians := client.guardians()):
            with contextlib.suppress(ProcessLookupError):
                os.kill(guardians[0], signal.SIGKILL)
            client.lives(3.0)
        client.process.kill()
        out, _ = client.process.communicate()
        assert -signal.SIGKILL == client.process.returncode, out
        stages[(out.split() or ["start"])[-1]] += 1


def _until_nothing_is_left(clients: Sequence[Client]) -> None:
    until(lambda: not clients[0].machines(), 60)
    until(lambda: not any(client.guardians() for client in clients), 60)
    assert [] == [row for client in clients for row in client.open_launches()]
