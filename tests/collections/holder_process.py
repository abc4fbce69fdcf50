"""Holders that are processes of their own, so that they can be killed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.collections.store_server import PASSWORD, StoreServer

ROOT = Path(__file__).parents[2]

PREAMBLE = """
import random, sys, time
from skyward.collections.named_collections import Collections
from skyward.collections.store_address import StoreAddress

path, password, holder, lease, *rest = sys.argv[1:]
collections = Collections(
    lambda: StoreAddress(path, password, "first", holder, "task of " + holder), lease=float(lease)
)

def say(what):
    print(what, flush=True)

"""

LEASE_S = 0.6
"""Short, so that a test does not wait for long; long enough that a busy machine renews it in time."""


@contextmanager
def holder_process(
    server: StoreServer, holder: str, code: str, *rest: str, lease: float = LEASE_S
) -> Iterator[subprocess.Popen[str]]:
    """Run code as a holder, and kill it in the end."""
    process = subprocess.Popen(
        [sys.executable, "-c", PREAMBLE + code, server.path, PASSWORD, holder, str(lease), *rest],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait(10)
        assert process.stdout is not None
        process.stdout.close()


def said(process: subprocess.Popen[str]) -> str:
    """Return the next line that a holder says."""
    assert process.stdout is not None
    return process.stdout.readline().strip()
