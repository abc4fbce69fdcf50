"""What a node sends without leave costs it the link, and the client no more memory than a window."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Self

import pytest

import skyward as sky

MOST_MB = 100.0
"""What the client may take beyond what it takes idle, in MB."""

SECONDS = 8.0
"""For how long an attack is borne that nothing ends, and"""

PATIENCE = 60.0
"""how long the end of one is waited for, on a machine that is busy."""

# What the error of the call says; nothing for an attack that the node goes on with until the call is given up.
EXPECTED = {
    "buffers of unknown calls": r"announced \d+ bytes for call \d+, which it was not given",
    "buffers of functions": r"announced buffers of a FILES frame, which has none",
    "buffers of events": r"sent a EMIT frame of \d+ bytes; \d+ are allowed",
    "two results of one call": r"announced two RESULT frames of one call at once",
    "items without credit": r"sent an item of stream\(\) beyond its window: 16 items or \d+ bytes",
    "items of no stream": r"sent an item of hang\(\), which gives none",
    "lines without credit": r"sent a LOG frame beyond its window: \d+ bytes of lines and events",
    "short lines without credit": r"sent a LOG frame beyond its window: \d+ bytes of lines and events",
    "compressed lines without credit": r"sent a LOG frame beyond its window: \d+ bytes of lines and events",
    "cells that burst": r"compressed cell does not hold the 65536 bytes that it states",
    "events without credit": r"sent a EMIT frame beyond its window: \d+ bytes of lines and events",
    "notices without end": r"sent more than 4096 NOTICE frames in its life",
    "long notices": r"sent more than 4096 NOTICE frames in its life",
    "measurements without end": "",
    "results of unknown calls": "",
    "inputs without reading": "",
    "calls given back for ever": r"answered hang\(\) with \d+ bytes of its calls yet to take",
    "answers without reading": r"answered hang\(\) with \d+ bytes of its calls yet to take",
    "files without waiting": r"sent a KEEP frame beyond its window",
    "files without reading": r"sent a KEEP frame beyond its window",
    "buffers of files": r"KEEP frame of \d+ bytes was announced; \d+ are allowed",
    "a probe without end": r"printed more than \d+ bytes",
    "a bootstrap without end": r"was not ready within 5 s",
}


EACH = ("buffers of unknown calls", "lines without credit", "a probe without end")
"""One attack on each of the link's parts; what holds against the others is held by tests of engine and link, too."""

LARGE = bytes(32 << 10)


@sky.function
def hang(given: bytes) -> None:
    time.sleep(1e6)


@sky.function
def take(given: Iterator[bytes]) -> None:
    time.sleep(1e6)


@sky.function
def stream() -> Iterator[int]:
    yield 1


class Memory:
    """Measure what this process takes, beyond what it took at first: its own memory, and shared memory that it made."""

    def __init__(self) -> None:
        self._first = taken_mb()
        self._over = threading.Event()
        self.curve: list[float] = []
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.wait(0.02):
            self.curve.append(taken_mb() - self._first)


def taken_mb() -> float:
    """Return what this process takes, in MB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    shared = 0
    for fd in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            if "memfd:skyward" in os.readlink(f"/proc/self/fd/{fd}"):
                shared += os.stat(f"/proc/self/fd/{fd}").st_blocks * 512
    return (pages * os.sysconf("SC_PAGE_SIZE") + shared) / 1e6


@contextlib.contextmanager
def node(attack: str, directory: Path) -> Iterator[tuple[sky.SSH, Callable[[], None]]]:
    """Run such a node, and give what cuts its connections."""
    command = [sys.executable, "-m", "tests.simulated.hostile", attack]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        port, key = process.stdout.readline().split(maxsplit=1)
        known = directory / "known_hosts"
        known.write_text(f"[127.0.0.1]:{port} {key}")
        stdin = process.stdin

        def cut() -> None:
            stdin.write("\n")
            stdin.flush()

        yield sky.SSH([f"root@127.0.0.1:{port}"], known_hosts=str(known)), cut
    finally:
        process.stdin.close()
        process.wait(30)
        process.stdout.close()


@contextlib.contextmanager
def ended(over: threading.Event) -> Iterator[None]:
    """Let the handler, which is slow until then, take all events that it has not: the pool waits for it."""
    try:
        yield
    finally:
        over.set()


@pytest.mark.skipif(sys.platform != "linux", reason="reads a process's memory from Linux's /proc")
@pytest.mark.parametrize(
    "attack", [pytest.param(one, marks=pytest.mark.slow if one in EACH else pytest.mark.everything) for one in EXPECTED]
)
def test_a_hostile_node_exhausts_nothing(attack: str, tmp_path: Path) -> None:
    """
    It loses its link at the first frame beyond a window, and the error says which.

    The curve of the client's memory is printed: `pytest -s`.
    """
    over = threading.Event()
    with node(attack, tmp_path) as (provider, _):
        pool = sky.Compute(
            provider=provider, console="silent", logging=False, on_event=lambda event: over.wait(0.001),
            max_provision_attempts=1, retry_on_interruption=0, bootstrap_timeout=5.0, shutdown_timeout=1.0,
        )  # fmt: skip
        said: list[str] = []
        seconds = PATIENCE if EXPECTED[attack] else SECONDS
        with Memory() as memory:
            try:
                with pool, ended(over):
                    if attack == "items without credit":
                        items = stream() >> pool
                        time.sleep(SECONDS / 4)
                        list(items)
                    elif attack == "inputs without reading":
                        (take(bytes(1 << 20) for _ in itertools.count()) > pool).result(seconds)
                    elif attack == "answers without reading":
                        for _ in range(1000):
                            (hang(os.urandom(1 << 20)) > pool).result(seconds)
                    else:
                        (hang(LARGE) > pool).result(seconds)
            except (sky.SkywardError, TimeoutError) as error:
                said.append(str(error))
        curve = memory.curve
        print(f"{attack}: {max(curve):.1f} MB at most; {said[0][:200]}")
        print("curve", " ".join(f"{value:.0f}" for value in curve[:: max(1, len(curve) // 40)]))
        assert max(curve) < MOST_MB
    if EXPECTED[attack]:
        assert re.search(EXPECTED[attack], said[0]), said[0]


@pytest.mark.slow
def test_until_it_attacks_it_is_a_node_as_any_other(tmp_path: Path) -> None:
    """It takes more files than go unacknowledged, and its link goes on after a lost connection."""
    (tmp_path / "weights.py").write_bytes(b"#" * (1 << 20))
    with node("buffers of unknown calls", tmp_path) as (provider, cut):
        pool = sky.Compute(
            provider=provider, console="silent", logging=False, max_provision_attempts=1, retry_on_interruption=0,
            shutdown_timeout=1.0, image=sky.Image(includes=[str(tmp_path / "weights.py")]),
        )  # fmt: skip
        told = pytest.raises(sky.SkywardError, match=EXPECTED["buffers of unknown calls"])
        with pool:
            cut()
            call = hang(LARGE) > pool
            with told:
                call.result(30)
