"""A machine that is a few objects in the client's own loop, behind a real SSH server; it takes its time to boot."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import re
import socket
import time
from collections.abc import Callable
from typing import Any

import asyncssh

from skyward.engine.source.bundle import runtime_bundle
from skyward.link.channel import Batch
from skyward.link.frames import VERSION, Frame, Kind, encode, encode_json
from skyward.link.wire import Wire
from skyward.model.instances.machine import InstanceState, SSHAddress

_FOUND = """cache=/simulated
system=Linux
machine=x86_64
hostname=simulated
cpus=2
memory_kb=4000000
writable=yes
free_kb=40000000
disk_kb=40000000
uv=yes
"""


class Machine:
    """
    Boot, let the client in, be made ready, and be a node.

    Args:
        key: The server's host key.
        runs: Seconds until its cloud says that it runs.
        answers: Seconds until its SSH server answers; it refuses connections until then.
        enters: Seconds that a login takes.
        prepares: Seconds that its bootstrap takes.
        guests: Told of everybody who comes (1), and of those who are in or have gone (-1).
        taken: Whether it goes away in the middle of its bootstrap.
        fresh: Whether it lacks our side of a node, and has to be sent it.
    """

    def __init__(
        self,
        key: asyncssh.SSHKey,
        *,
        runs: float,
        answers: float,
        enters: float,
        prepares: float,
        guests: Callable[[int], None],
        taken: bool = False,
        fresh: bool = False,
    ) -> None:
        self.enters = enters
        self.guests = guests
        self.connections: set[Any] = set()
        self.gone_at: float | None = None
        self._taken = taken
        self._fresh = fresh
        self._loop = asyncio.get_running_loop()
        self._key = key
        self._prepares = prepares
        self._socket = socket.socket()
        # Nothing listens yet, and nothing else gets the port.
        self._socket.bind(("127.0.0.1", 0))
        self._server: asyncssh.SSHAcceptor | None = None
        self._script = b""
        self._wire: Wire | None = None
        self.ready_at = self._loop.time() + answers + enters + prepares
        self._runs_at = self._loop.time() + runs
        self._booting = self._loop.create_task(self._boot(answers))

    @property
    def state(self) -> InstanceState:
        """Tell what its cloud says of it."""
        if self.gone_at is not None:
            return InstanceState.ENDED
        return InstanceState.RUNNING if self._loop.time() >= self._runs_at else InstanceState.PENDING

    @property
    def address(self) -> SSHAddress:
        """Say how it is reached."""
        host_key = self._key.export_public_key().decode().strip()
        return SSHAddress(host="127.0.0.1", port=self._socket.getsockname()[1], user="root", host_key=host_key)

    def end(self) -> None:
        """Be gone, with everything."""
        self.gone_at = self.gone_at or self._loop.time()
        self._booting.cancel()
        if self._server is not None:
            self._server.close()
        self._socket.close()
        for connection in tuple(self.connections):
            connection.abort()

    async def _boot(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
        self._server = await asyncssh.listen(
            sock=self._socket,
            server_factory=lambda: _Guest(self),
            server_host_keys=[self._key],
            process_factory=self._run,
            encoding=None,
            encryption_algs=["aes128-gcm@openssh.com"],
        )

    async def _run(self, process: Any) -> None:
        """Do as the client's commands do, as far as it looks."""
        command = process.command or ""
        if "read -r line" in command:
            await self._listen(process)
        elif "tail -c" in command:
            await self._tell(process)
        elif "tar -xzf" in command:
            await process.stdin.read()
        process.exit(0)

    async def _listen(self, process: Any) -> None:
        """Be the shell that runs one script after the other: the look at the machine, and then the bootstrap."""
        mark = re.search(r"%s.0134n.0047 (\w+)", process.command)
        assert mark
        runtime = "" if self._fresh else f"runtime={runtime_bundle().digest}\n"
        process.stdout.write(f"{_FOUND}{runtime}\n@@{mark[1]} 0\n".encode())
        if said := await process.stdin.readuntil(b"\n", 1 << 16):
            size = re.search(rb"count=(\d+)", said)
            assert size
            self._script = gzip.decompress(await process.stdin.readexactly(int(size[1])))
            await self._tell(process)

    async def _tell(self, process: Any) -> None:
        token = re.search(rb"^TOKEN='?(\w+)", self._script, re.MULTILINE)
        session = re.search(rb'"--listen" "\$NODE" "(\w+)"', self._script)
        assert token
        assert session
        if self._taken:
            await asyncio.sleep(self._prepares / 2)
            self.end()
            return
        await asyncio.sleep(self._prepares)
        self._wire = Wire(
            self._loop, Batch(self._loop), session[1].decode(), on_frame=self._hear, on_closed=lambda error: None
        )
        process.stdout.write(b"@@%s done /usr/bin/python3\n" % token[1])
        while await process.stdin.read(4096):
            pass
        process.exit(0)

    async def talk(self, reader: Any, writer: Any) -> None:
        """Be the node's agent, over one channel."""
        assert self._wire is not None
        channel = Channel(writer)
        self._wire.attach(channel)
        while data := await reader.read(65536):
            self._wire.receive(channel, data)
        self._wire.lost(channel, None)

    def _hear(self, frame: Frame, fds: tuple[int, ...]) -> None:
        wire = self._wire
        assert wire is not None
        if frame.kind == Kind.HELLO:
            facts = {"version": VERSION, "hostname": "simulated", "port": 1, "now": time.time()}
            wire.send(encode_json(Kind.WELCOME, facts))
        elif frame.kind == Kind.START:
            length = int.from_bytes(frame.body[:4], "little")
            wire.send(encode_json(Kind.READY, {"lanes": len(json.loads(frame.body[4 : 4 + length])["lanes"])}))
        elif frame.kind == Kind.STOP:
            wire.send(encode(Kind.STOPPED))


class Channel:
    """Be a connection under a link."""

    def __init__(self, writer: Any) -> None:
        self._writer = writer

    def write(self, data: bytes) -> None:
        # Its client may have gone this moment.
        with contextlib.suppress(OSError):
            self._writer.write(data)

    def room(self) -> int:
        return 65536

    def close(self) -> None:
        self._writer.close()


class _Guest(asyncssh.SSHServer):
    """Let in any client that comes."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._connection: Any = None
        self._entering = True
        machine.guests(1)

    def connection_made(self, conn: Any) -> None:
        self._connection = conn
        self._machine.connections.add(conn)

    async def begin_auth(self, username: str) -> bool:
        await asyncio.sleep(self._machine.enters)
        self._in()
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._in()
        self._machine.connections.discard(self._connection)

    def unix_connection_requested(self, dest_path: str) -> Any:
        return self._machine.talk

    def _in(self) -> None:
        if self._entering:
            self._entering = False
            self._machine.guests(-1)
