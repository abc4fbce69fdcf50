"""
A line of some length and width between the client and real servers here: delay and rate, in a process of its own.

usage: python -m measure.proxy DESCRIPTOR ADDRESS:PORT...    its ports and commands pass that socket; see `Proxy`

A connection through it behaves as one over such a line would:

- what is sent first passes the bottleneck, which all connections share, each way by itself, and then travels for half
  the round trip; the order is kept;
- a new connection costs the round trip of TCP's handshake before its first byte;
- nothing else limits the rate: half a gigabyte may be on its way;
- before the bottleneck little waits, so a new rate holds within some twenty milliseconds.
"""

from __future__ import annotations

import heapq
import itertools
import json
import select
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

from measure.harness import HERE
from measure.line import ON_THE_WAY, Flow, Line

ANSWER_S = 10.0
"""Seconds that the process has to answer."""


class Relay:
    """
    Pass on the bytes of all connections, in one thread.

    Args:
        targets: Where the servers are.
    """

    def __init__(self, targets: Sequence[tuple[str, int]]) -> None:
        self.up, self.down = Line(), Line()
        self.listeners = {socket.create_server((address, 0)): (address, port) for address, port in targets}
        self._opening: list[tuple[float, int, socket.socket, tuple[str, int]]] = []
        self._number = itertools.count()
        self._pairs: list[tuple[Flow, Flow]] = []

    def serve(self, commands: socket.socket) -> None:
        """
        Work until the other end of the commands is closed.
        """
        readable: set[Any] = set()
        obeys = True
        while obeys:
            if commands in readable:
                obeys = self._obey(commands)
            now = time.monotonic()
            for listener in readable & self.listeners.keys():
                client, _ = listener.accept()
                # TCP's handshake and the first bytes of the client take three ways.
                due = now + 3 * self.up.delay_s
                heapq.heappush(self._opening, (due, next(self._number), client, self.listeners[listener]))
            while self._opening and self._opening[0][0] <= now:
                self._open(*heapq.heappop(self._opening)[2:])
            for flow in (flow for pair in self._pairs for flow in pair):
                if flow.source in readable:
                    flow.read(now)
                flow.write(now)
            self._forget()
            reads, writes, until = self._awaited(now)
            found, _, _ = select.select([commands, *self.listeners, *reads], writes, [], max(0.0, until - now))
            readable = set(found)

    def _awaited(self, now: float) -> tuple[list[socket.socket], list[socket.socket], float]:
        """Return the sockets to wait for, to read and to write, and until when."""
        reads, writes = [], []
        until = self._opening[0][0] if self._opening else now + 60.0
        for flow in (flow for pair in self._pairs for flow in pair):
            if flow.stuck:
                writes.append(flow.target)
            elif flow.on_the_way:
                until = min(until, flow.on_the_way[0][0])
            if flow.ended or flow.size >= ON_THE_WAY:
                continue
            if flow.line.room(now):
                reads.append(flow.source)
            else:
                until = min(until, flow.line.free_at(now))
        return reads, writes, until

    def _open(self, client: socket.socket, target: tuple[str, int]) -> None:
        try:
            server = socket.create_connection(target, ANSWER_S)
        except OSError:
            client.close()
            return
        for end in (client, server):
            end.setblocking(False)
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        up = Flow(client, server, self.up, ahead_s=self.up.delay_s)
        self._pairs.append((up, Flow(server, client, self.down)))

    def _forget(self) -> None:
        for pair in [pair for pair in self._pairs if all(flow.over for flow in pair)]:
            self._pairs.remove(pair)
            for flow in pair:
                flow.source.close()

    def _obey(self, commands: socket.socket) -> bool:
        """Change the line, and answer with what has passed; False when there is nothing left to obey."""
        line = commands.recv(4096)
        if not line:
            return False
        now, change = time.monotonic(), json.loads(line)
        if change:
            for way in (self.up, self.down):
                way.change(now, change["round_trip_s"] / 2, change["bytes_per_s"])
        commands.sendall(json.dumps([self.up.passed, self.down.passed]).encode() + b"\n")
        return True


class Proxy:
    """
    Stand between a client and servers of this machine, in a process of its own; its settings can change while it runs.

    Args:
        targets: Addresses and ports of the servers; `ports` has the proxy's own, at the same addresses.
        round_trip_s: Seconds there and back.
        bits_per_s: The rate of the line, each way; None for as fast as it goes.
    """

    def __init__(
        self, targets: Sequence[tuple[str, int]], *, round_trip_s: float = 0.0, bits_per_s: float | None = None
    ) -> None:
        self._targets = [f"{address}:{port}" for address, port in targets]
        self._settings = (round_trip_s, bits_per_s)
        self.ports: list[int] = []

    def __enter__(self) -> Self:
        self._commands, theirs = socket.socketpair()
        with theirs:
            command = [sys.executable, "-m", "measure.proxy", str(theirs.fileno()), *self._targets]
            self._process = subprocess.Popen(command, cwd=HERE, pass_fds=[theirs.fileno()])
        self._commands.settimeout(ANSWER_S)
        self._answers = self._commands.makefile("rb")
        self.ports = json.loads(self._answers.readline())
        self.change(*self._settings)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._answers.close()
        self._commands.close()
        try:
            self._process.wait(ANSWER_S)
        finally:
            self._process.kill()

    def change(self, round_trip_s: float, bits_per_s: float | None = None) -> None:
        """
        Be another line from now on.
        """
        self._ask({"round_trip_s": round_trip_s, "bytes_per_s": bits_per_s / 8 if bits_per_s else None})

    def passed(self) -> tuple[int, int]:
        """
        Count the bytes that went up, from the client to the servers, and down.
        """
        up, down = self._ask(None)
        return up, down

    def _ask(self, what: object) -> list[int]:
        self._commands.sendall(json.dumps(what).encode() + b"\n")
        answer: list[int] = json.loads(self._answers.readline())
        return answer


def main(fd: int, targets: Sequence[str]) -> None:
    """
    Be the proxy's process.
    """
    relay = Relay([(address, int(port)) for address, _, port in (target.rpartition(":") for target in targets)])
    with socket.socket(fileno=fd) as commands:
        commands.sendall(json.dumps([listener.getsockname()[1] for listener in relay.listeners]).encode() + b"\n")
        relay.serve(commands)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
