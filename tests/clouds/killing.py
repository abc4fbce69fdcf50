"""Clients that are killed at any moment of their pools' lives."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from tests.clouds.cloud import ROOT
from tests.waiting import until

AT_ONCE = 5
"""Clients that live at once."""

EVENTS, LONGEST_PAUSE = 24, 1.0
"""Events that a client has told of before it is killed, and seconds after the last of them, both at most."""


def killed(script: Path, random_: random.Random, folder: Path, env: Mapping[str, str]) -> Counter[str]:
    """
    Start clients, and kill each somewhere between its start and its second pool; return the last event of each.

    What is waited for is an event and not a time, after which a loaded machine has done nothing yet.

    Args:
        script: What the clients run, with the allocation as argument; it prints the names of its pools' events.
        random_: Draws the moments.
        folder: Where they print to: a file, because a guardian would hold a pipe.
        env: Their environment.
    """
    clients = []
    for number in range(AT_ONCE):
        out = folder / f"out{number}"
        with out.open("wb") as file:
            client = subprocess.Popen(
                [sys.executable, str(script), random_.choice(["spot", "on-demand"])],
                cwd=ROOT,
                env=dict(env),
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.DEVNULL,
            )
        clients.append((random_.randrange(EVENTS), random_.uniform(0.0, LONGEST_PAUSE), client, out))
    last: Counter[str] = Counter()
    try:
        for events, pause, client, out in sorted(clients, key=lambda each: each[0]):
            until(partial(_has_told, client, out, events), 120.0, what="a client hangs")
            time.sleep(pause)
            client.kill()
            client.wait()
            last[["start", *out.read_text().split()][-1]] += 1
    finally:
        for _, _, client, _ in clients:
            client.kill()
            client.wait()
    return last


def _has_told(client: subprocess.Popen[bytes], out: Path, events: int) -> bool:
    """Return whether a client has told of so many events, or has ended by itself."""
    return client.poll() is not None or len(out.read_text().split()) >= events
