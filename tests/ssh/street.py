"""
Hosts on which anything can go wrong at any moment: real SSH servers, agents and workers behind lines that may be slow.

What is wrong is undone after a while, so that a pool can get over it.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

from attrs import frozen

from skyward.hookspecs import Cluster, Instance, LaunchRequest, hookimpl
from tests.delayed import Delayed
from tests.hosts import Host, hosts
from tests.yard import ENDED, Yard

COUNT = 3
"""Hosts of a street: two nodes, and one to take the place of another."""

DISK_MIB = 128
"""Size of the disk that a host has for what Skyward keeps there."""

_CLOCK = """
import os, time
_time, _ns = time.time, time.time_ns
def _off():
    try:
        with open({offset!r}) as file:
            return int(file.read() or 0)
    except OSError:
        return 0
time.time = lambda: _time() + _off()
time.time_ns = lambda: _ns() + _off() * 10**9
"""

_DATE = """#!/bin/sh
exec /bin/date --date "$(cat {offset} 2>/dev/null || echo 0) seconds" "$@"
"""


@frozen(kw_only=True)
class Troubled(Yard):
    """
    Rent out hosts by an API that fails now and then, and write down when each was rented and ended.

    Args:
        trouble: The file with the number of calls that fail, of every two the first.
    """

    trouble: str

    @hookimpl
    async def skyward_launch(self, request: LaunchRequest, infra: str) -> Sequence[Instance]:
        """Rent hosts, or fail before or after that."""
        self._fail()
        rented = await super().skyward_launch(request, infra)
        self._fail()
        return rented

    @hookimpl
    async def skyward_instances(self, cluster: Cluster) -> Sequence[Instance]:
        """List hosts, or fail."""
        self._fail()
        return await super().skyward_instances(cluster)

    @hookimpl
    async def skyward_terminate(self, cluster: Cluster, ids: Sequence[str]) -> None:
        """End hosts, or fail before or after that."""
        self._fail()
        await super().skyward_terminate(cluster, ids)
        self._fail()

    def lose(self, host: int) -> None:
        """Take a host back."""
        with self._books() as books:
            lost = [row["id"] for row in books["rows"] if row["host"] == host]
        self._end(lost)

    def ended_after(self, host: int, moment: float) -> float:
        """Return for how long a host that has ended was billed after a moment; 0 if it was not ended."""
        with self._books() as books:
            ends = [row["until"] for row in books["rows"] if row["host"] == host and row.get("until", 0.0) >= moment]
        return max(ends, default=moment) - moment

    def billed(self) -> list[float]:
        """Return for how many seconds each host that was rented was billed, or has been."""
        now = time.monotonic()
        with self._books() as books:
            return [row.get("until", now) - row["from"] for row in books["rows"]]

    def _end(self, ids: Sequence[str]) -> None:
        super()._end(ids)
        with self._books() as books:
            for row in books["rows"]:
                if row["id"] in ids:
                    row.setdefault("until", time.monotonic())

    @contextlib.contextmanager
    def _books(self) -> Iterator[dict[str, Any]]:
        with super()._books() as books:
            yield books
            for row in books["rows"]:
                row.setdefault("from", time.monotonic())

    def _fail(self) -> None:
        path = Path(self.trouble)
        left = int(path.read_text() or 0) if path.exists() else 0
        if left:
            path.write_text(str(left - 1))
            if left % 2:
                raise ConnectionResetError("the line to the API is cut")


class Street:
    """
    Run hosts, and let something go wrong on them.

    Args:
        made: The hosts.
        lines: The lines to them.
        key: The private key that they let in.
    """

    def __init__(self, made: Sequence[Host], lines: Sequence[Delayed], key: Path) -> None:
        self.hosts, self.lines, self.key = made, lines, key
        self.happened: Counter[str] = Counter()
        self.wall = 0.0
        self.jump = 3600.0
        self._undone: list[tuple[float, Callable[[], object]]] = []

    def provider(self, folder: Path) -> Troubled:
        """Make a provider with books of its own."""
        places = tuple(
            (str(host.base), host.address, line.port) for host, line in zip(self.hosts, self.lines, strict=True)
        )
        return Troubled(
            hosts=places,
            key=str(self.key),
            books=str(folder / "books"),
            trouble=str(folder / "trouble"),
            known_hosts=str(folder / "known_hosts"),
        )

    @contextlib.contextmanager
    def wall_clock(self) -> Iterator[None]:
        """Let the client's wall clock jump when it is set."""
        real = time.time
        with patch("time.time", lambda: real() + self.wall):
            yield

    # What goes wrong.

    def kinds(self) -> Sequence[Callable[[random.Random, Troubled], object]]:
        """List the kinds of faults."""
        return (
            self.kill_agent,
            self.kill_worker,
            self.freeze_agent,
            self.freeze_node,
            self.cut_off,
            self.cut_links,
            self.slow_line,
            self.fail_api,
            self.set_clock,
            self.set_clock_of_host,
            self.fill_disk,
            self.lose_instance,
        )

    def let(self, drawing: random.Random, provider: Troubled) -> None:
        """Let one thing more go wrong."""
        kind = drawing.choice(self.kinds())
        self.happened[kind.__name__] += 1
        kind(drawing, provider)

    def kill_agent(self, drawing: random.Random, provider: Troubled) -> None:
        """SIGKILL an agent."""
        self._signal(signal.SIGKILL, self.agents(drawing.choice(self.hosts)))

    def kill_worker(self, drawing: random.Random, provider: Troubled) -> None:
        """SIGKILL a worker."""
        self._signal(signal.SIGKILL, self.workers(drawing.choice(self.hosts))[:1])

    def freeze_agent(self, drawing: random.Random, provider: Troubled) -> None:
        """SIGSTOP an agent for some seconds."""
        self._stop(drawing, self.agents(drawing.choice(self.hosts)))

    def freeze_node(self, drawing: random.Random, provider: Troubled) -> None:
        """SIGSTOP an agent with its workers for some seconds."""
        host = drawing.choice(self.hosts)
        self._stop(drawing, [*self.agents(host), *self.workers(host)])

    def cut_off(self, drawing: random.Random, provider: Troubled) -> None:
        """Have no byte come through to a host or from it for some seconds, and no connection be refused or reset."""
        host = drawing.choice(self.hosts)
        if host._process is not None:
            self._stop(drawing, [host._process.pid, *host.connections()])

    def cut_links(self, drawing: random.Random, provider: Troubled) -> None:
        """Break every connection to a host."""
        drawing.choice(self.hosts).cut()

    def slow_line(self, drawing: random.Random, provider: Troubled) -> None:
        """Have a line take up to half a second for a round trip."""
        line = drawing.choice(self.lines)
        line.trip = drawing.uniform(0.02, 0.5)
        self._later(drawing, lambda: setattr(line, "trip", 0.0))

    def fail_api(self, drawing: random.Random, provider: Troubled) -> None:
        """Fail some calls of the cloud's API, before or after they have done what was asked for."""
        Path(provider.trouble).write_text(str(drawing.randint(1, 6)))

    def set_clock(self, drawing: random.Random, provider: Troubled) -> None:
        """Set the client's wall clock."""
        self.wall += drawing.choice([-self.jump, self.jump])

    def set_clock_of_host(self, drawing: random.Random, provider: Troubled) -> None:
        """Set the clock of a host."""
        _offset(drawing.choice(self.hosts)).write_text(drawing.choice(["-3600", "3600"]))

    def fill_disk(self, drawing: random.Random, provider: Troubled) -> None:
        """Leave no room on the disk of a host for some seconds."""
        host = drawing.choice(self.hosts)
        self.fill(host)
        self._later(drawing, lambda: self.make_room(host))

    def fill(self, host: Host) -> None:
        """Leave no room on the disk of a host."""
        with _filler(host).open("wb") as file:
            room = os.fstatvfs(file.fileno())
            # Something may take a block of it meanwhile.
            with contextlib.suppress(OSError):
                os.posix_fallocate(file.fileno(), 0, max(1, room.f_bavail * room.f_bsize))

    def make_room(self, host: Host) -> None:
        """Give a disk its room back."""
        _filler(host).unlink(missing_ok=True)

    def lose_instance(self, drawing: random.Random, provider: Troubled) -> None:
        """Take a machine back: its SSH server and all that ran there end."""
        number = drawing.randrange(len(self.hosts))
        host = self.hosts[number]
        if host._process is not None:
            provider.lose(number)
            host.stop()
            host.sweep()
            host.start()

    # What is there, and what is left.

    def agents(self, host: Host) -> list[int]:
        """List the agents on a host."""
        return _running(host, b"skyward.node.agent.agent_main")

    def workers(self, host: Host) -> list[int]:
        """List the processes that agents have started on a host."""
        agents = self.agents(host)
        found: list[int] = []
        for agent in agents:
            with contextlib.suppress(OSError):
                found += map(int, Path(f"/proc/{agent}/task/{agent}/children").read_text().split())
        return found

    def guarded(self, provider: Troubled) -> list[str]:
        """List the machines that are billed, and have a node and so a watchdog."""
        with provider._books() as books:
            return [row["id"] for row in provider.there(books) if any(self.hosts[row["host"]].cache.glob("nodes/*"))]

    @property
    def disturbed(self) -> bool:
        """Return whether anything is still wrong."""
        return bool(self._undone)

    def undo(self, *, all_: bool = False) -> None:
        """Undo what has been wrong for long enough, or everything."""
        due = [each for each in self._undone if all_ or each[0] <= time.monotonic()]
        self._undone = [each for each in self._undone if each not in due]
        for _, undo in due:
            undo()

    def clean(self) -> None:
        """Have the hosts be as they were before anything ran there."""
        self.undo(all_=True)
        self.wall, self.jump = 0.0, 3600.0
        for host in self.hosts:
            host.sweep()
            shutil.rmtree(host.cache / "nodes", ignore_errors=True)
            (host.base / "home" / ENDED).unlink(missing_ok=True)
            _offset(host).unlink(missing_ok=True)

    def _later(self, drawing: random.Random, undo: Callable[[], object]) -> None:
        self._undone.append((time.monotonic() + drawing.choice([0.3, 1.0, 1.6, 3.2]), undo))

    def _stop(self, drawing: random.Random, pids: Sequence[int]) -> None:
        self._signal(signal.SIGSTOP, pids)
        self._later(drawing, lambda: self._signal(signal.SIGCONT, pids))

    def _signal(self, number: signal.Signals, pids: Sequence[int]) -> None:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)


@contextlib.contextmanager
def street() -> Iterator[Street]:
    """Run the hosts of a street."""
    with hosts(COUNT) as (made, key), contextlib.ExitStack() as stack:
        for host in made:
            # What runs there reads another clock once it is set.
            shims = host.base / "shims"
            shims.mkdir()
            (shims / "sitecustomize.py").write_text(_CLOCK.format(offset=str(_offset(host))))
            date = host.base / "bin" / "date"
            date.write_text(_DATE.format(offset=_offset(host)))
            date.chmod(0o755)
            settings = host.base / "sshd_config"
            path = f"{host.base}/home PYTHONPATH={shims} "
            settings.write_text(settings.read_text().replace(f"{host.base}/home ", path, 1))
            host.stop()
            host.start()
            stack.enter_context(_small_disk(host.base / "home" / ".cache"))
        lines = [stack.enter_context(Delayed(host.address, host.port)) for host in made]
        yield Street(made, lines, key)


@contextlib.contextmanager
def _small_disk(folder: Path) -> Iterator[None]:
    """Have a folder be a disk that is soon full."""
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_MIB}m", "skyward-test", str(folder)], check=True)
    try:
        yield
    finally:
        # What still runs there is ended with its host.
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def _filler(host: Host) -> Path:
    return host.base / "home" / ".cache" / "filler"


def _offset(host: Host) -> Path:
    return host.base / "offset"


def _running(host: Host, word: bytes) -> list[int]:
    found = []
    for pid in host.processes():
        with contextlib.suppress(OSError):
            if word in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.append(pid)
    return found
