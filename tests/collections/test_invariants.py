"""Workers that are killed at random moments, and what has to hold all the same."""

from __future__ import annotations

import random
import signal
import time
from contextlib import ExitStack

import pytest

from skyward.collections.named_collections import Collections
from tests.collections.holder_process import holder_process
from tests.collections.store_server import StoreServer, address_of
from tests.seeds import seeds

ITEMS = 120
WORKERS = 3
TIMEOUT_S = 90
LEASE_S = 2.0
"""Longer than a busy machine keeps a process from its processor: one whose lease is over is not alone in the lock."""

WORKER = """
import queue
jobs, counter, state, wrong = (
    collections.queue("jobs"), collections.counter("counted"), collections.dict("state"), collections.set("wrong")
)
processed, acknowledged = collections.set("processed"), collections.set("acknowledged")
random.seed(rest[0])
while True:
    try:
        item = jobs.get(timeout=1)
    except queue.Empty:
        if len(collections.set("over")):
            break
        continue
    processed.add(item)
    counter.increment(once=item)
    with collections.lock("changing", timeout=60) as lock:
        if state.get("token", 0) >= lock.token:
            wrong.add(("an older token", lock.token))
        state["token"] = lock.token
        state["inside"] = (holder, item)
        time.sleep(random.random() * 0.003)
        if state["inside"] != (holder, item):
            wrong.add(("two were inside", holder, item))
    if jobs.done():
        if item in acknowledged:
            wrong.add(("acknowledged twice", item))
        acknowledged.add(item)
    elif item not in acknowledged:
        # Its lease was over: it is delivered again.
        pass
collections.finish(True)
"""


@pytest.mark.chaos
@pytest.mark.timeout(200)
@pytest.mark.parametrize("seed", seeds("killed holders", 5))
def test_what_holds_when_holders_are_killed(store: StoreServer, seed: int) -> None:
    """
    Mutual exclusion; no item lost; none acknowledged twice; each counted once.

    An item whose acknowledgement was the last act of a killed worker is missing in `acknowledged`; so all is over when
    none waits or is taken.
    """
    drawing = random.Random(seed)
    collections = Collections(lambda: address_of(store, "test"))
    jobs = collections.queue("jobs")
    for item in range(ITEMS):
        jobs.put(item)
    processed = collections.set("processed")
    deadline = time.monotonic() + TIMEOUT_S
    started = 0
    with ExitStack() as stack:

        def start() -> object:
            nonlocal started
            started += 1
            return stack.enter_context(
                holder_process(store, f"worker {started}", WORKER, str(drawing.random()), str(ITEMS), lease=LEASE_S)
            )

        workers = [start() for _ in range(WORKERS)]
        while len(processed) < ITEMS or jobs.qsize():
            assert time.monotonic() < deadline, f"seed {seed}: {len(processed)} of {ITEMS} items are processed"
            time.sleep(drawing.uniform(0.1, 0.8))
            victim = drawing.randrange(WORKERS)
            if started < 3 * WORKERS:
                workers[victim].send_signal(signal.SIGKILL)  # type: ignore[attr-defined]
                workers[victim] = start()
        counted = collections.counter("counted")
        while jobs.qsize() or _taken(store):
            assert time.monotonic() < deadline, f"seed {seed}: {counted.value} items are counted"
            time.sleep(0.1)
        collections.set("over").add(True)
        for worker in workers:
            worker.wait(30)  # type: ignore[attr-defined]
    assert ITEMS == counted.value == len(processed)
    assert [] == list(collections.set("wrong")), f"seed {seed}"
    assert 0 == jobs.qsize() + _taken(store)
    collections.finish(True)


def _taken(store: StoreServer) -> int:
    """Count the items that holders have."""
    client = store.client()
    try:
        return sum(client.llen(key) for key in client.scan_iter("sky:queue-taken:jobs*"))
    finally:
        client.close()
