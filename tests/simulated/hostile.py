"""
A node that does what no node may, behind a real SSH server in a process of its own.

`python -m tests.simulated.hostile ATTACK` prints its host key and port, and accepts any login.
Its link is a real one until it attacks; from then on it writes by hand what nothing at its end checks.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import asyncssh

from skyward.link.cells import CHUNK, DATA, OPENING, SIZE, CellType, cell
from skyward.link.emitted import encode_event
from skyward.link.frames import Frame, Kind, encode, encode_json
from skyward.link.keeping import encode_kept
from skyward.link.messages import CALL, CREDIT, EMIT, ITEM, RESULT, LogLine, Status, encode_lines
from skyward.link.packed import deflate, pack
from skyward.link.packing import MOST_FRAMES
from skyward.link.payload import Payload
from skyward.link.payload_making import dump
from skyward.link.payload_parts import Part, Place
from skyward.model.events.event import NodeReady
from tests.simulated.machine import Machine

TIB = 1 << 40
ENOUGH = 3 << 30
"""Bytes after which an attack that is not stopped ends by itself."""


def small(*frames: bytes) -> bytes:
    """Render a cell of small frames."""
    return cell(CellType.FRAME, b"".join(frames))


def opening(stream: int, kind: Kind, head: bytes, size: int) -> bytes:
    """Announce a frame whose payload is one buffer of so many bytes."""
    payload = Payload((Part(Place.SEGMENT, size),), b"").encode()
    return cell(CellType.OPEN, encode(kind, head + payload, fds=1), OPENING.pack(stream, 1) + SIZE.pack(size))


def buffers(kind: Kind, heads: list[bytes]) -> Iterator[bytes]:
    """Announce a buffer of 1 TiB with each of these, and send their bytes."""
    for stream, head in enumerate(heads, 1):
        yield opening(stream, kind, head, TIB)
    while True:
        for stream in range(1, len(heads) + 1):
            yield cell(CellType.DATA, bytes(CHUNK), DATA.pack(stream))


def again(*frames: bytes) -> Iterator[bytes]:
    """Send frames without end."""
    data = small(*frames)
    while True:
        yield data


def flood(frame: bytes, size: int = 256 << 10) -> Iterator[bytes]:
    """Send as many copies of a frame in each cell as fit."""
    return again(*[frame] * max(1, size // len(frame)))


def measured() -> Iterator[bytes]:
    """Measure something else each time, and fail at something else."""
    number = 0
    while True:
        number += 1
        rows = [["gpu", f"gpu{number}:{row}", "%", 1.0] for row in range(2000)]
        yield small(encode_json(Kind.METRIC, {"values": rows, "troubles": [f"trouble {number} " + "x" * 10_000]}))


LINE = encode(Kind.LOG, encode_lines(1, [LogLine(0, "spam " * 200)] * 50))
SHORT = encode(Kind.LOG, encode_lines(1, [LogLine(0, "")] * 20_000))
WRITE = {"do": "write", "upload": "u", "at": 0, "address": "call-1", "named": False}
ITEM_OF = b"an item " * 1000
NOTICE = encode_json(Kind.NOTICE, {"reason": "taken back", "certain": False, "at": None})
WORDS = encode_json(Kind.NOTICE, {"reason": "x" * 8_000, "certain": False, "at": None})
ATTACKS: dict[str, Callable[[int], Iterator[bytes]]] = {
    "buffers of unknown calls": lambda call: buffers(
        Kind.RESULT, [RESULT.pack(call + 1 + at, Status.OK, 0.0, 0.0) for at in range(64)]
    ),
    "buffers of functions": lambda call: buffers(Kind.FILES, [b""] * 64),
    "buffers of events": lambda call: buffers(Kind.EMIT, [EMIT.pack(call, 0)] * 64),
    "two results of one call": lambda call: buffers(Kind.RESULT, [RESULT.pack(call, Status.OK, 0.0, 0.0)] * 2),
    "items without credit": lambda call: flood(encode(Kind.ITEM, ITEM.pack(call, 0) + dump(ITEM_OF).encode())),
    "items of no stream": lambda call: flood(encode(Kind.ITEM, ITEM.pack(call, 0) + dump(ITEM_OF).encode())),
    "lines without credit": lambda call: flood(LINE),
    "short lines without credit": lambda call: flood(SHORT),
    "compressed lines without credit": lambda call: itertools.repeat(
        cell(CellType.PACKED_FRAMES, pack(LINE * (MOST_FRAMES // len(LINE)), 1))
    ),
    "cells that burst": lambda call: itertools.repeat(
        cell(CellType.PACKED_FRAMES, b"\1" + CHUNK.to_bytes(4, "little") + deflate(bytes(64 << 20), 1))
    ),
    "events without credit": lambda call: flood(encode(Kind.EMIT, encode_event(call, NodeReady(node=1))[0])),
    "notices without end": lambda call: flood(NOTICE),
    "long notices": lambda call: flood(WORDS),
    "measurements without end": lambda call: measured(),
    "results of unknown calls": lambda call: flood(
        encode(Kind.RESULT, RESULT.pack(call + 1, Status.OK, 0.0, 0.0) + dump(ITEM_OF).encode())
    ),
    "inputs without reading": lambda call: flood(encode(Kind.CREDIT, CREDIT.pack(call, 0, 16)), 1 << 10),
    "calls given back for ever": lambda call: flood(encode(Kind.RECALLED, CALL.pack(call))),
    "answers without reading": lambda call: again(
        *[encode(Kind.RESULT, RESULT.pack(call + at, Status.OK, 0.0, 0.0) + dump(None).encode()) for at in range(1000)]
    ),
    "files without waiting": lambda call: flood(encode(Kind.KEEP, encode_kept(1, WRITE, bytes(200 << 10))[0])),
    "files without reading": lambda call: flood(encode(Kind.KEEP, encode_kept(1, {"do": "list"})[0]), 1 << 10),
    "buffers of files": lambda call: buffers(Kind.KEEP, [CALL.pack(at) for at in range(64)]),
    "a probe without end": lambda call: iter(()),
    "a bootstrap without end": lambda call: iter(()),
}


class Hostile(Machine):
    """
    Be a node until the first call comes, and attack then; what comes from then on is not heard.

    Args:
        key: The server's host key.
        attack: What it does.
    """

    def __init__(self, key: asyncssh.SSHKey, attack: str) -> None:
        super().__init__(key, runs=0.0, answers=0.0, enters=0.0, prepares=0.0, guests=lambda number: None)
        self._attack = attack
        self._call: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.sent = 0

    def cut(self) -> None:
        """Lose every connection."""
        for connection in tuple(self.connections):
            connection.abort()

    async def _run(self, process: Any) -> None:
        probed = "read -r line" in (process.command or "")
        if self._attack == "a probe without end" and probed:
            await self._spam(process.stdout.write, process.stdout.drain, again(bytes(256 << 10)))
        await super()._run(process)

    async def _tell(self, process: Any) -> None:
        if self._attack == "a bootstrap without end":
            await self._spam(process.stdout.write, process.stdout.drain, again(b"x" * (256 << 10)))
        await super()._tell(process)

    async def talk(self, reader: Any, writer: Any) -> None:
        """Be the node's agent, over one channel; its link goes on over the next, if this one is lost."""
        hearing = asyncio.ensure_future(super().talk(reader, writer))
        await asyncio.wait({hearing, self._call}, return_when=asyncio.FIRST_COMPLETED)
        if hearing.done():
            return
        hearing.cancel()
        reading = asyncio.ensure_future(self._read(reader))
        try:
            await self._spam(writer.write, writer.drain, ATTACKS[self._attack](self._call.result()))
        finally:
            writer.close()
            reading.cancel()

    async def _read(self, reader: Any) -> None:
        """Read, and acknowledge nothing."""
        while "without reading" not in self._attack and await reader.read(65536):
            pass

    def _hear(self, frame: Frame, fds: tuple[int, ...]) -> None:
        super()._hear(frame, fds)
        if frame.kind == Kind.TASK and not self._call.done():
            self._call.set_result(CALL.unpack_from(frame.body)[0])

    async def _spam(self, write: Callable[[bytes], None], drain: Callable[[], Any], cells: Iterator[bytes]) -> None:
        began = time.monotonic()
        try:
            for data in cells:
                write(data)
                await drain()
                self.sent += len(data)
                if self.sent > ENOUGH:
                    break
        except (OSError, asyncssh.Error):
            pass
        print(f"sent {self.sent} in {time.monotonic() - began:.2f}", flush=True)


async def main(attack: str) -> None:
    """Be such a node until standard input ends; each line of it has the node lose its connections."""
    key = asyncssh.generate_private_key("ssh-ed25519")
    machine = Hostile(key, attack)
    print(machine.address.port, machine.address.host_key, flush=True)
    while await asyncio.to_thread(sys.stdin.readline):
        machine.cut()
    machine.end()
    os._exit(0)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
