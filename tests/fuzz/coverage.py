"""
Fuzz whatever reads bytes of a link, guided by coverage: `python tests/fuzz/coverage.py --seconds 600`.

It needs the package `atheris`, and is no part of the test suite.
An input is a script: one byte names the target, one says how its world begins, and then come steps.
Most steps are frames with a valid header, so that bodies and not headers are searched.
A finding is whatever is neither a `ProtocolError` nor a `TransportError` that closes the link it came on:
another exception, a bug that a channel notes as `link.failed`, a hang, a descriptor that stays open,
bytes of ours that our own parser refuses, and a second link in the same loop that answers no more.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import faulthandler
import gc
import hashlib
import io
import json
import logging
import math
import os
import pkgutil
import random
import re
import shutil
import signal
import socket
import sys
import tempfile
import time
import traceback
from array import array
from collections.abc import Callable, Iterator
from pathlib import Path
from struct import Struct
from types import FrameType
from typing import Any, ClassVar, NamedTuple, NoReturn

import atheris

import skyward

INSTRUMENTED = ("skyward.link", "skyward.node", "skyward.engine.node_shell")


def _others() -> list[str]:
    """List the modules that are not instrumented, because atheris includes whole packages only."""
    found = pkgutil.walk_packages(skyward.__path__, "skyward.", onerror=lambda _: None)
    return [module.name for module in found if not f"{module.name}.".startswith(tuple(f"{i}." for i in INSTRUMENTED))]


with atheris.instrument_imports(include=["skyward"], exclude=_others()), contextlib.redirect_stderr(io.StringIO()):
    from skyward.engine.node_shell import NodeShell
    from skyward.errors import ProtocolError, TransportError
    from skyward.link import messages
    from skyward.link.channel import Batch, Channel
    from skyward.link.frames import HEADER, VERSION, Frame, Kind, Parser, decode_json, encode, encode_json
    from skyward.link.messages import LogLine, Status, encode_lines
    from skyward.link.payload import Payload, decode, pack, read_parts, views
    from skyward.model.instance import InstanceInfo
    from skyward.model.machine import Instance
    from skyward.node import process as process_module
    from skyward.node.agent import Agent
    from skyward.node.board import Board, new_board
    from skyward.node.descendants import MARK
    from skyward.node.held import close_all

HANG = 2.0
"""Seconds after which an input hangs."""

LONGEST = 4096
"""Bytes of an input."""

_STEPS = 48
_TURNS = 200
_SPAWNS = 12
_SLOTS = 256
_MINIMIZING = 20.0
_DIGESTS = 3

KINDS = tuple(Kind)
STEP = Struct("<BBBBH")
FRAME, LENGTH, KIND, FDS, RAW, WORKER, OUTPUT, EVENT = range(8)
WAYS = (FRAME,) * 9 + (LENGTH, KIND, FDS, RAW, WORKER, OUTPUT, EVENT)
COUNTS = (0, 1, 1, 2, 3, 5, 64, 65)
TARGETS = PARSER, CODECS, SHELL, AGENT = range(4)


class Step(NamedTuple):
    """One step of a script; the lower half of `how` says what is done, the upper half where its bytes are cut."""

    how: int
    kind: int
    lane: int
    fds: int
    body: bytes

    @property
    def way(self) -> int:
        """Say what is done."""
        return WAYS[self.how & 15]

    @property
    def frame_kind(self) -> int:
        """Give the kind of the frame."""
        return self.kind if self.way == KIND else int(KINDS[self.kind % len(KINDS)])

    @property
    def name(self) -> str:
        """Name the kind of the frame."""
        return Kind(self.frame_kind).name if self.frame_kind in set(KINDS) else str(self.frame_kind)

    def wire(self) -> bytes:
        """Render the bytes that are sent."""
        if self.way in (RAW, OUTPUT):
            return self.body
        length, fds = len(self.body), COUNTS[self.fds & 7]
        if self.way == LENGTH:
            length = self.lane | self.fds << 14
        elif self.way == FDS:
            fds = self.fds >> 3
        return HEADER.pack(length, self.frame_kind, fds, self.lane if self.lane < 250 else 65535) + self.body

    def pieces(self) -> list[bytes]:
        """Cut the bytes that are sent."""
        data = self.wire()
        cut = len(data) * (self.how >> 4) // 16
        return [piece for piece in (data[:cut], data[cut:]) if piece]

    def descriptors(self) -> list[int]:
        """Open the descriptors that travel with it."""
        if self.way in (RAW, OUTPUT, EVENT):
            return []
        return [_descriptor(self.fds >> 3 & 7) for _ in range(COUNTS[self.fds & 7])]


def read_script(data: bytes) -> tuple[int, int, list[Step]]:
    """Read an input: its target, how its world begins, and its steps."""
    if len(data) < 2:
        return PARSER, 0, []
    steps, at = [], 2
    while at + STEP.size <= len(data) and len(steps) < _STEPS:
        how, kind, lane, fds, size = STEP.unpack_from(data, at)
        at += STEP.size
        steps.append(Step(how, kind, lane, fds, data[at : at + size]))
        at += size
    return data[0] % len(TARGETS), data[1], steps


def write_script(target: int, flags: int, steps: list[Step], most: int = LONGEST) -> bytes:
    """Render an input that `read_script` reads."""
    data = bytes((target, flags))
    for step in steps:
        piece = STEP.pack(*step[:4], len(step.body)) + step.body
        if len(data) + len(piece) > most:
            break
        data += piece
    return data


def _descriptor(sort: int) -> int:
    if sort < 5:
        fd = os.memfd_create("fuzz")
        os.ftruncate(fd, (4096, 64, 1 << 20, 0, 1)[sort])
        return fd
    if sort == 5:
        reading, writing = os.pipe()
        os.close(writing)
        return reading
    return os.open("/dev/null" if sort == 6 else "/", os.O_RDONLY)


class Hang(BaseException):
    """Unwind an input that takes too long."""


class Broken(Exception):
    """Say what does not hold although nothing was raised."""


class Caught(NamedTuple):
    """One thing that must not happen; those with the same key are one finding."""

    key: str
    text: str


class Watch:
    """Gather whatever goes wrong while an input runs."""

    def __init__(self) -> None:
        self.caught: list[Caught] = []
        signal.signal(signal.SIGALRM, self._too_long)
        sys.unraisablehook = lambda hook: self.note("ignored in __del__", hook.exc_value)
        for name in ("skyward", "asyncio"):
            logging.getLogger(name).propagate = False
            logging.getLogger(name).addHandler(_Handler(self))

    def note(self, where: str, error: BaseException | None) -> None:
        """Take note of an exception."""
        if isinstance(error, Hang):
            where = "hang"
        frames = traceback.extract_tb(error.__traceback__) if error is not None else []
        ours = [frame for frame in frames if "skyward" in frame.filename] or list(frames)
        place = f"{Path(ours[-1].filename).name}:{ours[-1].lineno} {ours[-1].name}" if ours else "-"
        text = re.sub(r"[0-9a-f]{4,}|\d+", "N", str(error)) if isinstance(error, Broken) else ""
        self.caught.append(
            Caught(f"{where}: {type(error).__name__} {text} at {place}", "".join(traceback.format_exception(error)))
        )

    def run(self, data: bytes) -> list[Caught]:
        """Run one input, and give what went wrong."""
        caught = self._once(data)
        if any(one.key.startswith("hang") for one in caught):
            # On a busy machine the process itself may have waited.
            again = {one.key for one in self._once(data)}
            caught = [one for one in caught if not one.key.startswith("hang") or one.key in again]
        return caught

    def _once(self, data: bytes) -> list[Caught]:
        self.caught = []
        before = _open_descriptors()
        try:
            # Again and again, because the first may be swallowed by a finalizer.
            signal.setitimer(signal.ITIMER_REAL, HANG, HANG)
            try:
                run_script(data, self)
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
        except (Hang, Exception) as error:
            self.note("raised", error)
        if _open_descriptors() - before:
            gc.collect()
            if left := _open_descriptors() - before:
                self.note("leak", Broken(f"descriptors stay open: {len(left)}"))
            close_all(tuple(left))
        return self.caught

    def _too_long(self, number: int, frame: FrameType | None) -> NoReturn:
        raise Hang(f"more than {HANG} s")


class _Handler(logging.Handler):
    """Take a logged exception for what it is."""

    def __init__(self, watch: Watch) -> None:
        super().__init__()
        self._watch = watch

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info:
            self._watch.note(record.getMessage(), record.exc_info[1])


def _open_descriptors() -> set[int]:
    found = map(int, os.listdir("/proc/self/fd"))
    return {fd for fd in found if _is_open(fd)}


def _is_open(fd: int) -> bool:
    """Tell a descriptor from the one that was open only to list the others."""
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


# Targets.


def run_script(data: bytes, watch: Watch) -> None:
    """Run one input against its target."""
    target, flags, steps = read_script(data)
    if target == PARSER:
        _parse(steps)
    elif target == CODECS:
        for step in steps:
            _decode(step)
    else:
        world = (ShellWorld if target == SHELL else AgentWorld)(watch, flags)
        try:
            world.play(steps)
        finally:
            world.close()


def _parse(steps: list[Step]) -> None:
    """However a stream is cut, it holds the same frames."""
    pieces = [piece for step in steps for piece in step.pieces()]
    cut, whole = _fed(pieces), _fed([b"".join(pieces)])
    if cut != whole:
        raise Broken("a stream that is cut holds other frames")


def _fed(pieces: list[bytes]) -> tuple[list[Frame], int] | None:
    parser, frames = Parser(), []
    try:
        for piece in pieces:
            frames += parser.feed(piece)
    except ProtocolError:
        return None
    return frames, parser.pending


def _decode(step: Step) -> None:
    body, at = step.body, step.lane % 40
    with contextlib.suppress(ProtocolError):
        match step.kind % 7:
            case 0 | 1:
                _look_at(decode(body, at, step.descriptors()), body[at:])
            case 2:
                read_parts(body, at)
            case 3:
                messages.decode_lines(body)
            case 4:
                if b"".join(map(messages.CALL.pack, messages.decode_calls(body))) != body:
                    raise Broken("calls are others when they are written again")
            case 5:
                messages.decode_facts(body)
            case 6:
                decode_json(body)


def _look_at(payload: Payload, body: bytes | None = None) -> None:
    """Read what a payload says it holds."""
    if body is not None and payload.encode() != body:
        raise Broken("a payload is another when it is written again")
    if not payload.parts or payload.size > 4 << 20:
        return
    if [len(view) for view in views(payload)] != [part.size for part in payload.parts]:
        raise Broken("a payload's parts are not as long as its table says")


class World:
    """A loop that is stepped by hand, with a link that is fed, and a healthy one beside it."""

    def __init__(self, watch: Watch) -> None:
        self.watch = watch
        self.now = 1000.0
        self.closed_with: list[Exception | None] = []
        self.loop = asyncio.new_event_loop()
        self.loop.time = lambda: self.now  # type: ignore[method-assign]
        self.loop.set_exception_handler(lambda _, context: watch.note("loop", context.get("exception")))
        self.ours, self.peer = socket.socketpair()
        healthy, self._probe = socket.socketpair()
        for sock in (self.peer, self._probe):
            sock.setblocking(False)
        self._healthy = Channel(self.loop, Batch(self.loop), healthy, self._echo, lambda error: None)
        self._answers = Parser()

    def play(self, steps: list[Step]) -> None:
        """Take all steps, and then see that the links are what they should be."""
        for step in steps:
            self.take(step)
        self.turn(3)
        self.check()
        self.peer.close()
        self.turn(4)
        self.check()
        if len(self.closed_with) != 1:
            raise Broken(f"a link whose other end is closed was closed {len(self.closed_with)} times")
        error = self.closed_with[0]
        if error is not None and not isinstance(error, TransportError):
            raise error

    def take(self, step: Step) -> None:
        """Take one step."""
        if step.way == EVENT:
            self.event(step)
            self.turn(2)
        elif step.way in (WORKER, OUTPUT):
            self.from_worker(step)
        else:
            self.send(self.peer, step)

    def event(self, step: Step) -> None:
        """Let something happen that is no frame."""

    def from_worker(self, step: Step) -> None:
        """Let a worker send something."""

    def send(self, sock: socket.socket, step: Step) -> None:
        """Send what a step holds, and let the loop read it."""
        fds = step.descriptors()
        try:
            pieces = step.pieces()
            for piece in pieces:
                ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array("i", fds))] if fds else []
                # A link that was closed, or one that is full and not read, takes nothing more.
                with contextlib.suppress(OSError):
                    sock.sendmsg([piece], ancillary)
                close_all(tuple(fds))
                fds = []
                # Frames of which several are read at once, else.
                if len(pieces) > 1 or not step.fds & 0x40:
                    self.turn(1)
        finally:
            close_all(tuple(fds))

    def turn(self, times: int) -> None:
        """Let the loop run so many rounds."""
        for _ in range(times):
            self.loop.call_soon(self.loop.stop)
            self.loop.run_forever()
            self.drain()

    def drain(self) -> None:
        """Read what the end under test sends."""
        _received(self.peer)

    def check(self) -> None:
        """See that the healthy link answers."""
        self._probe.send(encode(Kind.CREDIT, b"probe"))
        for _ in range(_TURNS):
            self.turn(1)
            if self._answers.feed(_received(self._probe)):
                return
        raise Broken("the healthy link answers no more")

    def close(self) -> None:
        """Let go of everything."""
        for sock in (self.ours, self.peer, self._probe):
            sock.close()
        self._healthy.close()
        self.loop.close()

    def _echo(self, frame: Frame, fds: tuple[int, ...]) -> None:
        self._healthy.send(encode(frame.kind, frame.body))


def _received(sock: socket.socket) -> bytes:
    """Read what there is; descriptors are dropped by the kernel."""
    data = b""
    with contextlib.suppress(OSError):
        while piece := sock.recv(1 << 17):
            data += piece
    return data


class ShellWorld(World):
    """A client's view of a node that sends anything."""

    def __init__(self, watch: Watch, flags: int) -> None:
        super().__init__(watch)
        self.batch = Batch(self.loop)
        instance = Instance(id="i", node=0, provider="sham")
        self._shell = NodeShell(self, 0, instance, InstanceInfo())  # type: ignore[arg-type]
        self._shell.host = self  # type: ignore[assignment]
        self._shell.on_call_frame = self._on_call_frame
        self._shell.on_emitted = lambda shell, payload: _look_at(payload)
        Channel(self.loop, self.batch, self.ours, self._shell._on_frame, self._on_closed)
        if flags & 1:
            self._shell._ready.set_result(None)
        if flags & 2:
            self._shell._refreshed = self.loop.create_future()

    def last_words(self) -> str:
        """Stand in for the host."""
        return "-"

    def event(self, step: Step) -> None:
        """Let the client ask for something, or the node's end be shut down."""
        match step.kind % 3:
            case 0:
                self._shell._refreshed = self.loop.create_future()
            case 1:
                self._shell.leaving = True
            case 2:
                with contextlib.suppress(OSError):
                    self.peer.shutdown(socket.SHUT_WR)

    def _on_closed(self, error: Exception | None) -> None:
        self.closed_with.append(error)
        self._shell._on_closed(error)
        if not self._shell._ready.done() or not self._shell._stopped.done():
            raise Broken("a node whose link is closed is still waited for")

    @staticmethod
    def _on_call_frame(shell: NodeShell, frame: Frame, fds: tuple[int, ...]) -> None:
        """Read what the dispatcher reads."""
        match frame.kind:
            case Kind.RESULT:
                status = messages.RESULT.unpack_from(frame.body)[1]
                if status == Status.OK:
                    _look_at(decode(frame.body, messages.RESULT.size, fds))
                    return
                close_all(fds)
                if status == Status.FAILED:
                    messages.decode_facts(frame.body[messages.RESULT.size :])
            case Kind.ITEM:
                messages.ITEM.unpack_from(frame.body)
                _look_at(decode(frame.body, messages.ITEM.size, fds))
            case Kind.CREDIT:
                messages.CREDIT.unpack(frame.body)
            case Kind.RECALLED:
                messages.decode_calls(frame.body)


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
        self.boards = 0
        self._told = Parser()
        self._mark = os.environ.get(MARK)
        self._agent = Agent(self.loop, str(self.directory / "node"))
        self._on_client_closed = self._agent._on_client_closed
        self._agent._on_client_closed = self._closed  # type: ignore[method-assign]
        self._agent.serve(self.ours)
        if flags & 1:
            self._begin(flags)

    def event(self, step: Step) -> None:
        """Let time pass, a worker take a call or die, or the client's end be shut down."""
        processes = list(self._agent._processes.values())
        process = processes[step.lane % len(processes)] if processes else None
        match step.kind % 5:
            case 0:
                self.now += 0.06
            case 1:
                self.now += 6.0
            case 2 if process is not None and process.slots:
                process.board.start(step.fds % process.slots, step.how >> 4, 0)
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
        pid = (1 << 30) + self.boards
        self.workers[pid] = worker
        return pid

    def drain(self) -> None:
        """Read what the agent sends; our own parser must take it."""
        sent = [(self.peer, self._told, "client")]
        sent += [
            (sock, parser, "worker")
            for worker in self.workers.values()
            for sock, parser in zip(worker.sockets, worker.parsers, strict=True)
        ]
        for sock, parser, name in sent:
            try:
                parser.feed(_received(sock))
            except ProtocolError as error:
                parser._rest = b""
                raise Broken(f"the agent sent a {name} what its parser refuses: {error}") from error

    def check(self) -> None:
        """See besides that files were written where they belong."""
        super().check()
        if {path.name for path in self.directory.iterdir()} - {"node"}:
            raise Broken("files were written outside the node's directory")

    def close(self) -> None:
        """Let go of everything, as a node does that is given up."""
        try:
            self._agent.leave()
            for pid in list(self._agent._processes):
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
        self.peer.send(encode_json(Kind.HELLO, {"version": VERSION}))
        self.peer.send(_start(_config(lanes=1 + (flags >> 1 & 1), slots=1 + (flags >> 2 & 1), app=bool(flags & 8))))
        self.turn(2)
        for step in (Step(13, KINDS.index(Kind.READY), 0, 0, b'{"environment": {}}'),) * (2 if flags & 8 else 1):
            for lane in range(len(self.workers)):
                self.from_worker(step._replace(lane=lane))
        for number in range(_DIGESTS) if flags & 16 else ():
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
        process = self._agent._processes.pop(pid)
        self._agent._batch.open()
        process.gone(status)
        self._agent._batch.flush()
        self._forget(pid)

    def _forget(self, pid: int) -> None:
        worker = self.workers.pop(pid, None)
        if worker is not None:
            close_all(worker.output)
            for sock in worker.sockets:
                sock.close()


def _no_processes() -> None:
    """Have agents start no process and kill none."""

    def board(slots: int) -> Board:
        AgentWorld.current.boards += 1
        if AgentWorld.current.boards > _SPAWNS or slots > _SLOTS:
            raise ProtocolError("More workers than a fuzzed agent may have.")
        return new_board(slots)

    def spawn(argv: Any, env: Any, fds: Any) -> int:
        return AgentWorld.current.spawn(argv, env, fds)

    process_module.new_board = board
    process_module.end_group = lambda pid: None
    process_module._spawn = spawn


# Inputs.

_CALLS = (0, 1, 1, 1, 2, 3, (1 << 64) - 1)
_SIZES = (0, 1, 2, 63, 64, 65, 4096, 1 << 20, (1 << 64) - 1)
_ODD: tuple[Any, ...] = (
    *(None, True, 0, -1, 1, 1 << 70, 0.5, math.nan, math.inf, "", "x", "\ud800", "\0", "../x", "a/b", "x" * 300),
    *([], [1], [[]], ["a"], {}, {"a": 1}),
)
_FROM_NODE = (
    Kind.RESULT, Kind.RECALLED, Kind.ITEM, Kind.CREDIT, Kind.LOG, Kind.EMIT, Kind.READY, Kind.REFRESHED,
    Kind.FAILED, Kind.WORKER, Kind.STOPPED, Kind.WELCOME, Kind.METRIC,
)  # fmt: skip
_FROM_CLIENT = (
    Kind.TASK, Kind.TASK, Kind.FUNCTION, Kind.BLOB, Kind.DROP, Kind.FILES, Kind.CREDIT, Kind.ITEM, Kind.END,
    Kind.RECALL, Kind.CANCEL, Kind.MEMBERS, Kind.LOG_READ, Kind.HELLO, Kind.START, Kind.REFRESH, Kind.STOP,
)  # fmt: skip
_FROM_WORKER = (Kind.RESULT, Kind.ITEM, Kind.CREDIT, Kind.EMIT, Kind.RECALLED, Kind.READY, Kind.FAILED)


def _config(*, lanes: int = 1, slots: int = 1, app: bool = False) -> dict[str, Any]:
    command = {"argv": ["python"], "env": {"A": "b"}}
    return {
        "mark": "fuzz",
        "slots": slots,
        "reuse_processes": True,
        "lanes": [{**command, "facts": {}}] * lanes,
        "app_host": command if app else None,
    }


def _start(config: Any) -> bytes:
    text = json.dumps(config).encode()
    return encode(Kind.START, len(text).to_bytes(4, "little") + text + b"plugins")


class Composer:
    """
    Make and change scripts.

    Args:
        seed: What it does is decided by it.
    """

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def script(self, target: int) -> bytes:
        """Make a script of steps that are nearly right."""
        steps = [self._step(target) for _ in range(self._random.randrange(1, 10))]
        return write_script(target, self._random.randrange(256), steps)

    def change(self, data: bytes, most: int) -> bytes:
        """Change a script by a step, so that it stays one."""
        chosen = self._random
        target, flags, steps = read_script(data)
        if not steps or chosen.random() < 0.03:
            return self.script(chosen.choice(TARGETS))[:most]
        for _ in range(chosen.choice((1, 1, 1, 2, 4))):
            at = chosen.randrange(len(steps)) if steps else 0
            match chosen.randrange(9):
                case 0 | 1 | 2:
                    steps.insert(at, self._step(target))
                case 3 if steps:
                    del steps[at]
                case 4 if steps:
                    steps.insert(at, chosen.choice(steps))
                case 5 if steps:
                    steps[at] = self._step(target)
                case 6 if steps:
                    steps[at] = steps[at]._replace(body=bytes(atheris.Mutate(steps[at].body or b"\0", 1024)))
                case 7 if steps:
                    steps[at] = steps[at]._replace(
                        **{chosen.choice(("how", "kind", "lane", "fds")): chosen.randrange(256)}
                    )
                case 8:
                    flags ^= 1 << chosen.randrange(5)
        return write_script(target, flags, steps, most)

    def _step(self, target: int) -> Step:
        chosen = self._random
        lane = chosen.choice((0, 0, 0, 1, 2, 128, 255))
        cut = chosen.choice((0, 0, 0, chosen.randrange(16))) << 4
        how = chosen.choice((0,) * 16 + tuple(range(16)))
        together = chosen.choice((0, 0, 0x40))
        if target == CODECS:
            return self._codec(lane)
        if target == AGENT and (chosen.random() < 0.35 or how >= 13):
            how = chosen.choice((13, 13, 13, 14, 15))
        if how == 14:
            return Step(how | cut, 0, lane, 0, self._printed())
        if how == 15:
            return Step(how | cut, chosen.randrange(5), lane, chosen.randrange(256), b"")
        kinds = _FROM_NODE if target == SHELL else _FROM_WORKER if how == 13 else _FROM_CLIENT
        kind = chosen.choice(kinds if chosen.random() < 0.95 else KINDS)
        body, fds = self._body(kind)
        if chosen.random() < 0.05:
            body = body[: chosen.randrange(len(body) + 1)]
        return Step(how | cut, KINDS.index(kind), lane, fds | together, body)

    def _codec(self, lane: int) -> Step:
        kind = self._random.randrange(7)
        kinds = (Kind.RESULT, Kind.ITEM, Kind.TASK, Kind.LOG, Kind.RECALLED, Kind.WORKER, Kind.HELLO)
        if kind <= 2:
            body, fds = self._payload()
            at = self._random.choice((0, 1, 12, 39))
            return Step(0, kind, at, fds, bytes(at) + body)
        return Step(0, kind, lane, 0, self._body(kinds[kind])[0])

    def _body(self, kind: Kind) -> tuple[bytes, int]:
        """Make the body of a frame, and say with which descriptors it travels."""
        chosen = self._random
        call, payload, fds = chosen.choice(_CALLS), b"", 0
        if kind in (Kind.TASK, Kind.FUNCTION, Kind.RESULT, Kind.ITEM, Kind.EMIT, Kind.FILES):
            payload, fds = self._payload()
        digest = bytes((chosen.randrange(_DIGESTS),))
        match kind:
            case Kind.TASK:
                timeout = chosen.choice((0.0, 0.0, 0.01, 5.0, math.nan, math.inf, -1.0))
                return messages.TASK.pack(call, timeout, 1, chosen.randrange(4), digest * 16) + payload, fds
            case Kind.FUNCTION:
                return messages.FUNCTION.pack(digest * 16, chosen.randrange(4)) + payload, fds
            case Kind.RESULT if chosen.random() < 0.4:
                return messages.RESULT.pack(call, Status.FAILED, 0.1) + self._json(_FACTS), 0
            case Kind.RESULT | Kind.EMIT:
                return messages.RESULT.pack(call, chosen.choice((0, 0, 0, 1, 2, 3, 4, 9)), 0.5) + payload, fds
            case Kind.ITEM:
                return messages.ITEM.pack(call, 0) + payload, fds
            case Kind.END:
                return messages.ITEM.pack(call, 0), 0
            case Kind.CREDIT:
                return messages.CREDIT.pack(call, 0, chosen.choice((0, 1, 16, (1 << 32) - 1))), 0
            case Kind.CANCEL:
                return messages.CANCEL.pack(call, chosen.randrange(3)), 0
            case Kind.RECALLED:
                return b"".join(messages.CALL.pack(chosen.choice(_CALLS)) for _ in range(chosen.randrange(4))), 0
            case Kind.LOG_READ:
                return messages.CALL.pack(call), 0
            case Kind.BLOB:
                return messages.BLOB.pack(digest * 32, chosen.choice(_SIZES)), chosen.choice((1, 1, 9, 25, 41, 49, 3))
            case Kind.DROP:
                return digest * chosen.choice((16, 32, 32, 5)), 0
            case Kind.FILES if chosen.random() < 0.7:
                return self._files(), 0
            case Kind.FILES:
                return payload, fds
            case Kind.LOG:
                lines = [LogLine(call, chosen.choice(("", "text", "\ud800", "é" * 20)))] * chosen.randrange(4)
                return encode_lines(chosen.choice((1, 2, 3)), lines), 0
            case Kind.START:
                config = _config(lanes=chosen.randrange(4), slots=chosen.choice((0, 1, 2)), app=chosen.random() < 0.3)
                text = self._json(config)
                return len(text).to_bytes(4, "little") + text + b"plugins", 0
            case _:
                return self._json(_OBJECTS.get(kind, {})), 0

    def _payload(self) -> tuple[bytes, int]:
        """Make a payload, and say with which descriptors it travels."""
        chosen = self._random
        if chosen.random() < 0.3:
            return Payload((), chosen.randbytes(chosen.choice((0, 1, 20)))).encode(), chosen.choice((0, 0, 0, 1, 41))
        if chosen.random() < 0.1:
            return pack([b"x" * chosen.randrange(9) for _ in range(chosen.randrange(1, 4))]).encode(), 0
        table, inline, segment, stored = [], b"", 0, 0
        places = chosen.choice(((0, 0, 1, 2, 2), (2,)))
        for _ in range(chosen.choice((1, 1, 2, 3, 3, 70))):
            place = chosen.choice(places)
            size = chosen.choice(_SIZES) if chosen.random() < 0.3 else chosen.randrange(70)
            digest = b""
            if place == 0:
                inline += bytes(min(size, 100))
            elif place == 1:
                segment = 1
            else:
                stored += 1
                digest = bytes((chosen.randrange(_DIGESTS),)) * 32
            table.append(bytes((place,)) + size.to_bytes(8, "little") + digest)
        count = chosen.choice((len(table), len(table), len(table), 0, 1, 300))
        fds = next((code for code, fds in enumerate(COUNTS) if fds == segment + stored), 0)
        if chosen.random() < 0.3:
            fds = chosen.choice((0, segment, 1, 3, 7))
        return count.to_bytes(2, "little") + b"".join(table) + inline, fds | chosen.choice((0, 0, 1, 2, 3, 5, 6)) << 3

    def _files(self) -> bytes:
        chosen = self._random
        names = ("a.py", "b/c.py", "a.py/d.py", "b", "", "/x", "../x", "b/../../x", "x" * 300, "\ud800", "\0", ".")
        paths: Any = [chosen.choice(names) for _ in range(chosen.randrange(4))]
        if chosen.random() < 0.2:
            paths = chosen.choice((*_ODD, [*paths, chosen.choice(_ODD)]))
        count = len(paths) if isinstance(paths, list) and chosen.random() < 0.8 else chosen.randrange(3)
        return pack([json.dumps(paths).encode(), *(chosen.randbytes(3) for _ in range(count))]).encode()

    def _json(self, value: Any) -> bytes:
        if self._random.random() < 0.5:
            value = self._changed(value)
        text = json.dumps(value).encode()
        return text if self._random.random() < 0.97 else text[:-1] + self._random.choice((b"", b"[" * 1500, b"\xff"))

    def _changed(self, value: Any) -> Any:
        """Change one thing somewhere inside."""
        chosen = self._random
        if not isinstance(value, (dict, list)) or not value or chosen.random() < 0.2:
            return chosen.choice(_ODD)
        at: Any = chosen.choice(list(value)) if isinstance(value, dict) else chosen.randrange(len(value))
        copy: Any = value.copy()
        if chosen.random() < 0.2:
            del copy[at]
        else:
            copy[at] = self._changed(value[at])
        return copy

    def _printed(self) -> bytes:
        chosen = self._random
        pieces = (
            *(b"\x1e1\x1f", b"\x1e2\x1d", b"\x1effffffffffffffff1\x1f"),
            *(b"text", b"\n", b"\x1e", b"\xff\xc3", b"\x1d"),
        )
        return b"".join(chosen.choice(pieces) for _ in range(chosen.randrange(1, 12)))


_FACTS = {"error": "WorkerDiedError", "message": "m", "output": ["a"], "exit_code": 1, "signal": None, "culprit": 1}
_OBJECTS: dict[Kind, dict[str, Any]] = {
    Kind.HELLO: {"version": VERSION},
    Kind.WELCOME: {"version": VERSION, "pid": 1, "hostname": "h", "port": 1},
    Kind.STOP: {"grace": 1.0},
    Kind.MEMBERS: {"version": 1, "members": []},
    Kind.WORKER: {"message": "m", "output": ["a"], "exit_code": 1, "signal": None},
    Kind.READY: {"environment": {"A": "b"}, "lanes": 1},
}


# The run.


class Found(NamedTuple):
    """A finding: its key, the smallest input so far, what went wrong with it, and how often."""

    key: str
    data: bytes
    text: str
    times: int


class Fuzzer:
    """
    Run inputs until the time is over.

    Args:
        seconds: How long.
        seed: What everything that is drawn is decided by.
        corpus: Where inputs that reached something new are kept.
        log: What libFuzzer writes.
    """

    def __init__(self, seconds: float, seed: int, corpus: Path, log: Path) -> None:
        self._watch = Watch()
        self._began = time.monotonic()
        self._end = self._began + seconds
        self._seed = seed
        self._corpus = corpus
        self._log = log
        self._inputs = 0
        self._found: dict[str, Found] = {}
        self._leaks: dict[frozenset[str], str] = {}

    def take(self, data: bytes) -> None:
        """Run one input that libFuzzer made."""
        if not self._inputs % 256:
            # For what hangs outside Python, where no signal is handled.
            faulthandler.dump_traceback_later(120, exit=True, file=sys.__stdout__)
        self._inputs += 1
        for key, text in self._watch.run(data):
            if key.startswith("leak"):
                self._leak(key, data, text)
            else:
                self._find(key, Found(key, data, text, 1))
        if time.monotonic() >= self._end:
            self._finish()

    def _find(self, name: str, found: Found) -> None:
        known = self._found.get(name)
        if known is None:
            print(f"finding: {name}", flush=True)
            self._found[name] = found
        else:
            least = min(known, found, key=lambda one: len(one.data))
            self._found[name] = least._replace(times=known.times + 1)

    def _leak(self, key: str, data: bytes, text: str) -> None:
        """Name a leak by the steps that it needs, unless leaks that are known explain it."""
        target, flags, steps = read_script(data)
        names = {_name(target, step) for step in steps}
        known = [leak for leak in self._leaks if leak <= names]
        if known:
            explained = frozenset().union(*known)
            data = write_script(target, flags, [step for step in steps if _name(target, step) not in explained])
            if all(one.key != key for one in self._watch.run(data)):
                name = self._leaks[known[0]]
                self._find(name, self._found[name])
                return
        data, text = self._minimal(Found(key, data, text, 1), 5.0)
        needed = frozenset(_name(target, step) for step in read_script(data)[2])
        name = self._leaks.setdefault(needed, f"leak: {', '.join(sorted(needed)) or 'nothing'}")
        self._find(name, Found(key, data, text, 1))

    def _finish(self) -> NoReturn:
        """Tell what was found, and leave without a word of libFuzzer's."""
        faulthandler.cancel_dump_traceback_later()
        seconds = time.monotonic() - self._began
        for name, found in sorted(self._found.items()):
            data, text = self._minimal(found, _MINIMIZING)
            file = f"finding-{hashlib.sha256(name.encode()).hexdigest()[:10]}"
            (self._corpus / file).write_bytes(data)
            print(f"\n{name}\n  {found.times} times; {file}: {data.hex()}")
            for line in describe(data):
                print(f"    {line}")
            print("  " + text.replace("\n", "\n  ").rstrip())
        edges = re.findall(rb"cov: (\d+)", self._log.read_bytes())
        print(
            f"{self._inputs} inputs in {seconds:.0f} s, {int(edges[-1]) if edges else 0} coverage edges, "
            f"{len(self._found)} findings (seed {self._seed})",
            flush=True,
        )
        os._exit(1 if self._found else 0)

    def _minimal(self, found: Found, seconds: float) -> tuple[bytes, str]:
        """Leave out whatever a finding does not need."""
        until = time.monotonic() + seconds
        key, data, text, _ = found
        smaller = _smaller(data)
        while time.monotonic() < until and (candidate := next(smaller, None)) is not None:
            again = [one.text for one in self._watch.run(candidate) if one.key == key]
            if again:
                data, text = candidate, again[0]
                smaller = _smaller(data)
        return data, text


def _name(target: int, step: Step) -> str:
    """Name what a step is, whatever it holds."""
    if step.way in (RAW, OUTPUT, EVENT):
        return ("bytes", "output", "event")[(RAW, OUTPUT, EVENT).index(step.way)]
    by = "worker's " if step.way == WORKER else "node's " if target == SHELL else "client's "
    return by + step.name


def _smaller(data: bytes) -> Iterator[bytes]:
    """Give scripts that are a little shorter or plainer than one."""
    target, flags, steps = read_script(data)
    if (plain := write_script(target, flags & 31, steps)) != data:
        yield plain
    for at, step in enumerate(steps):
        yield write_script(target, flags, steps[:at] + steps[at + 1 :])
        plainer = [{"how": step.how & 15}, {"lane": 0}, {"fds": step.fds & 7}, {"fds": 0}]
        bodies = [step.body[: len(step.body) // 2], step.body[len(step.body) // 2 :], step.body[:-1], step.body[1:]]
        for other in (*(step._replace(**fields) for fields in plainer), *(step._replace(body=b) for b in bodies)):
            if other != step:
                yield write_script(target, flags, [*steps[:at], other, *steps[at + 1 :]])


def describe(data: bytes) -> list[str]:
    """Say in words what an input does."""
    target, flags, steps = read_script(data)
    lines = [f"{('parser', 'codecs', 'node shell', 'agent')[target]}, flags {flags:#x}"]
    for step in steps:
        way = ("frame", "wrong length", "wrong kind", "wrong fds", "raw", "worker", "output", "event")[step.way]
        if target == CODECS:
            kind = ("decode", "decode", "parts", "lines", "calls", "facts", "json")[step.kind % 7]
        elif step.way == EVENT:
            kind = (
                ("tick", "seconds", "begins", "dies", "shutdown")[step.kind % 5] if target == AGENT else str(step.kind)
            )
        else:
            kind = step.name
        cut = f" cut={step.how >> 4}" if step.how >> 4 else ""
        sent = f"{COUNTS[step.fds & 7]} of sort {step.fds >> 3 & 7}"
        lines.append(f"{way} {kind} lane={step.lane} fds={step.fds:#x} ({sent}){cut} body={step.body!r}")
    return lines


def _quiet(log: Path) -> None:
    """Send descriptor 2 to a file, because libFuzzer writes there what only we read."""
    with log.open("wb") as file:
        os.dup2(file.fileno(), 2)


def main() -> None:
    """Read the command line and fuzz."""
    parser = argparse.ArgumentParser(description="Fuzz whatever reads bytes of a link, guided by coverage.")
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--seed", type=int, default=None, help="decides what is drawn; by default a new one")
    parser.add_argument("--corpus", type=Path, default=None, help="a folder for inputs that reached something new")
    parser.add_argument("--replay", type=Path, default=None, help="run one input and tell what goes wrong")
    given = parser.parse_args()
    home = Path(tempfile.mkdtemp(prefix="fuzz-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None))
    (home / "agent").mkdir()
    AgentWorld.directory = home / "agent"
    _no_processes()
    gc.collect()
    gc.freeze()  # what is here stays, and need not be looked at for each leak
    if given.replay is not None:
        data = given.replay.read_bytes()
        print("\n".join(describe(data)))
        caught = Watch().run(data)
        print("\n".join(f"{one.key}\n{one.text}" for one in caught) or "nothing goes wrong")
        shutil.rmtree(home)
        sys.exit(bool(caught))
    seed = given.seed if given.seed is not None else random.SystemRandom().randrange(1, 1 << 31)
    print(f"seed {seed}", flush=True)
    corpus = given.corpus or home / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    seeds = home / "seeds"
    seeds.mkdir()
    for number in range(400):
        (seeds / f"{number:03}").write_bytes(Composer(seed * 1000 + number).script(number % len(TARGETS)))
    fuzzer = Fuzzer(given.seconds, seed, corpus, home / "log")

    def mutate(data: bytes, most: int, draw: int) -> bytes:
        if draw % 4 == 0:
            return bytes(atheris.Mutate(data, most))
        return Composer(draw).change(data, most)

    # A child does the work, so that what it leaves is removed however it ends.
    child = os.fork()
    if not child:
        _quiet(home / "log")
        options = ("timeout=0", "rss_limit_mb=4096", f"max_len={LONGEST}", "len_control=0", f"seed={seed & 0xFFFFFFFF}")
        take: Callable[[bytes], None] = fuzzer.take
        atheris.Setup(
            [sys.argv[0], str(corpus), str(seeds), *(f"-{option}" for option in options)], take, custom_mutator=mutate
        )
        atheris.Fuzz()
    try:
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if code not in (0, 1):
            print((home / "log").read_text(errors="replace")[-4000:])
            print(f"The fuzzer itself ended with {code} (seed {seed}).")
    finally:
        shutil.rmtree(home, ignore_errors=True)
    sys.exit(code)


if __name__ == "__main__":
    main()
