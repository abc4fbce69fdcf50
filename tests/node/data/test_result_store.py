"""Results that a client does not acknowledge are on disk, and only as long as it does not."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from skyward.link.frames import Kind, encode
from skyward.link.messages import RESULT, Status
from skyward.link.payload_making import pack
from skyward.link.stored import StoredParser
from skyward.node.data.result_store import SMALL, TOGETHER_BYTES, TOGETHER_RESULTS, ResultStore
from tests.descriptors import descriptors_under, memory_descriptors
from tests.link.test_wire import End, Line


class Client:
    """The other end of a node's link: comes, reads, goes."""

    def __init__(self, node: End, client: End) -> None:
        self.line: Line | None = None
        self.node = node
        self.client = client

    def come(self) -> None:
        """Connect; nothing is read yet."""
        self.line = Line(self.node, self.client)

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
    payload = pack([b"pickle", bytes([call % 256]) * size])
    frame = encode(Kind.RESULT, RESULT.pack(call, status, 0.1, 0.0) + payload.encode(), fds=len(payload.fds))
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


def _sizes(directory: Path) -> list[int]:
    """List the bytes of each file."""
    return [path.stat().st_size for path in directory.iterdir()]


def test_results_for_a_client_that_is_away_are_stored_at_once(tmp_path: Path) -> None:
    """And removed when it has them."""

    async def test(result_store: ResultStore, client: Client) -> None:
        result_store.send(*_result(1))
        result_store.send(*_result(2, 300_000))
        # A file has its name before the loop knows that the directory is synced.
        await client.read(lambda: result_store.on_disk > 300_000 and _stored(tmp_path) == [1, 2])
        assert result_store.stored == result_store.on_disk
        client.come()
        await client.read(lambda: not _stored(tmp_path))
        assert result_store.stored == result_store.on_disk == 0

    _run(test, tmp_path, patience=1000)


def test_many_small_results_are_stored_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that come while the disk is busy share the next file: two syncs for as many as it may hold."""
    syncs: list[int] = []
    free, fsync = threading.Event(), os.fsync

    def slow_sync(fd: int) -> None:
        syncs.append(fd)
        assert free.wait(20)
        fsync(fd)

    async def test(result_store: ResultStore, client: Client) -> None:
        count = 2 * TOGETHER_RESULTS
        monkeypatch.setattr(os, "fsync", slow_sync)
        result_store.send(*_result(1))
        await client.read(lambda: syncs)
        for call in range(2, count + 2):
            result_store.send(*_result(call))
        assert result_store.on_disk == 0
        free.set()
        await client.read(lambda: result_store.on_disk == result_store.stored)
        assert len(syncs) == 2 * 3
        assert sorted(_stored(tmp_path)) == [*range(1, count + 2)]
        client.come()
        await client.read(lambda: not [*tmp_path.iterdir()])
        assert result_store.stored == result_store.on_disk == 0

    _run(test, tmp_path, patience=1000)


def test_file_of_several_results_is_bounded_in_bytes(tmp_path: Path) -> None:
    """And a result that is not small has one of its own."""

    async def test(result_store: ResultStore, client: Client) -> None:
        for call in range(1, 101):
            result_store.send(*_result(call, SMALL - 200))
        result_store.send(*_result(101, SMALL))
        await client.read(lambda: result_store.on_disk == result_store.stored)
        assert sorted(_stored(tmp_path)) == [*range(1, 102)]
        assert (tmp_path / f"{101:016x}").exists()
        # A record has 32 bytes beside its frame.
        assert max(_sizes(tmp_path)) < TOGETHER_BYTES + SMALL + 32 * 100

    _run(test, tmp_path, most=1 << 23, patience=1000)


def test_file_goes_with_the_last_of_its_results(tmp_path: Path) -> None:
    """Until then all of it counts, and those that the client has may be read from it: it knows their calls no more."""
    free = threading.Event()

    async def test(result_store: ResultStore, client: Client) -> None:
        result_store._thread.submit(free.wait, 20)
        for call in (1, 2, 3):
            result_store.send(*_result(call))
        kept = list(result_store._kept.values())
        free.set()
        await client.read(lambda: result_store.on_disk)
        whole = result_store.stored
        for one in kept[:2]:
            one.receipt()
        assert (result_store.stored, result_store.on_disk) == (whole, kept[2].size)
        assert _stored(tmp_path) == [1, 2, 3]
        client.come()
        await client.read(lambda: not [*tmp_path.iterdir()])
        assert result_store.stored == result_store.on_disk == 0

    _run(test, tmp_path, patience=1000)


def test_results_that_are_acknowledged_while_they_wait_for_the_disk_are_not_written(tmp_path: Path) -> None:
    """Nor are they counted."""
    free = threading.Event()

    async def test(result_store: ResultStore, client: Client) -> None:
        result_store._thread.submit(free.wait, 20)
        for call in (1, 2, 3):
            result_store.send(*_result(call))
        for one in list(result_store._kept.values())[:2]:
            one.receipt()
        free.set()
        await client.read(lambda: result_store.on_disk)
        assert _stored(tmp_path) == [3]
        assert result_store.stored == result_store.on_disk

    _run(test, tmp_path, patience=1000)


@pytest.mark.parametrize("status", [Status.FAILED, Status.CANCELLED])
def test_attempt_that_may_begin_again_has_a_file_of_its_own(tmp_path: Path, status: Status) -> None:
    """Nothing of it is left when the next one's result is stored."""

    async def test(result_store: ResultStore, client: Client) -> None:
        for call in (1, 2):
            result_store.send(*_result(call, status=status))
        await client.read(lambda: result_store.on_disk == result_store.stored)
        result_store.begins(1, streams=False)
        await client.read(lambda: _stored(tmp_path) == [2])
        result_store.send(*_result(1))
        await client.read(lambda: result_store.on_disk == result_store.stored)
        assert sorted(_read(tmp_path)) == [(1, Status.OK), (2, status)]

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
        while not client.client.frames:
            line.step()
        client.client.clock.advance(1.0)
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
        await client.read(lambda: len(client.client.frames) == 5)
        assert sorted(content for _, (content,) in client.client.frames) == sorted(sent)
        await client.read(lambda: not result_store.on_disk)

    _run(test, tmp_path, most=1 << 22)


@pytest.mark.parametrize("size", [10, 100_000])
def test_result_that_cannot_be_stored_stays_in_memory(tmp_path: Path, size: int) -> None:
    """And is reported, so that no caller counts on the disk."""
    told: list[int] = []
    (tmp_path / "results").touch()

    async def test(result_store: ResultStore, client: Client) -> None:
        result_store._on_stored = lambda: told.append(result_store.stored)
        result_store.send(*_result(1, size))
        await client.read(lambda: told)
        assert told == [0]
        assert result_store.on_disk == 0
        client.come()
        await client.read(lambda: client.client.frames)

    _run(test, tmp_path / "results")


def _segments() -> set[str]:
    """Find the segments that are mapped here, by their numbers: others of this process come and go."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    return {line.split()[4] for line in lines if "memfd:skyward" in line}


def test_descriptors_are_closed(tmp_path: Path) -> None:
    """Once the client has what they stand for: those of memory, and those of files."""

    async def test(result_store: ResultStore, client: Client) -> None:
        before = memory_descriptors()
        for call in range(1, 6):
            result_store.send(*_result(call, 100_000 + call))
        await client.read(lambda: result_store.on_disk > 500_000)
        assert _stored(tmp_path) == [1, 2, 3, 4, 5]
        client.come()
        await client.read(lambda: not _stored(tmp_path))
        client.client.frames.clear()
        gc.collect()
        await client.read(lambda: not descriptors_under(tmp_path) and memory_descriptors() <= before)

    _run(test, tmp_path)


def test_another_client_gets_what_the_first_has_not_acknowledged(tmp_path: Path) -> None:
    """From memory and from the disk, each once; what the first one has is not sent."""

    async def test(result_store: ResultStore, client: Client) -> None:
        client.come()
        result_store.send(*_result(1))
        await client.read(lambda: not result_store.calls)
        client.node.wire.park()
        client.client.wire.abandon()
        assert client.line is not None
        client.line.cut()
        for call, size in ((2, 10), (3, 300_000), (4, 200_000)):
            result_store.send(*_result(call, size))
        assert result_store.calls == [2, 3, 4]
        await client.read(lambda: _stored(tmp_path) == [2, 3])
        result_store.send(*_result(5, 300_000))
        second = Client(client.node, End(asyncio.get_running_loop()))
        client.node.wire.renew("s")
        client.node.wire.unpark()
        result_store.send_again()
        second.come()
        await second.read(lambda: not result_store.calls)
        got = sorted(RESULT.unpack_from(frame.body)[0] for frame, _ in second.client.frames)
        assert got == [2, 3, 4, 5]
        assert [len(contents) for frame, contents in second.client.frames if RESULT.unpack_from(frame.body)[0] == 3]
        await second.read(lambda: not _stored(tmp_path))
        assert result_store.stored == result_store.on_disk == 0

    _run(test, tmp_path, most=400_000, patience=1000)
