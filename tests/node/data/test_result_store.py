"""Results that a client does not acknowledge are on disk, and only as long as it does not."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

from skyward.link.frames import Kind, encode
from skyward.link.messages import RESULT, Status
from skyward.link.payload import pack
from skyward.link.stored import StoredParser
from skyward.node.data.result_store import ResultStore
from tests.link.test_wire import End, Line


class Client:
    """The other end of a node's link: comes, reads, goes."""

    def __init__(self, node: End, client: End) -> None:
        self.line: Line | None = None
        self._node = node
        self._client = client

    def come(self) -> None:
        """Connect; nothing is read yet."""
        self.line = Line(self._node, self._client)

    async def read(self, until: Callable[[], object]) -> None:
        """Read and acknowledge what comes, until something is so."""
        while not until():
            if self.line is not None:
                self.line.step()
            await asyncio.sleep(0.005)  # what is waited for is on the disk


def _run(
    test: Callable[[ResultStore, Client], Awaitable[None]],
    directory: Path,
    *,
    most: int = 1 << 20,
    patience: float = 0.05,
) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        node, client = End(loop), End(loop)
        result_store = ResultStore(loop, node.wire, str(directory), most=most, patience=patience)
        try:
            async with asyncio.timeout(20):
                await test(result_store, Client(node, client))
        finally:
            result_store.close()
            node.wire.close()
            client.wire.close()

    asyncio.run(main())


def _result(call: int, size: int = 10, status: Status = Status.OK) -> tuple[bytes, tuple[int, ...], object]:
    payload = pack([b"pickle", bytes([call]) * size])
    frame = encode(Kind.RESULT, RESULT.pack(call, status, 0.1) + payload.encode(), fds=len(payload.fds))
    return frame, tuple(payload.fds), payload


def _stored(directory: Path) -> list[int]:
    """List the calls whose results can be read."""
    return [call for call, _ in _read(directory)]


def _read(directory: Path) -> list[tuple[int, int]]:
    """List the calls whose results can be read, and how they ended."""
    calls = []
    for path in sorted(directory.iterdir()) if directory.exists() else ():
        # It may be removed while we look.
        with contextlib.suppress(FileNotFoundError):
            found = [] if path.name.startswith(".") else StoredParser(1 << 30).feed(path.read_bytes())
            calls += [RESULT.unpack_from(stored.frame.body)[:2] for stored in found]
    return calls


def test_results_for_a_client_that_is_away_are_stored_at_once(tmp_path: Path) -> None:
    """And removed when it has them."""

    async def test(result_store: ResultStore, client: Client) -> None:
        result_store.send(*_result(1))
        result_store.send(*_result(2, 300_000))
        await client.read(lambda: _stored(tmp_path) == [1, 2])
        assert result_store.stored > 300_000
        client.come()
        await client.read(lambda: not _stored(tmp_path))
        assert result_store.stored == 0

    _run(test, tmp_path, patience=1000)


def test_results_that_are_acknowledged_never_touch_the_disk(tmp_path: Path) -> None:
    """A client that is there has them soon."""

    async def test(result_store: ResultStore, client: Client) -> None:
        client.come()
        await client.read(lambda: result_store._link.connected)
        for call in range(1, 101):
            result_store.send(*_result(call))
        await client.read(lambda: not result_store._kept)
        assert not (tmp_path / "results").exists()

    _run(test, tmp_path / "results", patience=1000)


def test_results_that_are_not_acknowledged_in_time_are_stored(tmp_path: Path) -> None:
    """The link may be broken, and neither end knows yet."""

    async def test(result_store: ResultStore, client: Client) -> None:
        client.come()
        await client.read(lambda: result_store._link.connected)
        client.line, silent = None, client.line
        result_store.send(*_result(1))
        await client.read(lambda: _stored(tmp_path) == [1])
        client.line = silent
        await client.read(lambda: not _stored(tmp_path))

    _run(test, tmp_path)


def test_what_is_more_than_the_limit_stays_in_memory(tmp_path: Path) -> None:
    """What comes later and is small enough is stored."""

    async def test(result_store: ResultStore, client: Client) -> None:
        result_store.send(*_result(1, 300_000))
        result_store.send(*_result(2, 300_000))
        result_store.send(*_result(3))
        await client.read(lambda: _stored(tmp_path) == [1, 3])

    _run(test, tmp_path, most=400_000)


def test_everything_is_stored_when_the_machine_goes_down(tmp_path: Path) -> None:
    """Before `save` returns, except what a stream's items would have to come with."""

    async def test(result_store: ResultStore, client: Client) -> None:
        client.come()
        await client.read(lambda: result_store._link.connected)
        result_store.begins(2, streams=True)
        for call, status in ((1, Status.OK), (2, Status.RAISED), (3, Status.STREAMED), (4, Status.RAISED)):
            result_store.send(*_result(call, status=status))
        assert result_store.save()
        assert _stored(tmp_path) == [1, 4]

    _run(test, tmp_path, patience=1000)


def test_the_result_of_an_attempt_that_is_sent_again_takes_the_place_of_the_one_before(tmp_path: Path) -> None:
    """A client that sends it again has its result; that it is acknowledged late takes nothing from the next one."""

    async def test(result_store: ResultStore, client: Client) -> None:
        result_store.send(*_result(1, status=Status.FAILED))
        await client.read(lambda: _stored(tmp_path) == [1])
        client.come()
        assert client.line is not None
        line, client.line = client.line, None
        while not client._client.frames:
            line.step()
        client._client.clock.advance(1.0)
        assert line.halves[1].room() < 1 << 20  # its acknowledgement, which is under way
        result_store.begins(1, streams=False)
        await client.read(lambda: not _stored(tmp_path))
        assert result_store.stored == result_store.on_disk == 0
        result_store.send(*_result(1, 20))
        result_store._link.flush()
        line.step()
        assert result_store.save()
        assert _read(tmp_path) == [(1, Status.OK)]

    _run(test, tmp_path, patience=1000)


def test_what_is_stored_needs_no_memory(tmp_path: Path) -> None:
    """It is sent from the disk, and is what it was."""
    sent: list[bytes] = []

    async def test(result_store: ResultStore, client: Client) -> None:
        client.come()
        await client.read(lambda: result_store._link.connected)
        client.line, silent = None, client.line
        before = _segments()
        for call in range(5):
            frame, fds, hold = _result(call, 300_000 + call)
            sent.append(os.pread(fds[0], 1 << 30, 0))
            result_store.send(frame, fds, hold)
        del hold
        assert len(_segments() - before) >= 5
        await client.read(lambda: result_store.on_disk > 1_500_000)
        gc.collect()
        # Of those that are being sent, the pieces under way stay where they were; the thread lets go of what it wrote.
        await client.read(lambda: len(_segments() - before) <= 2)
        client.line = silent
        await client.read(lambda: len(client._client.frames) == 5)
        assert sorted(content for _, (content,) in client._client.frames) == sorted(sent)
        await client.read(lambda: not result_store.on_disk)

    _run(test, tmp_path, most=1 << 22)


def test_result_that_cannot_be_stored_stays_in_memory(tmp_path: Path) -> None:
    """And is reported, so that no caller counts on the disk."""
    told: list[int] = []
    (tmp_path / "results").touch()

    async def test(result_store: ResultStore, client: Client) -> None:
        result_store._on_stored = lambda: told.append(result_store.stored)
        result_store.send(*_result(1, 100_000))
        await client.read(lambda: told)
        assert told == [0]
        assert result_store.on_disk == 0
        client.come()
        await client.read(lambda: client._client.frames)

    _run(test, tmp_path / "results")


def _segments() -> set[str]:
    """Find the segments that are mapped here, by their numbers: others of this process come and go."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    return {line.split()[4] for line in lines if "memfd:skyward" in line}


def test_descriptors_are_closed(tmp_path: Path) -> None:
    """Once the client has what they stand for."""

    async def test(result_store: ResultStore, client: Client) -> None:
        result_store.send(*_result(1))
        await client.read(lambda: _stored(tmp_path))
        before = len(os.listdir("/proc/self/fd"))
        for call in range(2, 6):
            result_store.send(*_result(call, 100_000 + call))
        await client.read(lambda: _stored(tmp_path) == [1, 2, 3, 4, 5])
        client.come()
        await client.read(lambda: not _stored(tmp_path))
        gc.collect()
        assert len(os.listdir("/proc/self/fd")) <= before

    _run(test, tmp_path)
