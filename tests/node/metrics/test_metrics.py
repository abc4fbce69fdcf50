"""The sampler wakes up for nothing that was not asked for, and keeps little for a client that is away."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from skyward.link.frames import Frame, Kind, Parser, decode_json
from skyward.model.events import metric
from skyward.node.metrics.metrics import Sampler


class Client:
    """Take frames as a link does, and be away when told so."""

    def __init__(self) -> None:
        self.closed = False
        self.connected = True
        self.backlog = 0
        self.on_drained = None
        self.frames: list[dict[str, Any]] = []

    def send(self, frame: bytes, fds: Sequence[int] = (), hold: object = None) -> None:
        parsed: Frame
        (parsed,) = Parser().feed(frame)
        assert Kind.METRIC == parsed.kind
        self.frames.append(decode_json(parsed.body))

    def end(self) -> None: ...

    def close(self, error: Exception | None = None) -> None: ...

    def flush(self) -> None: ...


async def _until(holds: Callable[[], object], seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        await asyncio.sleep(0.01)


@contextmanager
def _sampler(client: Client, *asked: metric.Collector, **options: Any) -> Any:
    loop = asyncio.get_running_loop()
    sampler = Sampler(loop, **options)

    def reap() -> None:
        for pid in list(sampler._commands):
            if (ended := os.waitpid(pid, os.WNOHANG))[0]:
                sampler.reaped(*ended)

    loop.add_signal_handler(signal.SIGCHLD, reap)
    sampler.start([one.to_dict() for one in asked], client)
    try:
        yield sampler
    finally:
        sampler.stop()
        for pid in list(sampler._commands):
            sampler.reaped(*os.waitpid(pid, 0))
        loop.remove_signal_handler(signal.SIGCHLD)


def test_nothing_is_scheduled_when_nothing_is_asked_for() -> None:
    """An idle agent is asleep."""

    async def run() -> None:
        loop = asyncio.get_running_loop()
        before = list(loop._scheduled)  # type: ignore[attr-defined]
        with _sampler(Client()):
            assert before == loop._scheduled  # type: ignore[attr-defined]

    asyncio.run(run())


@pytest.mark.parametrize("away", [{"connected": False}, {"backlog": 1 << 20}])
def test_the_latest_are_kept_while_the_client_is_away(away: dict[str, Any], tmp_path: Path) -> None:
    """One value of each metric, told once the client is back."""

    async def run() -> None:
        client = Client()
        counter = tmp_path / "counter"
        command = f"echo x >> {counter}; wc -l < {counter}"
        for name, value in away.items():
            setattr(client, name, value)
        with _sampler(client, metric.Memory(interval=0.1), metric.Custom("count", command, 0.1)) as sampler:
            await _until(lambda: sampler._held.get("count", [0])[-1] >= 5)
            assert {"memory_percent", "count"} == set(sampler._held)
            assert not client.frames
            client.connected, client.backlog = True, 0
            await _until(lambda: client.frames)
        (first, *_) = client.frames
        values = {name: value for _, name, _, value in first["values"]}
        assert values["count"] >= 5
        assert len(first["values"]) == 2

    asyncio.run(run())


@pytest.mark.slow
def test_a_command_that_takes_too_long_is_ended_with_its_children(tmp_path: Path) -> None:
    """It is reported once, however often it is tried, and a process that it started is gone."""

    async def run() -> None:
        client = Client()
        pids = tmp_path / "pids"
        command = f"sleep 1000 & echo $! >> {pids}; wait"
        with _sampler(client, metric.Custom("slow", command, 0.1), timeout=0.2):
            await _until(lambda: pids.exists() and len(pids.read_text().split()) >= 3)
        troubles = [trouble for frame in client.frames for trouble in frame["troubles"]]
        assert ["slow can't be measured: it took more than 0.2 s. It is tried again, less and less often."] == troubles
        await _until(lambda: not any(_runs(pid) for pid in pids.read_text().split()))

    asyncio.run(run())


def test_sources_that_are_missing_are_left_out(tmp_path: Path) -> None:
    """Without /proc there is still what needs none."""

    async def run() -> None:
        client = Client()
        asked = (metric.CPU(interval=0.1), metric.Memory(interval=0.1), metric.NetworkRx(interval=0.1))
        with _sampler(client, *asked, metric.Disk("/", interval=0.1), proc=str(tmp_path / "none")):
            await _until(lambda: len(client.frames) >= 3)
        assert {"disk_percent:/"} == {row[1] for frame in client.frames for row in frame["values"]}
        assert not any(frame["troubles"] for frame in client.frames)

    asyncio.run(run())


def _runs(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
