"""
The process that keeps a node's volumes: it mounts or copies them, writes what is left to write, and takes them away.

    python -m skyward.node.volumes.keeper

It reads questions from its standard input, a line of JSON each, and answers on its standard output, with the question's
number; keys are in the questions, and so in no command line and no file.
When its input ends, the process that asked is gone: it writes what is left to write, for a while, and takes the
volumes away.

| do | with | answer |
|---|---|---|
| `open` | `orders`, `folder`, `tools`, `packages` | `notes`; `failed`, `kind` and `hint` if one cannot be had |
| `flush` | `within` seconds | `unwritten`: files by their volume; `why`; bytes `moved` and `errors` so far |
| `renew` | `orders`, with other keys | nothing |
| `close` | | nothing |

Lines without a number are events: `note` is what the user should know, `broken` why the node cannot go on.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from skyward import private
from skyward.node.volumes.bucket_copy import BucketCopy
from skyward.node.volumes.bucket_mount import BucketMount, NotMountable
from skyward.node.volumes.key_server import KeyServer
from skyward.node.volumes.mount_point import MountPoint
from skyward.node.volumes.rclone_command import check_words
from skyward.node.volumes.rclone_failure import VolumeFailure, failure_of
from skyward.node.volumes.rclone_process import RcloneRunner
from skyward.node.volumes.rclone_search import NAMED, Rclone, find_rclone, provide_fuse
from skyward.node.volumes.volume_order import VolumeOrder

__all__ = ["CHECKED_WITHIN", "LEFT_WITHIN", "VolumeKeeper", "main"]

CHECKED_WITHIN = 45.0
"""Seconds in which a bucket answers that it is there."""

LEFT_WITHIN = 60.0
"""Seconds in which what was written is written to the bucket when the client is gone."""

_LIMIT = 16 << 20


class VolumeKeeper:
    """Keep the volumes of one node."""

    def __init__(self) -> None:
        self._volumes: dict[str, BucketMount | BucketCopy] = {}
        self._points: list[MountPoint] = []
        self._notes: list[str] = []
        self._keys = KeyServer()
        self._folder: Path | None = None
        self._closing: asyncio.Task[None] | None = None

    async def open(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """
        Mount or copy volumes; if one of them cannot be had, there is none.

        Args:
            asked: The question.
        """
        orders = [VolumeOrder.from_dict(each) for each in asked["orders"]]
        self._closing = None
        self._folder = private.directory(asked["folder"])
        packages = bool(asked["packages"])
        refused: list[str] = []
        rclone = await asyncio.to_thread(find_rclone, asked["tools"], refused, packages=packages)
        if rclone is None:
            reasons = "; ".join(refused) or "it is not on the PATH"
            return _refusal(
                VolumeFailure(
                    "ProvisionError",
                    f"rclone, which mounts volumes, cannot be had here: {reasons}.",
                    f"Install it on the machine, or name it with {NAMED}.",
                )
            )
        fuse = all(order.synced for order in orders) or await asyncio.to_thread(provide_fuse, packages=packages)
        failures = await asyncio.gather(
            *(self._one(number, order, rclone, fuse=fuse) for number, order in enumerate(orders))
        )
        failure = next(filter(None, failures), None)
        if failure is not None:
            await self.close()
            return _refusal(failure)
        return {"notes": self._notes}

    async def flush(self, within: float) -> dict[str, Any]:
        """
        Write what is left to write to the buckets.

        Args:
            within: Seconds that it may take.
        """
        titles = list(self._volumes)
        left = await asyncio.gather(*(self._volumes[title].flush(within) for title in titles))
        unwritten = {title: names for title, names in zip(titles, left, strict=True) if names}
        progress = [self._volumes[title].progress() for title in unwritten]
        return {
            "unwritten": unwritten,
            "why": "; ".join(each.why for each in progress if each.why),
            "moved": sum(each.moved for each in progress),
            "errors": sum(each.failed for each in progress),
        }

    async def close(self) -> None:
        """Take all volumes away; harmless if there are none, and finished by the next call where one is cancelled."""
        if self._closing is None:
            self._closing = asyncio.ensure_future(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        volumes, self._volumes = self._volumes, {}
        self._keys.close()
        await asyncio.gather(*(volume.close() for volume in volumes.values()), return_exceptions=True)
        for point in self._points:
            await asyncio.to_thread(point.remove)
        if self._folder is not None:
            await asyncio.to_thread(private.remove, self._folder)

    async def leave(self) -> None:
        """Write what is left to write, and take all volumes away but what could not be written."""
        unwritten = (await self.flush(LEFT_WITHIN))["unwritten"]
        kept = [self._volumes.pop(title) for title in unwritten]
        await asyncio.gather(*(volume.leave() for volume in kept), return_exceptions=True)
        if kept:
            self._folder = None
            self._points.clear()
        await self.close()

    async def answer(self, question: Mapping[str, Any]) -> None:
        """
        Do what a question asks for, and answer it.

        Args:
            question: The question.
        """
        said: dict[str, Any] = {}
        try:
            match question["do"]:
                case "open":
                    said = await self.open(question)
                case "flush":
                    said = await self.flush(float(question["within"]))
                case "renew":
                    for each in question["orders"]:
                        self._keys.renew(VolumeOrder.from_dict(each))
                case "close":
                    await self.close()
        except Exception as error:
            said = {"failed": f"{type(error).__name__}: {error}", "kind": "ProvisionError", "hint": None}
        _tell({"number": question["number"], **said})

    async def _one(self, number: int, order: VolumeOrder, rclone: Rclone, *, fuse: bool) -> VolumeFailure | None:
        assert self._folder is not None
        point = MountPoint(order.mount)
        if (failure := await asyncio.to_thread(point.prepare)) is not None:
            await asyncio.to_thread(point.remove)
            return failure
        self._points.append(point)
        variables = await self._keys.variables(order) if order.expires_at is not None else {}
        runner = RcloneRunner(order, rclone, self._folder / f"rclone-{number}.log", variables)
        checker = RcloneRunner(order, rclone, self._folder / f"check-{number}.log", variables)
        if fuse and not order.synced:
            if (failure := await _checked(checker)) is not None:
                return failure
            cache = private.directory(self._folder / f"cache-{number}")
            mount = self._volumes[order.title] = BucketMount(runner, point, cache, self._note, _broken)
            try:
                return await mount.open()
            except NotMountable as error:
                await mount.close()
                if (failure := await asyncio.to_thread(point.prepare)) is not None:
                    return failure
                self._notes.append(_instead(order, str(error)))
        elif not order.synced:
            self._notes.append(_instead(order, "/dev/fuse or fusermount is missing"))
        copy = BucketCopy(runner, checker, point, private.directory(self._folder / f"copy-{number}"), self._note)
        self._volumes[order.title] = copy
        return await _copied(copy, checker)

    def _note(self, text: str) -> None:
        _tell({"note": text})


async def _checked(checker: RcloneRunner) -> VolumeFailure | None:
    """Ask a bucket for its objects, and return why it cannot be had."""
    _, said = await checker.first_line(check_words(checker.order), CHECKED_WITHIN)
    return failure_of(checker.order, said) if said else None


async def _copied(copy: BucketCopy, checker: RcloneRunner) -> VolumeFailure | None:
    """Copy a bucket while it is checked, which fails at once where copying is tried on."""
    checking, copying = asyncio.ensure_future(_checked(checker)), asyncio.ensure_future(copy.open())
    try:
        await asyncio.wait((checking, copying), return_when=asyncio.FIRST_COMPLETED)
        if copying.done() and copying.result() is None:
            return None
        return await checking or await copying
    finally:
        for task in (checking, copying):
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


def _instead(order: VolumeOrder, why: str) -> str:
    back = "" if order.read_only else ", and what is written there is copied back"
    copied = f"{order.title} is copied to the node's disk and kept in step{back}"
    return f"{copied}, because nothing can be mounted here: {why}."


def _refusal(failure: VolumeFailure) -> dict[str, Any]:
    return {"failed": failure.message, "kind": failure.kind, "hint": failure.hint}


def _broken(why: str) -> None:
    _tell({"broken": why})


def _tell(said: dict[str, Any]) -> None:
    # Where it is not read any more, the end of the input says so.
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.write(json.dumps(said) + "\n")
        sys.stdout.flush()


async def _serve() -> None:
    keeper = VolumeKeeper()
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=_LIMIT)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        # It ends with its input, and with nothing before.
        loop.add_signal_handler(number, lambda: None)
    tasks: set[asyncio.Task[None]] = set()
    while line := await reader.readline():
        task = asyncio.ensure_future(keeper.answer(json.loads(line)))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks)
    await keeper.leave()


def main() -> None:
    """Keep volumes until the input ends."""
    os.umask(0o022)
    asyncio.run(_serve())


if __name__ == "__main__":
    main()
