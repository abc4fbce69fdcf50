"""Servers of object stores that are not ours, storages at them, and contents for objects."""

from __future__ import annotations

import random
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from attrs import frozen

from skyward_storage import Storage

ACCESS_KEY, SECRET_KEY = "AKIATESTSTORE0000001", "secret-of-the-tests/0123456789abcdef"
MIB = 1024 * 1024


@frozen
class Server:
    """Hold a server that runs."""

    name: str
    url: str


def _moto(stack: ExitStack, folder: Path) -> str:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.storage.server"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    stack.callback(process.wait, 20)
    assert process.stdin is not None
    assert process.stdout is not None
    stack.callback(process.stdout.close)
    stack.callback(process.stdin.close)
    return process.stdout.readline().strip()


SERVERS: dict[str, Callable[[ExitStack, Path], str]] = {"moto": _moto}
"""What starts each kind of server, in a folder of its own, and returns its address."""


def storage_at(url: str, **settings: Any) -> Storage:
    """Return a storage with the keys of the tests."""
    given: dict[str, Any] = {"path_style": True, "region": "us-east-1", "part_size": 5 * MIB, "timeout": 20}
    if "keys" not in settings:
        given |= {"access_key": ACCESS_KEY, "secret_key": SECRET_KEY}
    return Storage(url, **{**given, **settings})


def content_of(size: int, seed: int = 0) -> bytes:
    """Return bytes that no compression and no shift leaves alike."""
    return random.Random(f"{size} {seed}").randbytes(size)


def free_port() -> int:
    """Return a port at which nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
