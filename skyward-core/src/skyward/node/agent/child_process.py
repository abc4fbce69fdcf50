"""One child process of the agent: its sockets, its output, its end."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import select
import signal
import socket
import sys
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from skyward.errors import ProtocolError
from skyward.link.channel import Batch, Channel
from skyward.link.frames import Frame, Kind, decode_json, encode
from skyward.link.messages import BLOB, LogLine
from skyward.link.payload_parts import MOST_BUFFERS
from skyward.link.segment import Segment
from skyward.node.agent.descendants import end_group
from skyward.node.agent.dump_file import DumpFile
from skyward.node.agent.entry import CONTROL_FD, DUMP_FD, SLOT_TABLE_FD, TASK_FD
from skyward.node.agent.out_of_memory import kills, limit_mb, total_mb
from skyward.node.agent.slot_table import RunningCall, new_slot_table
from skyward.node.worker.tagged_lines import TaggedReader

_READ = 64 << 10
_LAST_LINES = 100
_ABOVE_TARGETS = 10
_PEAK_UNIT = 1 if sys.platform == "darwin" else 1024


class Pipe:
    """
    Read what a process writes to one of its standard streams.

    Args:
        stream: 1 for stdout, 2 for stderr.
        fd: The end to read; the pipe closes it.
    """

    def __init__(self, stream: int, fd: int) -> None:
        self.stream = stream
        self.fd = fd
        self._reader = TaggedReader()
        os.set_blocking(fd, False)

    def read(self) -> tuple[list[tuple[int | None, str]], bool]:
        """Return the lines that came, and whether there may be more."""
        try:
            data = os.read(self.fd, _READ)
        except BlockingIOError:
            return [], False
        if not data:
            return self._reader.finish(), False
        return self._reader.feed(data), len(data) == _READ

    def close(self) -> None:
        """Close the end to read."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


class ChildProcess:
    """
    Run one worker, or the app host, and report how it ends.

    Args:
        loop: The agent's loop.
        batch: Where the agent gathers writes.
        argv: The command line.
        env: Its whole environment.
        lane: Its lane.
        slots: How many calls it runs at once.
        on_frame: Called with each frame it sends.
        on_put: Called with names and buffers that tasks put, once a result names them.
        on_lines: Called with each batch of lines it writes: stream, lines.
        on_ended: Called once when it is gone, and all it sent was read.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        batch: Batch,
        *,
        argv: Sequence[str],
        env: Mapping[str, str],
        lane: int,
        slots: int,
        on_frame: Callable[[ChildProcess, Frame, tuple[int, ...]], None],
        on_put: Callable[[dict[bytes, Segment]], None],
        on_lines: Callable[[ChildProcess, int, list[LogLine]], None],
        on_ended: Callable[[ChildProcess], None],
    ) -> None:
        self._loop = loop
        self._on_lines = on_lines
        self._on_ended = on_ended
        self._gone = False
        self.lane = lane
        self.slots = slots
        self.ready = False
        self.exit_status: int | None = None
        self.killed_for = ""
        self.retires = False
        self.running: list[RunningCall] = []
        self.in_flight: dict[int, float] = {}
        self._shared = False
        self.known: set[bytes] = set()
        self.last_lines: deque[LogLine] = deque(maxlen=_LAST_LINES)
        self._kills_before = kills()
        self._peak_mb = 0.0
        self.slot_table = new_slot_table(slots)
        self.dump_file = DumpFile()
        # Where calls were when they ran out of time; None while that is asked.
        self.stacks: dict[int, list[str] | None] = {}
        # Its threads, and the tasks of its event loops; None while it has not sent them.
        self.own_stacks: dict[str, list[Any]] | None = None
        tasks, its_tasks = socket.socketpair()
        control, its_control = socket.socketpair()
        for end in (tasks, its_tasks):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        out, its_out = os.pipe()
        err, its_err = os.pipe()
        self.pipes = [Pipe(1, out), Pipe(2, err)]
        # Asked before each result: cheaper than reading two pipes that are empty.
        self._waiting_output = select.poll()
        for pipe in self.pipes:
            self._waiting_output.register(pipe.fd, select.POLLIN)
        try:
            ours = [its_tasks.fileno(), its_control.fileno(), self.slot_table.fd, self.dump_file.fd]
            self.pid = _spawn(argv, env, [its_out, its_err, *ours])
        except BaseException:
            for end in (tasks, control):
                end.close()
            for pipe in self.pipes:
                pipe.close()
            self.slot_table.close()
            self.dump_file.close()
            raise
        finally:
            for end in (its_tasks, its_control):
                end.close()
            os.close(its_out)
            os.close(its_err)
        self._on_frame = on_frame
        self._on_put = on_put
        self._put: dict[bytes, Segment] = {}
        self.tasks = Channel(loop, batch, tasks, self._take, self._cut_off)
        self.control = Channel(loop, batch, control, lambda frame, fds: None, lambda _: None)
        self._listening = False
        self.listen()

    def start(self, config: dict[str, Any], plugins_pickle: bytes) -> None:
        """Send the first frame, which says what the process is to be."""
        text = json.dumps(config).encode()
        self.tasks.send(encode(Kind.START, len(text).to_bytes(4, "little") + text + plugins_pickle))

    def forget(self, digest: bytes) -> None:
        """Send the worker the order to drop a function, if it has it."""
        if digest in self.known:
            self.known.discard(digest)
            self.tasks.send(encode(Kind.DROP, digest))

    def began(self, call: int, timeout: float) -> None:
        """Record that a call is sent to it."""
        if self.in_flight and self.slots > 1 and not self._shared:
            self._shared = True
            self.control.send(encode(Kind.SHARE, b"\1"))
        self.in_flight[call] = timeout

    def ended(self, call: int) -> None:
        """Record that a call came back."""
        self.in_flight.pop(call, None)
        if self._shared and not self.in_flight:
            self._shared = False
            self.control.send(encode(Kind.SHARE, b"\0"))

    def listen(self) -> None:
        """Read its output as it comes."""
        if not self._listening and not self._gone:
            self._listening = True
            for pipe in self.pipes:
                self._loop.add_reader(pipe.fd, self._read, pipe)

    def deafen(self) -> None:
        """Stop reading its output; a process that writes more than a pipe holds will wait."""
        if self._listening:
            self._listening = False
            for pipe in self.pipes:
                self._loop.remove_reader(pipe.fd)

    def drain_output(self, call: int = 0) -> None:
        """Read the output that is there now; lines that do not say whose they are count as `call`'s."""
        if not self._waiting_output.poll(0):
            return
        for pipe in self.pipes:
            more = True
            while more:
                more = self._read(pipe, call)

    def kill(self, why: str = "") -> None:
        """End it and what it started."""
        self.killed_for = self.killed_for or why
        if self.exit_status is None:
            end_group(self.pid)

    def gone(self, status: int, peak: int) -> None:
        """Record that the process was reaped with this wait status, and of the most memory that it ever held."""
        self.exit_status = status
        self._peak_mb = peak * _PEAK_UNIT / 1e6
        end_group(self.pid)
        # It sends nothing more, so the rest is read, however much waits for the client.
        self.tasks.resume()
        self.tasks.drain()
        self.running = self.slot_table.running()
        self.drain_output(self.running[0].call if len(self.running) == 1 else 0)
        for pipe in self.pipes:
            if rest := pipe._reader.finish():
                self._tell(pipe.stream, rest, 0)
        self.deafen()
        self._gone = True
        for pipe in self.pipes:
            pipe.close()
        self.tasks.close()
        self.control.close()
        self.slot_table.close()
        self.dump_file.close()
        self._on_ended(self)

    def cause(self) -> dict[str, Any]:
        """Return how it ended: exit code or signal, and after a SIGKILL what is known of memory, in MB."""
        status = self.exit_status or 0
        number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
        facts: dict[str, Any] = {
            "exit_code": os.WEXITSTATUS(status) if os.WIFEXITED(status) else None,
            "signal": signal_name(number) if number else None,
        }
        if number == signal.SIGKILL:
            facts["memory"] = {
                "ran_out": kills() > self._kills_before,
                "peak": self._peak_mb,
                "limit": limit_mb(),
                "total": total_mb(),
            }
        return facts

    def culprit(self) -> int:
        """Name the call whose thread crashed; 0 if that can't be known."""
        if len(self.running) == 1:
            return self.running[0].call
        for line in self.last_lines:
            for running in self.running:
                if line.text.startswith("Current thread") and f"{running.thread:x}" in line.text:
                    return running.call
        return 0

    def _take(self, frame: Frame, fds: tuple[int, ...]) -> None:
        """Take a frame; what tasks put is kept once the result is here that names it."""
        if frame.kind == Kind.BLOB:
            if len(fds) != 1 or len(frame.body) != BLOB.size or len(self._put) >= MOST_BUFFERS:
                raise ProtocolError("A worker handed over what is no buffer, or too many.")
            name, size = BLOB.unpack(frame.body)
            self._put[name] = segment = Segment(fds[0], size)
            segment.expect(size)
            return
        if frame.kind == Kind.STACKS:
            said = decode_json(frame.body)
            self.own_stacks = {"threads": list(said["threads"]), "tasks": list(said["tasks"])}
            return
        if self._put:
            put, self._put = self._put, {}
            self._on_put(put)
        self._on_frame(self, frame, fds)

    def _cut_off(self, error: Exception | None) -> None:
        """End a process that can be spoken to no more: its code wrote to our socket, or closed it."""
        if error is not None and not self._gone:
            self.last_lines.append(LogLine(0, f"{error} User code wrote to descriptor {TASK_FD}, which is not its."))
            self.kill()

    def _read(self, pipe: Pipe, call: int = 0) -> bool:
        lines, more = pipe.read()
        if lines:
            self._tell(pipe.stream, lines, call)
        return more

    def _tell(self, stream: int, lines: list[tuple[int | None, str]], call: int) -> None:
        if not call and self.slots == 1:
            call = self._talking()
        lines_sent = [LogLine(its_call or call, text) for its_call, text in lines]
        self.last_lines.extend(lines_sent)
        self._on_lines(self, stream, lines_sent)

    def _talking(self) -> int:
        """Name the only call that can have written what is there now; 0 if there is none."""
        if running := self.slot_table.running():
            return running[0].call
        # It is over, and its result waits to be read as what it wrote does.
        return next((call for call in self.slot_table.over() if call in self.in_flight), 0)


def _spawn(argv: Sequence[str], env: Mapping[str, str], fds: Sequence[int]) -> int:
    """Start a process that leads its own session, with these descriptors as 1 to 6."""
    targets = (1, 2, TASK_FD, CONTROL_FD, SLOT_TABLE_FD, DUMP_FD)
    sources = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _ABOVE_TARGETS) for fd in fds]
    actions: list[tuple[Any, ...]] = [(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0)]
    actions += [(os.POSIX_SPAWN_DUP2, source, target) for source, target in zip(sources, targets, strict=True)]
    try:
        return os.posix_spawnp(
            argv[0],
            list(argv),
            dict(env),
            file_actions=actions,
            **({"setsid": True} if sys.platform == "linux" else {"setpgroup": 0}),
            setsigmask=[],
            setsigdef=[signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE],
        )
    finally:
        for source in sources:
            os.close(source)


def signal_name(number: int) -> str:
    """
    Name a signal; those for programs' own use have no names.

    >>> signal_name(11), signal_name(44)
    ('SIGSEGV', 'signal 44')
    """
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
