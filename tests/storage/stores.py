"""Servers of object stores that are not ours, storages at them, and contents for objects."""

from __future__ import annotations

import contextlib
import json
import random
import socket
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from attrs import frozen

from skyward_storage import Storage
from tests.seeds import some
from tests.storage.proxy import waited

ACCESS_KEY, SECRET_KEY = "AKIATESTSTORE0000001", "secret-of-the-tests/0123456789abcdef"
MIB = 1024 * 1024
NAME = "store.example"
"""The host below which SeaweedFS takes the names of buckets, for requests that come by way of a proxy."""


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


def _seaweedfs(stack: ExitStack, folder: Path) -> str:
    pair = {"accessKey": ACCESS_KEY, "secretKey": SECRET_KEY}
    identity = {"name": "test", "credentials": [pair], "actions": ["Admin", "Read", "Write", "List", "Tagging"]}
    (folder / "s3.json").write_text(json.dumps({"identities": [identity]}))
    ports = free_ports(8)
    named = zip(("master", "volume", "filer", "s3"), ports[::2], ports[1::2], strict=True)
    process = subprocess.Popen(
        [
            str(WEED),
            "server",
            f"-dir={folder}",
            "-ip=127.0.0.1",
            "-ip.bind=127.0.0.1",
            "-s3",
            f"-s3.config={folder / 's3.json'}",
            "-s3.autoCreateBucket=false",
            f"-s3.domainName={NAME}",
            "-s3.port.iceberg=0",
            "-s3.port.lance=0",
            "-master.volumeSizeLimitMB=64",
            "-volume.max=1000",
            *(each for name, port, grpc in named for each in (f"-{name}.port={port}", f"-{name}.port.grpc={grpc}")),
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=folder,
    )
    stack.callback(process.wait, 20)
    stack.callback(process.kill)
    assert waited(lambda: _answers(ports[6]), 30), "SeaweedFS does not start."
    return f"http://127.0.0.1:{ports[6]}"


def _answers(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


WEED = Path(sysconfig.get_path("scripts"), "weed")

SERVERS: dict[str, Callable[[ExitStack, Path], str]] = {
    "moto": _moto,
    # Its wheel is for this kind of machine only.
    **({"seaweedfs": _seaweedfs} if WEED.exists() else {}),
}
"""What starts each kind of server, in a folder of its own, and returns its address."""


CHECKING = [name for name in SERVERS if name != "moto"]
"""Servers that check what they receive, and that forget uploads which were aborted."""


def checking(module: str) -> list[str]:
    """
    Return the servers besides moto that a module's tests ask: those that check what they receive, and take longer.

    A run that has a share of what is drawn asks them by half of the modules; all of them ask moto.

    Args:
        module: Its name.
    """
    return CHECKING if some(f"servers of {module}", [True, False], least=0.5)[0] else []


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


def free_ports(count: int) -> list[int]:
    """Return ports at which nothing listens, all different."""
    with contextlib.ExitStack() as stack:
        probes = [stack.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [int(probe.getsockname()[1]) for probe in probes]
