"""
The target that is a node's agent, with a client and workers that are no processes.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from fuzz_composer import DIGESTS, config
from fuzz_findings import Broken, Watch
from fuzz_scripts import KINDS, WORKER, Step
from fuzz_targets import World, received

from skyward.errors import ProtocolError
from skyward.link import messages
from skyward.link.frames import VERSION, Kind, Parser, encode, encode_json
from skyward.node.agent import child_process as process_module
from skyward.node.agent.agent import Agent
from skyward.node.agent.descendants import MARK
from skyward.node.agent.fds import close_all
from skyward.node.agent.slot_table import SlotTable, new_slot_table

_SPAWNS = 12
_SLOTS = 256


class Worker(NamedTuple):
    """What a worker would hold: its ends, and what came over them."""

    output: tuple[int, int]
    sockets: tuple[socket.socket, socket.socket]
    parsers: tuple[Parser, Parser]


class AgentWorld(World):
    """An agent, its client and its workers, none of which is a process."""

    current: ClassVar[AgentWorld]
    directory: ClassVar[Path]

    def __init__(self, watch: Watch, flags: int) -> None:
        super().__init__(watch)
        AgentWorld.current = self
        self.workers: dict[int, Worker] = {}
        self.slot_tables = 0
        self._told = Parser()
        self._mark = os.environ.get(MARK)
        self._agent = Agent(self.loop, str(self.directory / "node"))
        self._on_client_closed = self._agent._on_client_closed
        self._agent._on_client_closed = self._closed  # type: ignore[method-assign]
        self.connect()
        if flags & 1:
            self._begin(flags)

    def connect(self) -> None:
        """Have the agent serve its end of the socket."""
        self._agent.serve(self.ours)

    def tell(self, frame: bytes) -> None:
        """Send a frame as a client does."""
        self.peer.send(frame)

    def event(self, step: Step) -> None:
        """Let time pass, a worker take a call or die, or the client's end be shut down."""
        processes = list(self._agent._workers.processes.values())
        process = processes[step.lane % len(processes)] if processes else None
        match step.kind % 5:
            case 0:
                self.now += 0.06
            case 1:
                self.now += 6.0
            case 2 if process is not None and process.slots:
                process.slot_table.start(step.fds % process.slots, step.how >> 4, 0)
            case 3 if process is not None:
                # As the kernel tells it: a signal, or an exit code.
                self._reap(process.pid, step.fds & 63 if step.fds & 128 else step.fds << 8)
            case 4:
                with contextlib.suppress(OSError):
                    self.peer.shutdown(socket.SHUT_WR)

    def from_worker(self, step: Step) -> None:
        """Let a worker send a frame over its sockets, or print."""
        if not self.workers:
            return
        worker = list(self.workers.values())[step.lane % len(self.workers)]
        if step.way == WORKER:
            self.send(worker.sockets[step.lane >> 7], step)
            return
        for piece in step.pieces():
            with contextlib.suppress(OSError):
                os.write(worker.output[step.lane >> 7], piece)
            self.turn(1)

    def spawn(self, argv: Any, env: Any, fds: list[int]) -> int:
        """Stand in for a child process, which takes strings only."""
        for word in (*argv, *(word for pair in dict(env).items() for word in pair)):
            if b"\0" in os.fsencode(word):
                raise ValueError("embedded null byte")
        out, err, tasks, control, _ = fds
        worker = Worker(
            (os.dup(out), os.dup(err)),
            (socket.socket(fileno=os.dup(tasks)), socket.socket(fileno=os.dup(control))),
            (Parser(), Parser()),
        )
        for fd in worker.output:
            os.set_blocking(fd, False)
        for sock in worker.sockets:
            sock.setblocking(False)
        pid = (1 << 30) + self.slot_tables
        self.workers[pid] = worker
        return pid

    def drain(self) -> None:
        """Read what the agent sends; our own parser must take it."""
        _read(self.peer, self._told, "client")
        self.drain_workers()

    def drain_workers(self) -> None:
        """Read what the agent sends to workers."""
        for worker in self.workers.values():
            for sock, parser in zip(worker.sockets, worker.parsers, strict=True):
                _read(sock, parser, "worker")

    def check(self) -> None:
        """See besides that files were written where they belong."""
        super().check()
        if {path.name for path in self.directory.iterdir()} - {"node"}:
            raise Broken("files were written outside the node's directory")

    def close(self) -> None:
        """Let go of everything, as a node does that is given up."""
        try:
            self._agent.leave()
            for pid in list(self._agent._workers.processes):
                self._reap(pid, signal.SIGKILL)
            if self._agent._client is not None:
                self._agent._client.close()
        finally:
            for pid in list(self.workers):
                self._forget(pid)
            super().close()
            # What is still open when nothing refers to this world any more is lost.
            del AgentWorld.current
            os.environ.pop(MARK, None)
            if self._mark is not None:
                os.environ[MARK] = self._mark
            shutil.rmtree(self.directory / "node", ignore_errors=True)

    def _begin(self, flags: int) -> None:
        """Have the agent started, with one or two workers that are ready, and perhaps all that tasks may name."""
        self.tell(encode_json(Kind.HELLO, {"version": VERSION}))
        self.tell(_start(config(lanes=1 + (flags >> 1 & 1), slots=1 + (flags >> 2 & 1), app=bool(flags & 8))))
        self.turn(2)
        for step in (Step(13, KINDS.index(Kind.READY), 0, 0, b'{"environment": {}}'),) * (2 if flags & 8 else 1):
            for lane in range(len(self.workers)):
                self.from_worker(step._replace(lane=lane))
        for number in range(DIGESTS) if flags & 16 else ():
            digest = bytes((number,))
            blob, function = messages.BLOB.pack(digest * 32, 4096), messages.FUNCTION.pack(digest * 16, 0) + b"\0\0"
            self.send(self.peer, Step(0, KINDS.index(Kind.BLOB), 0, 1, blob))
            self.send(self.peer, Step(0, KINDS.index(Kind.FUNCTION), 0, 0, function))
        self.turn(2)

    def _closed(self, error: Exception | None) -> None:
        self.closed_with.append(error)
        self._on_client_closed(error)

    def _reap(self, pid: int, status: int) -> None:
        """Do what `Agent.reap` does."""
        process = self._agent._workers.processes.pop(pid)
        self._agent._batch.open()
        process.gone(status, 0)
        self._agent._batch.flush()
        self._forget(pid)

    def _forget(self, pid: int) -> None:
        worker = self.workers.pop(pid, None)
        if worker is not None:
            close_all(worker.output)
            for sock in worker.sockets:
                sock.close()


def no_processes() -> None:
    """Have agents start no process and kill none."""

    def slot_table(slots: int) -> SlotTable:
        AgentWorld.current.slot_tables += 1
        if AgentWorld.current.slot_tables > _SPAWNS or slots > _SLOTS:
            raise ProtocolError("More workers than a fuzzed agent may have.")
        return new_slot_table(slots)

    def spawn(argv: Any, env: Any, fds: Any) -> int:
        return AgentWorld.current.spawn(argv, env, fds)

    process_module.new_slot_table = slot_table
    process_module.end_group = lambda pid: None
    process_module._spawn = spawn


def _read(sock: socket.socket, parser: Parser, name: str) -> None:
    try:
        parser.feed(received(sock))
    except ProtocolError as error:
        parser._rest = b""
        raise Broken(f"the agent sent a {name} what its parser refuses: {error}") from error


def _start(given: Any) -> bytes:
    text = json.dumps(given).encode()
    return encode(Kind.START, len(text).to_bytes(4, "little") + text + b"plugins")
