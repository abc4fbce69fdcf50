"""Keeping a bucket's copy in step with the bucket: what others add, change or remove there is fetched."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

from skyward.node.volumes.bucket_changes import ObjectState, incoming, objects_of
from skyward.node.volumes.changes import INCOMING, FileState, compared, listed
from skyward.node.volumes.copy_ledger import CopyLedger
from skyward.node.volumes.file_exchange import added, exchanged, is_idle
from skyward.node.volumes.rclone_command import compare_words, fetch_words, list_words
from skyward.node.volumes.rclone_failure import last_words
from skyward.node.volumes.rclone_process import RcloneRunner

__all__ = ["FETCH_EVERY", "BucketFetch", "pause_after"]

FETCH_EVERY = 10.0
"""Seconds between two listings of the bucket."""

LISTING_SHARE = 0.1
"""The share of the time that is spent on listings, at most."""

_PAGE = 1000
_BATCH = 50


def pause_after(listing: float) -> float:
    """
    Return how many seconds to wait after a listing.

    Args:
        listing: Seconds that it took.

    >>> pause_after(0.2), pause_after(30.0)
    (10.0, 300.0)
    """
    return max(FETCH_EVERY, listing / LISTING_SHARE)


class BucketFetch:
    """
    Fetch what changes in a bucket; files that the node changed itself stay as they are.

    Args:
        runner: Runs rclone, for this alone.
        scratch: A folder for lists of files, this user's alone.
        ledger: What is known of the copy.
        note: Takes what the user should know.
    """

    def __init__(self, runner: RcloneRunner, scratch: Path, ledger: CopyLedger, note: Callable[[str], None]) -> None:
        self._runner = runner
        self._order = runner.order
        self._scratch = scratch
        self._ledger = ledger
        self._note = note
        self._contested: set[str] = set()
        self._was_empty = False
        self._why = ""

    async def keep_on(self) -> None:
        """Fetch period by period, until it is cancelled."""
        pause = FETCH_EVERY
        while True:
            await asyncio.sleep(pause)
            before, self._why = self._why, ""
            began = time.monotonic()
            try:
                await self._round()
            except Exception as error:
                # The volume is as it was; the next round tries again.
                self._why = f"{type(error).__name__}: {error}"
            if self._why and self._why != before:
                self._note(f"{self._order.title}: what others changed in the bucket was not fetched: {self._why}")
            pause = pause_after(time.monotonic() - began)

    async def _round(self) -> None:
        ledger, mount = self._ledger, self._order.mount
        async with ledger.turn:
            found = await self._found()
            if found is None:
                return
            doubted, self._was_empty = not (found or self._was_empty), not found
            if doubted and ledger.objects:
                # A request that led elsewhere looks the same: it is believed the second time.
                return
            now = await asyncio.to_thread(listed, mount)
            changes = compared(ledger.files, now)
            due = incoming(ledger.objects, found, now, {*changes.written, *changes.removed})
            for name in due.removed:
                if name not in ledger.files or self._exchanged(name, None):
                    ledger.removed(name)
        self._tell_contested(due.contested)
        fetched = due.fetched | await self._changed_elsewhere(due.compared)
        fetched = {name: state for name, state in fetched.items() if is_idle(os.path.join(mount, name))}
        if fetched:
            await self._fetch(fetched, few=len(fetched) * _PAGE < len(found))

    async def _found(self) -> dict[str, ObjectState] | None:
        """List the bucket; None if that failed."""
        path = self._scratch / "objects.json"
        with path.open("wb") as output:
            said = await self._runner.run(list_words(self._order), output=output.fileno())
        if said:
            self._why = last_words(said)
            return None
        return await asyncio.to_thread(_read, path)

    async def _changed_elsewhere(self, doubtful: dict[str, ObjectState]) -> dict[str, ObjectState]:
        """Return which objects are not what was sent from here, by their checksums."""
        if not doubtful:
            return {}
        sent = {name: self._ledger.files.get(name) for name in doubtful}
        same, other = self._scratch / "same.txt", self._scratch / "other.txt"
        for path in (same, other):
            path.unlink(missing_ok=True)
        await self._runner.run(compare_words(self._order, self._names(doubtful), str(same), str(other)))
        async with self._ledger.turn:
            for name in _lines(same) & doubtful.keys():
                if self._ledger.files.get(name) == sent[name]:
                    self._ledger.objects[name] = doubtful[name]
        return {name: doubtful[name] for name in _lines(other) & doubtful.keys()}

    async def _fetch(self, wanted: dict[str, ObjectState], *, few: bool) -> None:
        folder = self._incoming()
        try:
            await asyncio.to_thread(folder.mkdir, mode=0o700, parents=True)
            words = fetch_words(self._order, self._names(wanted), str(folder), few=few)
            if said := await self._runner.run(words):
                self._why = last_words(said)
            async with self._ledger.turn:
                for number, (name, state) in enumerate(wanted.items()):
                    self._take(name, state, folder / name, failed=bool(said))
                    if not number % _BATCH:
                        await asyncio.sleep(0)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            self._hide()

    def _take(self, name: str, wanted: ObjectState, arrived: Path, *, failed: bool) -> None:
        """Move what arrived to its place, at once: no other thing happens meanwhile."""
        try:
            file = FileState.of(os.lstat(arrived))
        except OSError:
            if not failed:
                # It has a name that no file here can have.
                self._ledger.objects.setdefault(name, wanted)
            return
        if ObjectState.of_copy(file) != wanted:
            # It was cut off, or is a later one, which the next listing has.
            return
        try:
            if name not in self._ledger.files:
                done = added(self._order.mount, name, arrived)
            else:
                done = self._exchanged(name, arrived)
        except OSError as error:
            self._why = f"there can be no file {name!r} ({error.strerror})"
            self._ledger.objects[name] = wanted
            return
        if done:
            self._ledger.fetched({name: file})

    def _exchanged(self, name: str, arrived: Path | None) -> bool:
        aside = self._incoming().with_name("aside")
        aside.parent.mkdir(exist_ok=True)
        try:
            return exchanged(os.path.join(self._order.mount, name), self._ledger.files[name], aside, arrived)
        finally:
            aside.unlink(missing_ok=True)
            self._hide()

    def _hide(self) -> None:
        """Remove the folder for what is on its way from the volume, where nothing is in it any more."""
        with contextlib.suppress(OSError):
            os.rmdir(os.path.join(self._order.mount, INCOMING))

    def _incoming(self) -> Path:
        """Return the folder for what is on its way, on the filesystem of the volume."""
        own = os.stat(self._scratch).st_dev == os.stat(self._order.mount).st_dev
        return (self._scratch if own else Path(self._order.mount, INCOMING)) / "files"

    def _names(self, names: dict[str, ObjectState]) -> str:
        path = self._scratch / "wanted.txt"
        path.write_text("".join(f"{name}\n" for name in names), encoding="utf-8", errors="surrogateescape")
        return str(path)

    def _tell_contested(self, names: list[str]) -> None:
        new = [name for name in names if name not in self._contested]
        self._contested |= set(new)
        if new:
            shown = ", ".join(new[:10]) + (", …" if len(new) > 10 else "")
            self._note(
                f"{self._order.title}: {shown} changed on the node and in the bucket; what the node wrote is kept"
                f"{'' if self._order.read_only else ', and replaces what is in the bucket'}."
            )


def _read(path: Path) -> dict[str, ObjectState]:
    with path.open(encoding="utf-8", errors="surrogateescape") as lines:
        return objects_of(lines)


def _lines(path: Path) -> set[str]:
    try:
        return set(path.read_text(encoding="utf-8", errors="surrogateescape").splitlines())
    except FileNotFoundError:
        return set()
