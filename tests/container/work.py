"""What the tests run in containers, in a module that needs nothing the image lacks."""

from __future__ import annotations

import os
import socket
import time
from typing import Any

import skyward as sky


@sky.function
def double(x: Any) -> Any:
    return x * 2


@sky.function
def whoami() -> str:
    return socket.gethostname()


@sky.function
def process() -> int:
    return os.getpid()


@sky.function
def hold(size: int) -> int:
    print(f"about to hold {size} bytes", flush=True)
    return len(bytes(b"x" * size))


@sky.function
def reaches(address: str) -> bool:
    """Tell whether another node's SSH server answers."""
    with socket.create_connection((address, 22), timeout=5):
        return True


@sky.function
def slow(count: int, pause: float) -> int:
    for _ in range(count):
        time.sleep(pause)
    return count


@sky.function
def say_slowly(number: int, pause: float) -> int:
    print(f"line {number}", flush=True)
    time.sleep(pause)
    return number


@sky.function
def version_of_six() -> str:
    import six  # type: ignore[import-untyped]

    found: str = six.__version__
    return found


@sky.function
def pid() -> int:
    return os.getpid()


@sky.function
def run_until(runs: str, go: str, size: int) -> bytes:
    with open(runs, "a") as file:
        file.write("run\n")
    while not os.path.exists(go):
        time.sleep(0.01)
    return b"x" * size


@sky.function
def count_runs(runs: str) -> int:
    if not os.path.exists(runs):
        return 0
    with open(runs) as file:
        return file.read().count("run")


@sky.function
def variable(name: str) -> str | None:
    """Give a variable of the node."""
    return os.environ.get(name)
