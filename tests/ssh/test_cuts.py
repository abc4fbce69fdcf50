"""A thousand calls are under way while links are cut at random: every result once, no line missing."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter

import pytest

import skyward as sky
from tests.seeds import seeds
from tests.ssh.conftest import Site

CALLS = 1000
CUTS = 10
LONGEST_CALL = 8.0
LONGEST_PAUSE = 0.4


@sky.function
def answer(number: int, size: int, seconds: float) -> tuple[int, bytes]:
    print(f"line of {number}", flush=True)
    time.sleep(seconds)
    return number, number.to_bytes(4, "little") * size


@pytest.mark.chaos
@pytest.mark.parametrize("seed", seeds("cuts of links", 1))
def test_thousand_calls_while_links_are_cut(seed: int, two: Site) -> None:
    """Small results and large ones."""
    random_ = random.Random(seed)
    sizes = [random_.choice([1, 1, 1, 1000, 100_000]) for _ in range(CALLS)]
    lines: list[str] = []
    began: Counter[str] = Counter()
    pool = sky.Compute(
        provider=two.provider(), nodes=2, concurrency=CALLS // 2, console="silent", logging=False, ttl=60
    )
    pool.on(sky.Log, lambda event: lines.append(event.line))
    pool.on(sky.TaskStarted, lambda event: began.update([event.task_id]))
    with pool:
        futures = [answer(number, sizes[number], random_.uniform(0.0, LONGEST_CALL)) > pool for number in range(CALLS)]
        for _ in range(CUTS):
            host = random_.choice(two.hosts)
            threading.Event().wait(random_.uniform(0.0, LONGEST_PAUSE))
            deadline = time.monotonic() + 10
            while not host.connections():
                assert time.monotonic() < deadline, "the link is not dialled again"
                time.sleep(0.01)
            early = [error for future in futures if future.done() and (error := future.exception())]
            assert not early, early[0]
            assert not all(future.done() for future in futures)
            host.cut()
        results = [future.result(60) for future in futures]
    assert results == [(number, number.to_bytes(4, "little") * sizes[number]) for number in range(CALLS)]
    printed = Counter(f"line of {number}" for number in range(CALLS))
    assert Counter() == printed - Counter(lines), "lines are missing"
    assert Counter() == Counter(lines) - printed, "lines arrived that nobody printed, or twice"
    assert set(began.values()) == {1}, "a call was run again, although its node lived"
