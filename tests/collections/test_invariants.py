"""Workers, nodes and links that are lost at random moments, and what has to hold all the same."""

from __future__ import annotations

import random
import signal
import time
from contextlib import ExitStack
from subprocess import Popen

import pytest
from attrs import evolve

from skyward.collections.named_collections import Collections
from tests.collections.cutting_proxy import cutting
from tests.collections.holder_process import holder_process
from tests.collections.store_server import StoreServer, address_of
from tests.seeds import seeds

ITEMS = 120
WORKERS = 3
TIMEOUT_S = 90
KILLS = 6
"""After so many the workers go on undisturbed, but for their links."""
LOST_REPLIES = 0.001
"""How probable it is for each reply that its connection is cut before it passes."""
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
def test_what_holds_whatever_is_lost(store: StoreServer, seed: int) -> None:
    """
    Mutual exclusion; no item lost; none acknowledged twice; each counted once.

    Lost are a worker, a node with two of them, their link, the client's link, and replies to what was done.
    An item whose acknowledgement was the last act of a killed worker is missing in `acknowledged`; so all is over when
    none waits or is taken.
    """
    drawing = random.Random(seed)
    started = 0
    with ExitStack() as stack:
        links = [
            stack.enter_context(cutting(store.path, LOST_REPLIES, drawing.randrange(2**32), name))
            for name in ("client", "node")
        ]
        client, node = links
        collections = Collections(lambda: address_of(evolve(store, path=client.path), "test"))
        jobs, processed = collections.queue("jobs"), collections.set("processed")
        for item in range(ITEMS):
            jobs.put(item)
        deadline = time.monotonic() + TIMEOUT_S

        def start(place: int) -> Popen[str]:
            nonlocal started
            started += 1
            # The first one is on the node of the store.
            way = evolve(store, path=node.path) if place else store
            return stack.enter_context(
                holder_process(way, f"worker {started}", WORKER, str(drawing.random()), lease=LEASE_S)
            )

        workers = [start(place) for place in range(WORKERS)]

        def lose(*places: int) -> None:
            if started + len(places) > WORKERS + KILLS:
                return
            for place in places:
                workers[place].send_signal(signal.SIGKILL)
            for place in places:
                workers[place] = start(place)

        losses = [lambda: lose(drawing.randrange(WORKERS)), lambda: lose(1, 2), client.cut, node.cut]
        while len(processed) < ITEMS or jobs.qsize():
            assert time.monotonic() < deadline, f"seed {seed}: {len(processed)} of {ITEMS} items are processed"
            time.sleep(drawing.uniform(0.1, 0.8))
            drawing.choice(losses)()
        counted = collections.counter("counted")
        while jobs.qsize() or _taken(store):
            assert time.monotonic() < deadline, f"seed {seed}: {counted.value} items are counted"
            time.sleep(0.1)
        collections.set("over").add(True)
        for worker in workers:
            worker.wait(30)
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
