"""A bucket that is copied: its objects are files on the node's disk, and what changes on either side is copied."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from skyward import private
from skyward.node.volumes.bucket_fetch import BucketFetch
from skyward.node.volumes.changes import compared, listed
from skyward.node.volumes.copy_ledger import CopyLedger
from skyward.node.volumes.mount_point import MountPoint
from skyward.node.volumes.rclone_command import delete_words, pull_words, push_words
from skyward.node.volumes.rclone_failure import VolumeFailure, failure_of, last_words
from skyward.node.volumes.rclone_process import RcloneRunner, WriteProgress

__all__ = ["EVERY", "SETTLED", "BucketCopy"]

EVERY = 5.0
"""Seconds between two looks for what changed."""

SETTLED = 2.0
"""Seconds for which a file has to be as it is before it is copied, while tasks may go on writing to it."""

_AGAIN = 1.0


class BucketCopy:
    """
    Copy one bucket to a folder, and keep both in step.

    Args:
        runner: Runs rclone.
        fetcher: Runs another for what others change in the bucket.
        point: The folder.
        scratch: A folder for lists of files, this user's alone.
        note: Takes what the user should know.
    """

    def __init__(
        self,
        runner: RcloneRunner,
        fetcher: RcloneRunner,
        point: MountPoint,
        scratch: Path,
        note: Callable[[str], None],
    ) -> None:
        self._runner = runner
        self._order = runner.order
        self._point = point
        self._scratch = scratch
        self._note = note
        self._ledger = CopyLedger()
        self._fetch = BucketFetch(fetcher, private.directory(scratch / "fetch"), self._ledger, note)
        self._fetching: asyncio.Task[None] | None = None
        self._pushing: asyncio.Task[None] | None = None
        self._flushing: asyncio.Task[None] | None = None
        self._why, self._failed = "", 0

    async def open(self) -> VolumeFailure | None:
        """Copy the bucket to the folder, and return why it cannot be."""
        if said := await self._runner.run(pull_words(self._order)):
            return failure_of(self._order, said)
        self._ledger.fetched(await asyncio.to_thread(listed, self._order.mount))
        self._fetching = asyncio.ensure_future(self._fetch.keep_on())
        if not self._order.read_only:
            self._pushing = asyncio.ensure_future(self._push_on())
        return None

    async def flush(self, within: float) -> list[str]:
        """
        Copy all that changed to the bucket, and return what is not there; nothing is fetched from then on.

        Args:
            within: Seconds that it is tried.
        """
        if self._order.read_only:
            return []
        await _ended(self._fetching)
        if self._flushing is None:
            self._flushing = asyncio.ensure_future(self._push_all())
        # What is under way goes on after that.
        await asyncio.wait([self._flushing], timeout=within)
        if self._flushing.done():
            self._flushing.result()
            self._flushing = None
            return []
        return await asyncio.to_thread(self._left)

    def progress(self) -> WriteProgress:
        """Return how far writing has come."""
        return WriteProgress(self._runner.moved(), self._failed, self._why)

    async def leave(self) -> None:
        """Copy nothing any more, and keep the files."""
        for task in (self._fetching, self._pushing, self._flushing):
            await _ended(task)

    async def close(self) -> None:
        """Remove the copy."""
        await self.leave()
        await asyncio.to_thread(self._point.empty)
        await asyncio.to_thread(self._point.remove)

    async def _push_all(self) -> None:
        while True:
            if not await self._push(settled=None):
                return
            await asyncio.sleep(_AGAIN)

    async def _push_on(self) -> None:
        while True:
            await asyncio.sleep(EVERY)
            before = self._why
            await self._push(settled=time.time_ns() - int(SETTLED * 1e9))
            if self._why and self._why != before:
                self._note(f"{self._order.title}: what was written is not in the bucket yet: {self._why}")

    async def _push(self, *, settled: int | None) -> list[str]:
        """Copy what changed; return what could not be, by its name."""
        ledger = self._ledger
        async with ledger.turn:
            now = await asyncio.to_thread(listed, self._order.mount)
            changes = compared(ledger.files, now, settled=settled)
            failed: list[str] = []
            largest = max((now[name].size for name in changes.written), default=0)
            if changes.written and await self._ran(partial(push_words, largest=largest), changes.written):
                failed += changes.written
            else:
                ledger.sent({name: now[name] for name in changes.written})
            if changes.removed and await self._ran(delete_words, changes.removed):
                failed += changes.removed
            else:
                for name in changes.removed:
                    ledger.removed(name)
            if not failed:
                self._why = ""
            return failed

    async def _ran(self, words: Callable[..., list[str]], names: list[str]) -> str:
        names_file = self._scratch / "files.txt"
        names_file.write_text("".join(f"{name}\n" for name in names), encoding="utf-8", errors="surrogateescape")
        said = await self._runner.run(words(self._order, str(names_file)))
        if said:
            self._why = last_words(said)
            self._failed += 1
        return said

    def _left(self) -> list[str]:
        changes = compared(self._ledger.files, listed(self._order.mount))
        return [*changes.written, *changes.removed]


async def _ended(task: asyncio.Task[None] | None) -> None:
    """Cancel a task, and wait for its end."""
    if task is not None:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
