"""A bucket that is mounted: the files are its objects, read and written when they are used."""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

from skyward.node.volumes.mount_point import MountPoint, mounted
from skyward.node.volumes.rclone_command import mount_words
from skyward.node.volumes.rclone_failure import VolumeFailure, failure_of, last_words, no_fuse
from skyward.node.volumes.rclone_process import RcloneRunner, WriteProgress, end
from skyward.node.volumes.unwritten import unwritten

__all__ = ["MOUNTS_WITHIN", "BucketMount", "NotMountable"]

MOUNTS_WITHIN = 30.0
"""Seconds in which a bucket is mounted once rclone was started."""

LISTED_WITHIN = 60.0
"""Seconds in which the folder of a mounted bucket lists its first entry."""

DEATHS, DEATHS_WITHIN = 5, 60.0
"""So many deaths of its process within so many seconds are the end of a mount, and of its node."""

_PAUSE = 0.02
_LOOK = 0.1


class NotMountable(Exception):
    """Report that nothing can be mounted on this machine."""


class BucketMount:
    """
    Mount one bucket, and mount it again when its process dies.

    Args:
        runner: Runs rclone.
        point: The folder.
        cache: A folder for rclone's cache, this user's alone.
        note: Takes what the user should know.
        broken: Called with the reason when it cannot be kept.
    """

    def __init__(
        self,
        runner: RcloneRunner,
        point: MountPoint,
        cache: Path,
        note: Callable[[str], None],
        broken: Callable[[str], None],
    ) -> None:
        self._runner = runner
        self._order = runner.order
        self._point = point
        self._cache = cache
        self._note = note
        self._broken = broken
        self._process: asyncio.subprocess.Process | None = None
        self._watch: asyncio.Task[None] | None = None

    async def open(self) -> VolumeFailure | None:
        """
        Mount it, and return why it cannot be.

        Raises:
            NotMountable: If nothing can be mounted here.
        """
        if (failure := await self._mount()) is not None:
            return failure
        self._watch = asyncio.ensure_future(self._keep())
        try:
            async with asyncio.timeout(LISTED_WITHIN):
                await asyncio.to_thread(_first_entry, self._order.mount)
        except (OSError, TimeoutError) as error:
            words = last_words(self._runner.words())
            return failure_of(self._order, f"{words}\nit is mounted and cannot be listed: {error}")
        return None

    def pending(self) -> list[str]:
        """List the files that are not in the bucket yet."""
        beneath = f"{self._order.bucket}/{self._order.prefix}"
        return [] if self._order.read_only else unwritten(self._cache, beneath)

    async def flush(self, within: float) -> list[str]:
        """
        Wait until all that was written is in the bucket, and return what is not.

        Args:
            within: Seconds to wait.
        """
        until = time.monotonic() + within
        while True:
            left = await asyncio.to_thread(self.pending)
            if not left or time.monotonic() > until:
                return left
            await asyncio.sleep(_LOOK)

    def progress(self) -> WriteProgress:
        """Return how far writing has come."""
        words = self._runner.words()
        return WriteProgress(self._runner.moved(), words.count("ERROR"), last_words(words) if "ERROR" in words else "")

    async def leave(self) -> None:
        """Close the mount, and keep in the cache what is not written yet."""
        if self._watch is not None:
            self._watch.cancel()
        await asyncio.to_thread(self._point.unmount)
        if self._process is not None:
            await end(self._process)
        await asyncio.to_thread(self._point.remove)

    async def close(self) -> None:
        """Close the mount, and remove what is left of it on the machine."""
        await self.leave()
        await asyncio.to_thread(shutil.rmtree, self._cache, ignore_errors=True)

    async def _mount(self) -> VolumeFailure | None:
        order, runner = self._order, self._runner
        free = shutil.disk_usage(self._cache).free
        words = mount_words(
            order, cache=str(self._cache), cache_bytes=max(free // 2, 64 << 20), version=runner.rclone.version
        )
        process = self._process = await runner.start(words)
        until = time.monotonic() + MOUNTS_WITHIN
        while not await asyncio.to_thread(mounted, order.mount):
            if process.returncode is not None or time.monotonic() > until:
                await end(process)
                said = runner.words()
                if no_fuse(said):
                    raise NotMountable(last_words(said))
                return failure_of(order, said or f"it was not mounted within {MOUNTS_WITHIN:g} s")
            await asyncio.sleep(_PAUSE)
        return None

    async def _keep(self) -> None:
        """Mount it again whenever its process ends."""
        deaths: deque[float] = deque(maxlen=DEATHS)
        while True:
            assert self._process is not None
            code = await self._process.wait()
            deaths.append(time.monotonic())
            why = f"{self._order.title}: its rclone ended with {_how(code)} {last_words(self._runner.words())}".strip()
            if len(deaths) == DEATHS and deaths[-1] - deaths[0] < DEATHS_WITHIN:
                self._broken(why)
                return
            await asyncio.to_thread(self._point.unmount)
            try:
                failure = await self._mount()
            except (NotMountable, OSError) as error:
                failure = VolumeFailure("StorageError", str(error))
            if failure is not None:
                self._broken(f"{why}; it cannot be mounted again: {failure.message}")
                return
            self._note(f"{why}; it is mounted again, and files that were open raise an OSError.")


def _first_entry(folder: str) -> None:
    with os.scandir(folder) as entries:
        next(entries, None)


def _how(code: int) -> str:
    return f"exit code {code}" if code >= 0 else f"signal {-code}"
